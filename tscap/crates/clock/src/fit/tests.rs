use super::*;
use crate::scripted::{Host, Random};
use crate::{Observation, Tracker};
use tscap_statistics::Summary;

mod lines;
mod steps;

const MS: u64 = 1_000_000;

/// A stamp: the true time, the counter, and the time that it was converted to live.
type Stamp = (u64, RawStamp, RealNs);

/// A capture of so many seconds with `gap` ns between two drains: its stamps, its clock's
/// history, and the greatest error that it states for the live times.
fn capture(host: &Host, gap: u64, seconds: u64) -> (Vec<Stamp>, History, u64) {
    let mut random = Random(3);
    let mut gaps = move || {
        let mut gap = |least: u64| least + random.exponential(6.0) as u64;
        [gap(15), gap(35), gap(15)]
    };
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, gaps())).unwrap();
    tracker.observe(&host.cross(100 * MS, gaps()));
    let (mut stamps, mut samples) = (Vec::new(), Vec::new());
    let mut t = 100 * MS;
    while t < seconds * 1_000 * MS {
        t += gap;
        let seen = tracker.observe(&host.cross(t, gaps()));
        assert_eq!(seen, Observation::Agrees);
        let conversion = tracker.conversion();
        for part in [1, 4, 7] {
            let at = t - gap * part / 10;
            let stamp = RawStamp(host.cycles(at).0);
            stamps.push((host.real(at), stamp, conversion.to_real(stamp)));
        }
        if t % 10_000_000_000 < gap {
            samples.extend(tracker.take_samples());
        }
    }
    samples.extend(tracker.take_samples());
    let history = History {
        left_out: 0,
        source: StampSource::Tsc,
        rate: tracker.counter().map(|counter| counter.rate()),
        segments: tracker.segments().to_vec(),
        samples,
    };
    (stamps, history, tracker.host_bound_ns())
}

/// Errors of the live stamps and of the refined ones, all of which are within what is
/// stated for them; at least a share of them is told by the history.
fn errors(host: &Host, gap: u64, least_reported: f64) -> [Summary; 2] {
    errors_in(host, gap, 120, least_reported)
}

fn errors_in(host: &Host, gap: u64, seconds: u64, least_reported: f64) -> [Summary; 2] {
    let (stamps, history, live_bound_ns) = capture(host, gap, seconds);
    let fit = Fit::new(&history);
    let error = |real: RealNs, truth: u64| i64::try_from(real.0.abs_diff(truth)).unwrap();
    let live = stamps.iter().map(|(truth, _, live)| error(*live, *truth));
    let (mut reported, mut outside) = (0.0, 0);
    let refined: Vec<i64> = stamps
        .iter()
        .map(
            |(truth, stamp, live)| match fit.refine(*stamp, *live, live_bound_ns) {
                Ok(Estimate { real, bound_ns }) => {
                    reported += 1.0;
                    assert!(real.0.abs_diff(live.0) <= live_bound_ns);
                    let error = error(real, *truth);
                    outside += usize::from(error.unsigned_abs() > bound_ns);
                    error
                }
                Err(_) => error(*live, *truth),
            },
        )
        .collect();
    let of = stamps.len();
    assert_eq!(outside, 0, "of {of}, live bound {live_bound_ns}");
    assert!(reported >= of as f64 * least_reported, "{reported} of {of}");
    [Summary::of(live).unwrap(), Summary::of(refined).unwrap()]
}

/// A time daemon at work: the clock's rate changes twice in three seconds.
fn slewed() -> Host {
    let ppb = [500_000, -40_000, 8_000, -500_000, 0];
    let slews = (0..160).map(|turn| (turn * 733 * MS, ppb[turn as usize % ppb.len()]));
    Host {
        hertz: 2_596_130_000,
        slews: slews.collect(),
    }
}

#[test]
fn slews_are_drawn_from_both_sides() {
    let [live, refined] = errors(&slewed(), 10 * MS, 0.95);
    assert!(refined.p50 <= live.p50);
    assert!(refined.p99.unwrap() * 2 <= live.p99.unwrap());
}

#[test]
fn it_is_never_worse_than_live() {
    let undisturbed = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 12_000)],
    };
    for (host, gap, seconds) in [
        (&undisturbed, 10 * MS, 120),
        (&undisturbed, MS / 2, 30),
        (&slewed(), MS / 2, 30),
    ] {
        let [live, refined] = errors_in(host, gap, seconds, 0.5);
        assert!(refined.p50 <= live.p50 && refined.p99 <= live.p99);
    }
}

/// A clock under NTP: each second its rate is another, by so many ppb at most.
fn disciplined(most_ppb: u64) -> Host {
    let mut random = Random(most_ppb);
    let mut rate = move || ((random.uniform() - 0.5) * 2.0 * most_ppb as f64) as i64;
    Host {
        hertz: 2_596_130_000,
        slews: (0..130)
            .map(|second| (second * 1_000 * MS, rate()))
            .collect(),
    }
}

#[test]
fn small_changes_of_the_rate_make_it_no_worse() {
    let cases = [
        (100, 3),
        (500, 3),
        (20, 10),
        (50, 10),
        (100, 10),
        (300, 10),
        (2_000, 10),
    ];
    for (most_ppb, gap) in cases {
        let [live, refined] = errors(&disciplined(most_ppb), gap * MS, 0.5);
        assert!(
            refined.p50 <= live.p50 && refined.p99 <= live.p99,
            "{most_ppb} ppb: {live:?} {refined:?}"
        );
    }
}

/// Bends that are as large as what a reading shows in some ms.
#[test]
fn changes_of_the_rate_by_2000_ppb_cost_a_nanosecond_at_most() {
    for gap in [2, 5] {
        let [live, refined] = errors(&disciplined(2_000), gap * MS, 0.5);
        assert!(refined.p50 <= live.p50.map(|ns| ns + 1), "{gap} ms");
        assert!(refined.p99 <= live.p99.map(|ns| ns + 1), "{gap} ms");
    }
}

/// A servo: so many times a second the rate is another, by so many ppb at most.
fn servo(hertz: u64, most_ppb: u64) -> Host {
    let mut random = Random(hertz);
    let mut rate = move || ((random.uniform() - 0.5) * 2.0 * most_ppb as f64) as i64;
    Host {
        hertz: 2_596_130_000,
        slews: (0..25 * hertz)
            .map(|turn| (turn * 1_000 * MS / hertz, rate()))
            .collect(),
    }
}

/// Of most of its bends the history has no samples: it says how many, and the stamps
/// there are left as they were.
#[test]
fn where_bends_were_left_out_stamps_are_left_as_they_were() {
    for (hertz, most_ppb) in [(8, 5_000), (16, 5_000), (32, 50_000)] {
        let [live, refined] = errors_in(&servo(hertz, most_ppb), 10 * MS, 24, 0.0);
        // Until there is a line, in the first second, no bend shows.
        assert!(
            refined.p99 <= live.p99.map(|ns| ns + 2),
            "{hertz} Hz: {live:?} {refined:?}"
        );
    }
    let (_, history, _) = capture(&servo(32, 50_000), 10 * MS, 24);
    let left_out = history.samples.iter().map(|sample| sample.bends_left_out);
    assert!(left_out.sum::<u64>() > 200);
}

/// Pulses of 500 ppm for 12 ms: one bend in each of two neighbouring intervals.
#[test]
fn two_bends_side_by_side_move_no_stamp_out_of_its_bound() {
    for phase in 0..10 {
        let pulses = (1..24u64).map(|turn| turn * 1_000 * MS + phase * MS + turn * 137_000);
        let slews = pulses.flat_map(|at| [(at, 500_000), (at + 12 * MS, 0)]);
        let host = Host {
            hertz: 2_596_130_000,
            slews: [(0, 0)].into_iter().chain(slews).collect(),
        };
        let [live, refined] = errors_in(&host, 10 * MS, 24, 0.1);
        assert!(refined.max <= live.max, "{phase}: {live:?} {refined:?}");
    }
}

#[test]
fn a_constant_offset_is_narrowed_within_its_segment_only() {
    let segment = |from, until, low, high| Segment {
        after: None,
        from: MonoNs(from),
        until: MonoNs(until),
        mono_to_real: Bounds { low, high },
        tai_offset_s: 0,
        step_ns: 0,
        cause: None,
        counter_jump_ns: None,
        samples: 9,
    };
    let fit = Fit::new(&History {
        left_out: 0,
        source: StampSource::Ktime,
        rate: None,
        segments: vec![segment(0, 100, 990, 1_010), segment(200, 300, 5_000, 5_004)],
        samples: Vec::new(),
    });
    let refine = |stamp, live| {
        let Estimate { real, bound_ns } = fit.refine(RawStamp(stamp), RealNs(live), 100)?;
        Ok((real.0, bound_ns))
    };
    assert_eq!(refine(50, 1_070), Ok((1_060, 110)));
    assert_eq!(refine(50, 1_055), Ok((1_055, 100)));
    assert_eq!(refine(250, 5_200), Ok((5_250, 150)));
    // Never farther than the bound of the live time.
    assert_eq!(refine(250, 5_149), Err(NotRefined::BeyondBound));
    // The clock was set somewhere in here.
    assert_eq!(refine(150, 1_150), Err(NotRefined::Untold));
}

/// Nobody knows the offset between readings more than 3 s apart.
#[test]
fn a_hole_is_left_out_of_a_segment() {
    let offset = Bounds {
        low: 990,
        high: 1_010,
    };
    let sample = |ms: u64| Sample {
        width_ns: 60,
        ..Sample::at(ms * MS, ms * MS + 1_000)
    };
    // In any order; those of the first 20 s are in another file.
    let samples = [31_000, 22_000, 24_900, 28_000, 33_900].map(sample);
    let fit = Fit::new(&History {
        left_out: 0,
        source: StampSource::Ktime,
        rate: None,
        segments: vec![Segment {
            after: None,
            from: MonoNs(0),
            until: MonoNs(38_000 * MS),
            mono_to_real: offset,
            tai_offset_s: 37,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 9,
        }],
        samples: samples.to_vec(),
    });
    let is_reported = |ms: u64| fit.allowed(RawStamp(ms * MS)).is_some();
    for (reported, ms) in [
        (false, 20_900),
        (true, 21_000),
        (true, 24_900),
        (false, 24_901),
        (false, 28_000),
        (true, 28_001),
        (true, 33_900),
        (false, 33_901),
        (false, 37_999),
        (true, 38_000),
    ] {
        assert_eq!(is_reported(ms), reported, "{ms}");
    }
}

/// A line is told for a second beyond its readings, on either side; also around a hole.
#[test]
fn a_line_is_told_for_a_second_beyond_its_readings() {
    let host = Host {
        hertz: 2_000_000_000,
        slews: vec![],
    };
    let (_, mut history, _) = capture(&host, 10 * MS, 40);
    let is_kept = |ms: u64| (10_000..20_000).contains(&ms) || (25_000..35_000).contains(&ms);
    history.samples.retain(|sample| is_kept(sample.mono.0 / MS));
    let stamp = |index: usize| history.samples[index].tsc.expect("it was read")[0].0;
    let gap = |index: &usize| stamp(*index) - stamp(index - 1);
    let after = (1..history.samples.len()).max_by_key(gap).unwrap();
    let edges = [0, after - 1, after, history.samples.len() - 1].map(stamp);
    let fit = Fit::new(&history);
    let ms = 2_000_000;
    let is_reported = |at: u64| fit.allowed(RawStamp(at)).is_some();
    for (edge, outwards) in edges.into_iter().zip([-1, 1, -1, 1]) {
        for (reported, away) in [(true, -900), (true, 900), (false, 1_100), (false, 1_900)] {
            let at = edge.wrapping_add_signed(outwards * away * ms);
            assert_eq!(is_reported(at), reported, "{away} ms from {edge}");
        }
    }
    let [from, until] = [edges[0], edges[3]].map(RawStamp);
    // But for some 4 s of the 25.
    let reported = fit.coverage(from, until);
    assert!((0.83..0.87).contains(&reported), "{reported}");
}

/// A capture that was killed: the clock was set, and no statistics tell it.
#[test]
fn a_line_ends_with_what_is_known_of_its_segment() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 12_000)],
    };
    let (stamps, whole, bound_ns) = capture(&host, 10 * MS, 120);
    let end = whole.samples.last().unwrap().mono.0;
    let history = |from: u64, until: u64| {
        let mut history = whole.clone();
        let segment = &mut history.segments[0];
        (segment.from, segment.until) = (MonoNs(from), MonoNs(until));
        history
            .samples
            .retain(|sample| (from..=until).contains(&sample.mono.0));
        Fit::new(&history)
    };
    for ms in [0, 300] {
        let (from, until) = (20_000 * MS, end - 5_000 * MS + ms * MS);
        let fit = history(from, until);
        for (truth, stamp, live) in &stamps {
            let mono = truth - crate::scripted::EPOCH;
            let stepped = RealNs(live.0 + 1_000_000_000);
            if mono < from || mono > until {
                assert_eq!(
                    fit.refine(*stamp, stepped, u64::MAX),
                    Err(NotRefined::Untold),
                    "{mono}"
                );
            } else if mono > from + 1_000 && mono < until - 1_000 {
                assert!(fit.refine(*stamp, *live, bound_ns).is_ok(), "{mono}");
            }
        }
    }
}
