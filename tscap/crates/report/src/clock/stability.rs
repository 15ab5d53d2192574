//! The Allan deviation of the host's clock against an NTP server (figure 12 of The Case for
//! Feed-Forward Clock Synchronization).

use tscap_document::Figure;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_references::PeerVerdict;
use tscap_references::log::{Digest, NtpHistory};
use tscap_statistics::{Allan, allan, quantile};

/// A curve of each server.
pub(super) fn figures(digest: &Digest) -> Vec<Figure> {
    let servers = digest.ntp.iter().enumerate();
    let figures = servers.filter_map(|(index, history)| figure(index, history));
    figures.collect()
}

/// Of single exchanges: the feed-forward clock, which is made of many of them, would show its own
/// smoothness.
fn scales(history: &NtpHistory) -> Option<(u64, Vec<Allan>)> {
    let used = history.points.iter();
    let used = used.filter(|(_, point)| point.verdict == PeerVerdict::Used);
    let points: Vec<_> = used
        .map(|(at_ns, point)| (*at_ns, point.alone_ns))
        .collect();
    let mut gaps: Vec<u64> = points
        .windows(2)
        .map(|pair| pair[1].0.saturating_sub(pair[0].0))
        .collect();
    gaps.sort_unstable();
    let every_ns = quantile(&gaps, 0.5).filter(|every_ns| *every_ns > 0)?;
    let (first_ns, _) = points[0];
    let mut series: Vec<f64> = Vec::new();
    for (at_ns, alone_ns) in points {
        let turn = (at_ns - first_ns + every_ns / 2) / every_ns;
        let turn = usize::try_from(turn).ok()?;
        // A poll that was not answered leaves a hole; a second exchange in a turn is left out.
        if turn >= series.len() && turn - series.len() < MOST_MISSED {
            series.resize(turn, f64::NAN);
            series.push(alone_ns as f64);
        }
    }
    let scales = allan([&series[..]].into_iter(), every_ns as f64 / 1e9);
    // Two clocks that agree exactly have no deviation to draw.
    let scales: Vec<_> = scales.into_iter().filter(|it| it.deviation > 0.0).collect();
    (!scales.is_empty()).then_some((every_ns, scales))
}

/// Polls without an answer after which the series ends: nobody followed the server meanwhile.
const MOST_MISSED: usize = 10_000;

fn figure(index: usize, history: &NtpHistory) -> Option<Figure> {
    let (every_ns, scales) = scales(history)?;
    let series = |name: &str, shape, points| Series {
        name: name.to_owned(),
        style: 1,
        shape,
        points,
    };
    let points = scales.iter().map(|scale| (scale.tau_s, scale.deviation));
    let bars = scales.iter().flat_map(|scale| {
        let [low, high] = scale.interval.map(|end| (scale.tau_s, end));
        [low, high, (f64::NAN, f64::NAN)]
    });
    let series = vec![
        series("Allan deviation", Shape::Marked, points.collect()),
        series("", Shape::Line, bars.collect()),
    ];
    let x = series[0].points.iter().map(|(x, _)| *x);
    let y = series.iter().flat_map(|it| &it.points).map(|(_, y)| *y);
    let server = history.server.ip();
    let chart = Chart {
        id: format!("ntp-allan-{index}"),
        title: format!("Stability against {server}"),
        description: format!("Allan deviation of the host's clock against {server} on each scale."),
        x: Axis::over("τ, s", Scale::Log, x),
        y: Axis::over("Allan deviation", Scale::Log, y.filter(|it| it.is_finite())),
        series,
        band: None,
    };
    let note = format!(
        "overlapping Allan deviation of single exchanges every {:.1} s, of both clocks together: where \
         it falls as 1/τ, it is the noise of the way; bars: 95 % by chi squared",
        every_ns as f64 / 1e9
    );
    Some(Figure::new(chart, vec![note], None))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use tscap_clock::{RealNs, TscCycles};
    use tscap_references::ntp::NtpPoint;

    const POLL_NS: u64 = 16_000_000_000;

    /// Polls of a server, some of them without an answer, whose errors are `noise`.
    fn history(noise: impl Fn(u64) -> i64) -> NtpHistory {
        let point = |poll: u64| {
            let point = NtpPoint {
                at: TscCycles(poll),
                alone_ns: noise(poll),
                ntp: RealNs(0),
                ntp_bound_ns: 0,
                root_distance_ns: 0,
                ahead_ns: 0,
                bound_ns: 0,
                rtt_ns: 0,
                point_error_ns: 0,
                off_ns: Some(0),
                verdict: PeerVerdict::Used,
            };
            // Replies come at about the time of the poll.
            (poll * POLL_NS + poll % 7 * 1_000_000, point)
        };
        let answered = (0..400).filter(|poll| poll % 50 != 9);
        NtpHistory {
            server: "192.0.2.1:123".parse().unwrap(),
            points: answered.map(point).collect::<VecDeque<_>>(),
        }
    }

    #[test]
    fn a_clock_that_wanders_is_told_from_the_noise_of_the_way() {
        let at = |history: &NtpHistory, tau_s: f64| {
            let (every_ns, scales) = scales(history).unwrap();
            assert_eq!(every_ns / 1_000_000_000, 16);
            let scale = scales.iter().find(|it| it.tau_s >= tau_s).unwrap();
            scale.deviation
        };
        let noise = history(|poll| (poll * 7_919 % 101) as i64 * 1_000);
        assert!(at(&noise, 250.0) < at(&noise, 16.0) / 8.0);
        // Fast and slow by 1 ppm in turns of 1,600 s.
        let wanders = history(|poll| 16_000 * (poll % 200).min(200 - poll % 200) as i64);
        assert!(at(&wanders, 500.0) > 1e-7);
        assert!(figure(0, &wanders).is_some());
    }

    #[test]
    fn few_exchanges_say_nothing() {
        let mut few = history(|_| 0);
        few.points.truncate(2);
        assert!(figure(0, &few).is_none());
        few.points.clear();
        assert!(figure(0, &few).is_none());
    }
}
