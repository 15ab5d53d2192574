//! Curves of a sweep: loss, measured, predicted and of other programs; where frames were
//! lost; what the CPUs did; the least and the most tuned setting in one figure.

use super::sessions::{Setting, extremes, settings};
use super::tables::name;
use tscap_document::Figure;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_lab::loss::schema::{Point, Sweep};

/// A value of a point by the name of its curve.
type Value = (String, f64);

/// What is drawn of the points of one setting.
struct Kind {
    id: &'static str,
    title: &'static str,
    description: &'static str,
    y: &'static str,
    note: Option<&'static str>,
    values: fn(&Sweep, &Point) -> Vec<Value>,
}

const KINDS: [Kind; 3] = [
    Kind {
        id: "loss",
        title: "",
        description: "Share of the frames lost by each program, and what the model predicts for \
                      tscap; the table below has each point.",
        y: "frames lost, %",
        note: None,
        values: lost,
    },
    Kind {
        id: "where",
        title: "Kernel and application: ",
        description: "For each program the share of the frames sent that the kernel lost, and the \
                      share of those that the kernel processed that the program lost.",
        y: "lost, % of what came there",
        note: Some(
            "kernel: lost before the program, of all sent; application: lost in its buffer or on \
             the way to its file, of those that the kernel processed",
        ),
        values: by_place,
    },
    Kind {
        id: "load",
        title: "CPU load: ",
        description: "For each program what the CPUs did that receive and capture while frames \
                      were sent.",
        y: "share of the CPU, %",
        note: Some(
            "by the kernel's ticks, as mpstat tells it: user with nice, softirq with interrupts; a \
             kernel thread that receives (threaded NAPI, with a receive CPU of its own) counts as \
             system",
        ),
        values: load,
    },
];

/// Charts for each pace, snaplen and ring, over the frame size; with one size only,
/// for each snaplen and ring over the rate. Then the least and the most tuned setting
/// together. What was not sent at the rate asked for is in none.
pub(super) fn losses(sweep: &Sweep) -> Vec<Figure> {
    let over_rate = is_over_rate(sweep);
    let settings = settings(sweep, over_rate);
    let of_setting = |(index, setting): (usize, &Setting)| {
        KINDS.map(|kind| {
            let values = values(sweep, over_rate, setting, |point| {
                (kind.values)(sweep, point)
            });
            figure(
                format!("{}-{index}", kind.id),
                format!("{}{}", kind.title, setting.title()),
                &kind,
                over_rate,
                values,
            )
        })
    };
    let each = settings.iter().enumerate().flat_map(of_setting);
    each.chain([joint(sweep, over_rate)]).flatten().collect()
}

/// Skopkó's first session: of the least tuned setting loss, its places and the load.
pub(crate) fn first_session(sweep: &Sweep) -> Vec<Figure> {
    let over_rate = is_over_rate(sweep);
    let Some(setting) = settings(sweep, over_rate)
        .into_iter()
        .min_by_key(Setting::tuning)
    else {
        return Vec::new();
    };
    let each = KINDS.map(|kind| {
        let values = values(sweep, over_rate, &setting, |point| {
            (kind.values)(sweep, point)
        });
        let id = format!("session-1-{}", kind.id);
        let title = format!("{}{}", kind.title, setting.title());
        figure(id, title, &kind, over_rate, values)
    });
    each.into_iter().flatten().collect()
}

/// His second and third session: the snaplens with the smallest ring, and the rings with the
/// longest snaplen.
pub(crate) fn tuning_sessions(sweep: &Sweep) -> [Option<Figure>; 2] {
    let over_rate = is_over_rate(sweep);
    let all = settings(sweep, over_rate);
    let least = all.iter().min_by_key(|setting| setting.tuning());
    let together = |id: &str, title: &str, is_one: &dyn Fn(&Setting, &Setting) -> bool| {
        let least = least?;
        let wanted = all.iter().filter(|setting| is_one(setting, least));
        let wanted: Vec<&Setting> = wanted.collect();
        let curves = wanted.iter().flat_map(|setting| {
            values(sweep, over_rate, setting, |point| {
                let name = format!("{}, {setting}", name(point));
                vec![(name, 100.0 * point.run.loss())]
            })
        });
        let kind = Kind {
            id: "session",
            description: "Share of the frames lost by each program in each setting.",
            ..KINDS[0]
        };
        let curves: Vec<_> = curves.collect();
        let figure = figure(id.to_owned(), title.to_owned(), &kind, over_rate, curves);
        figure.filter(|_| wanted.len() > 1)
    };
    [
        together("session-2", "Loss over the snaplen", &|setting, least| {
            setting.has_ring_of(least)
        }),
        together("session-3", "Loss over the buffer", &|setting, least| {
            setting.delivers_as_much_as(least)
        }),
    ]
}

/// Skopkó's last figure: the first setting against the one with all that was tuned.
pub(crate) fn last_session(sweep: &Sweep) -> Option<Figure> {
    joint(sweep, is_over_rate(sweep))
}

fn joint(sweep: &Sweep, over_rate: bool) -> Option<Figure> {
    let (least, most) = extremes(sweep, over_rate)?;
    let of = |setting: &Setting, which: &'static str| {
        values(sweep, over_rate, setting, |point| {
            vec![(
                format!("{}, {which}", name(point)),
                100.0 * point.run.loss(),
            )]
        })
    };
    let both = [of(&least, "least tuned"), of(&most, "most tuned")].concat();
    let kind = Kind {
        id: "joint",
        description: "Share of the frames lost by each program in the first setting and in the one \
                      with the shortest snaplen and the largest ring.",
        ..KINDS[0]
    };
    let title = format!("Least tuned ({least}) and most tuned ({most})");
    figure(kind.id.to_owned(), title, &kind, over_rate, both)
}

fn is_over_rate(sweep: &Sweep) -> bool {
    let mut sizes = sweep.points.iter().map(|point| point.size);
    let first = sizes.next();
    sizes.all(|size| Some(size) == first) && sweep.points.iter().any(|it| it.rate_asked.is_some())
}

/// All values of the points of a setting, each with its place on the axis.
fn values(
    sweep: &Sweep,
    over_rate: bool,
    setting: &Setting,
    of: impl Fn(&Point) -> Vec<Value>,
) -> Vec<(String, (f64, f64))> {
    let x = |point: &Point| {
        if over_rate {
            point.rate_asked.unwrap_or(f64::NAN) / 1e6
        } else {
            f64::from(point.size)
        }
    };
    let points = sweep.points.iter().filter(|point| point.is_reached());
    let points = points.filter(|point| Setting::of(point, over_rate) == *setting);
    let values = points.flat_map(|point| {
        let values = of(point).into_iter();
        values.map(move |(name, y)| (name, (x(point), y)))
    });
    values.collect()
}

fn lost(_: &Sweep, point: &Point) -> Vec<Value> {
    let predicted = point.predicted.map(|predicted| {
        let clock = point.clock.map_or("", |clock| clock.name());
        (format!("{clock} predicted"), 100.0 * predicted.lost())
    });
    let measured = (name(point), 100.0 * point.run.loss());
    [Some(measured), predicted].into_iter().flatten().collect()
}

fn by_place(_: &Sweep, point: &Point) -> Vec<Value> {
    let run = &point.run;
    let of = |place, share| (format!("{} {place}", name(point)), 100.0 * share);
    vec![
        of("kernel", run.kernel_loss()),
        of("application", run.application_loss()),
    ]
}

fn load(sweep: &Sweep, point: &Point) -> Vec<Value> {
    let method = &sweep.method;
    let mut cpus = vec![method.receive_cpu];
    cpus.extend(
        method
            .capture_cpus
            .iter()
            .filter(|cpu| **cpu != method.receive_cpu),
    );
    // A machine may have many that captures could run on.
    cpus.truncate(2);
    let of_cpu = |cpu: u32| {
        let load = point.run.load.get(cpu as usize)?;
        let of = |what, share| {
            let name = format!("{} CPU {cpu} {what}", name(point));
            (name, 100.0 * share)
        };
        Some([
            of("user", load.user),
            of("system", load.system),
            of("softirq", load.softirq + load.irq),
        ])
    };
    cpus.into_iter().filter_map(of_cpu).flatten().collect()
}

/// `None` without a curve.
fn figure(
    id: String,
    title: String,
    kind: &Kind,
    over_rate: bool,
    values: Vec<(String, (f64, f64))>,
) -> Option<Figure> {
    let mut series: Vec<Series> = Vec::new();
    for (name, at) in values {
        let found = series.iter_mut().find(|it| it.name == name);
        match found {
            Some(series) => series.points.push(at),
            None => series.push(Series {
                style: series.len(),
                name,
                shape: Shape::Marked,
                points: vec![at],
            }),
        }
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let all = || series.iter().flat_map(|series| series.points.iter());
    let (xs, ys) = (all().map(|(x, _)| *x), all().map(|(_, y)| *y));
    let label = if over_rate {
        "frames a second, million"
    } else {
        "frame size, B"
    };
    let chart = Chart {
        id,
        title,
        description: kind.description.to_owned(),
        x: Axis::over(label, Scale::Linear, xs),
        y: Axis::over(kind.y, Scale::Linear, ys.chain([0.0, 1.0])),
        series,
        band: None,
    };
    let notes = kind.note.map(str::to_owned).into_iter().collect();
    chart.has_curve().then(|| Figure::new(chart, notes, None))
}
