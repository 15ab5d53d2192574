//! Flows as lines of a terminal.

use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped};
use tscap_base::text::table::{Side, Table, row};
use tscap_document::words::{LEAST, NOTHING, Unit, maybe, number, time};
use tscap_flows::schema::{
    Figures, FlowReport, Ipdv, PathDelay, QuicFigures, QuicSign, RoundTripBy, SpinBit, VoiceFigures,
};

/// Widths of the columns of a flow's figures, and their heads.
const COLUMNS: [(&str, usize); 9] = [
    ("packets", 9),
    ("Mbit/s", 7),
    ("gap", 9),
    ("jitter", 9),
    ("delay", 9),
    ("rtt", 8),
    ("lost", 8),
    ("copies", 6),
    ("late", 6),
];
const SPACE: &str = " ";

/// What stands above [`flow_lines`].
pub(super) fn head() -> String {
    row(
        COLUMNS.map(|(head, width)| (head, width, Side::Right)),
        SPACE,
    )
}

/// A flow: its name, and its figures under [`head`].
pub(super) fn flow_lines(flow: &FlowReport) -> [String; 2] {
    let mean = |figures: Option<Figures>| maybe(figures.map(|it| it.mean_ns), time);
    let lost = match (flow.loss, flow.retransmissions) {
        (Some(loss), _) => grouped(loss.lost),
        (None, Some(again)) if again.segments > 0 => format!("{} B*", grouped(again.bytes)),
        _ => NOTHING.to_owned(),
    };
    let cells = [
        grouped(flow.packets),
        maybe(flow.bits_per_s.map(|bits| bits / 1e6), number),
        mean(flow.inter_arrival),
        maybe(flow.jitter.map(|jitter| jitter.last_ns), time),
        mean(flow.delay),
        maybe(round_trip(flow), time),
        lost,
        maybe(flow.loss.map(|loss| loss.duplicates), grouped),
        maybe(flow.reordering.map(|it| it.reordered), grouped),
    ];
    let widths = COLUMNS.map(|(_, width)| width);
    let cells = cells.iter().zip(widths);
    let cells = cells.map(|(cell, width)| (cell.as_str(), width, Side::Right));
    [name(flow), row(cells, SPACE)]
}

/// The median round trip, of few the mean, in the first of the ways that have one.
pub(super) fn round_trip(flow: &FlowReport) -> Option<f64> {
    let figures = flow.round_trips.first()?.figures;
    Some(figures.p50_ns.map_or(figures.mean_ns, |ns| ns as f64))
}

/// A flow's name with its VLAN tags, and what became of it.
pub(super) fn name(flow: &FlowReport) -> String {
    let mut name = escaped(&flow.name).into_owned();
    if !flow.vlans.is_empty() {
        let tags: Vec<_> = flow.vlans.iter().map(u16::to_string).collect();
        name = format!("{name} vlan {}", tags.join("."));
    }
    if flow.inner {
        name += " (inner)";
    }
    if flow.evicted {
        name += " (ended: made room)";
    }
    name
}

/// What sequence numbers tell of a flow, in sentences.
pub(super) fn sentences(flow: &FlowReport) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(loss) = flow.loss {
        let expected = loss.distinct + loss.lost;
        let share = 100.0 * loss.lost as f64 / expected.max(1) as f64;
        let mut sentence = format!(
            "lost {} of {} ({} %)",
            grouped(loss.lost),
            grouped(expected),
            number(share)
        );
        if loss.lost > 0 {
            sentence += &format!(
                " in {}, the longest of {}",
                counted(loss.loss_periods, "period"),
                grouped(loss.longest_loss)
            );
        }
        let counts = [
            (loss.duplicates, "copies"),
            (loss.too_late, "too late to be told from copies"),
        ];
        for (count, what) in counts {
            if count > 0 {
                sentence += &format!("; {} {what}", grouped(count));
            }
        }
        sentences.push(sentence);
    }
    if let Some(reordering) = flow.reordering
        && let Some(extent) = reordering.extent
    {
        sentences.push(format!(
            "reordered {}: extent mean {}, greatest {}{}",
            counted(reordering.reordered, "packet"),
            number(extent.mean),
            if extent.cut > 0 { "at least " } else { "" },
            grouped(extent.max)
        ));
    }
    if let Some(negative) = flow.delay.map(|it| it.negative).filter(|it| *it > 0) {
        sentences.push(format!(
            "negative: {}: the clocks of sender and receiver disagree",
            counted(negative, "delay")
        ));
    }
    sentences.extend(flow.ipdv.map(intervals));
    if let Some(rtp) = flow.rtp {
        let clock = match rtp.clock_hz {
            Some(rate) => format!("clock {} Hz", grouped(rate.into())),
            None => "no jitter: its clock rate is not known (--rtp-clock)".to_owned(),
        };
        let mut sentence = format!("payload type {}, {clock}", rtp.payload_type);
        if rtp.jumped > 0 {
            sentence += &format!("; {} out of sequence", counted(rtp.jumped, "packet"));
        }
        if rtp.restarts > 0 {
            sentence += &format!("; the source began anew {} times", grouped(rtp.restarts));
        }
        sentences.push(sentence);
    }
    sentences.extend(flow.quic.as_ref().map(quic));
    if let Some(again) = flow.retransmissions.filter(|again| again.segments > 0) {
        sentences.push(format!(
            "seen again: {} in {}",
            counted(again.bytes, "byte"),
            counted(again.segments, "segment")
        ));
    }
    if flow.went_back > 0 {
        sentences.push(format!(
            "the clock went back {} times: those gaps are in no figure",
            grouped(flow.went_back)
        ));
    }
    sentences
}

/// How the intervals of neighbours were found.
fn intervals(ipdv: Ipdv) -> String {
    let by_tsc = "one TSC on both sides";
    let by_tai = "the stamps here and the sender's CLOCK_TAI";
    match (ipdv.tsc_pairs, ipdv.tai_pairs) {
        (0, _) => format!("IPDV by {by_tai}"),
        (_, 0) => format!("IPDV by {by_tsc}"),
        (tsc, tai) => format!(
            "IPDV: {} by {by_tsc}, {} by {by_tai}",
            grouped(tsc),
            grouped(tai)
        ),
    }
}

/// Voice quality with all that it is based on.
pub(super) fn voice(figures: &VoiceFigures) -> String {
    let voice = &figures.voice;
    let path = match figures.path {
        PathDelay::Measured => "measured",
        PathDelay::Given => "as given",
        PathDelay::Unknown => "not known: --voice-delay",
    };
    format!(
        "voice: R {}, MOS {} (ITU-T G.107), {}; lost {} %, late {} %, burst ratio {}; mouth to ear \
         {} ms = packet {} + codec {} + path {} ({path}) + buffer {}",
        number(voice.r),
        number(voice.mos),
        voice.codec.name(),
        number(voice.lost_percent),
        number(voice.late_percent),
        number(voice.burst_ratio),
        number(voice.mouth_to_ear_ms),
        number(voice.packet_ms),
        number(voice.algorithm_ms),
        number(voice.path_ms),
        number(voice.playout_ms),
    )
}

fn quic(figures: &QuicFigures) -> String {
    let sign = match figures.known_by {
        QuicSign::LongHeader => "QUIC",
        QuicSign::Port443 => "QUIC by its port, or another protocol",
    };
    let spin = match figures.spin {
        SpinBit::Spins => "its spin bit spins",
        SpinBit::Constant => "no round trip: its spin bit has one value",
        SpinBit::Random => "no round trip: its spin bit can't be told from a random one",
        SpinBit::Undecided => {
            "no round trip: too few packets to tell its spin bit from a random one"
        }
        SpinBit::Unseen => "no round trip: no packet with a short header",
    };
    let mut sentence = format!("{sign}; {spin}");
    if figures.reordered_edges > 0 {
        let edges = counted(figures.reordered_edges, "change");
        sentence += &format!("; {edges} left out: packets had changed places");
    }
    sentence
}

/// Round trips of a flow, in each way that has some, or the variation of its delay: a row in the
/// unit that fits its median.
pub(super) fn quantiles(flow: &FlowReport, title: impl Into<String>) -> Option<Table> {
    let trips = flow.round_trips.iter().map(|trip| {
        let by = match trip.by {
            RoundTripBy::Acknowledgement => "data to ACK",
            RoundTripBy::Timestamps => "timestamps",
            RoundTripBy::SpinBit => "spin bit",
        };
        (by, trip.figures)
    });
    let variation = flow.variation.map(|figures| ("variation", figures));
    let rows = variation.into_iter().chain(trips).map(|(name, figures)| {
        let middle = figures.p50_ns.map_or(figures.mean_ns, |ns| ns as f64);
        let unit = Unit::fitting(middle, LEAST);
        let of = |ns: Option<i64>| maybe(ns, |ns| unit.figure(ns as f64));
        vec![
            format!("{name}, {}", unit.name),
            grouped(figures.n),
            of(Some(figures.min_ns)),
            of(figures.p50_ns),
            of(figures.p90_ns),
            of(figures.p99_ns),
            of(Some(figures.max_ns)),
            maybe(figures.bound_ns, |ns| time(ns as f64)),
        ]
    });
    let first = match flow.variation {
        Some(_) => "time",
        None => "round trip",
    };
    let head = [first, "n", "min", "median", "p90", "p99", "max", "±"];
    Table::figures(title, &head, rows.collect::<Vec<_>>()).if_any()
}

/// Times of a flow, each with its number and bound: a row in the unit that fits its median.
pub(super) fn times(flow: &FlowReport, title: impl Into<String>) -> Option<Table> {
    let figures = [
        ("gap", flow.inter_arrival),
        ("delay", flow.delay),
        ("PDV", flow.pdv),
        ("IPDV", flow.ipdv.map(|it| it.figures)),
        ("|IPDV|", flow.interval_error),
    ];
    // Of a stream with delays also where their tail begins, and how far it reaches.
    let quantiles: &[&str] = match flow.delay {
        Some(_) => &["median", "p90", "p99", "p99.9"],
        None => &["median", "p99"],
    };
    // Far less than the others, or the same of all: it has a unit of its own.
    let bound = |ns: Option<u64>| maybe(ns, |ns| time(ns as f64));
    let rows = figures.iter().filter_map(|(name, figures)| {
        let figures = (*figures)?;
        let middle = figures.p50_ns.map_or(figures.mean_ns, |ns| ns as f64);
        let unit = Unit::fitting(middle, LEAST);
        let of = |ns: Option<i64>| maybe(ns, |ns| unit.figure(ns as f64));
        let mut row = vec![
            format!("{name}, {}", unit.name),
            grouped(figures.n),
            of(Some(figures.min_ns)),
            unit.figure(figures.mean_ns),
            unit.figure(figures.sd_ns),
        ];
        row.extend(quantiles.iter().map(|name| match *name {
            "p90" => of(figures.p90_ns),
            "p99" => of(figures.p99_ns),
            "p99.9" => of(figures.p99_9_ns),
            _ => of(figures.p50_ns),
        }));
        row.extend([of(Some(figures.max_ns)), bound(figures.bound_ns)]);
        Some(row)
    });
    let mut rows: Vec<_> = rows.collect();
    if let Some(jitter) = flow.jitter {
        let unit = Unit::fitting(jitter.mean_ns, LEAST);
        let mut row = vec![
            format!("jitter, {}", unit.name),
            grouped(jitter.n),
            NOTHING.to_owned(),
            unit.figure(jitter.mean_ns),
            NOTHING.to_owned(),
        ];
        row.extend(quantiles.iter().map(|_| NOTHING.to_owned()));
        row.extend([unit.figure(jitter.max_ns), bound(jitter.bound_ns)]);
        rows.push(row);
    }
    let head = [
        &["time", "n", "min", "mean", "sd"],
        quantiles,
        &["max", "±"],
    ]
    .concat();
    Table::figures(title, &head, rows).if_any()
}
