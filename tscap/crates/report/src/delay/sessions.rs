//! Sessions between two hosts: what became of the packets, how delays vary, and what the clocks
//! of both hosts were aligned by.

use tscap_base::text::numbers::{counted, grouped, span};
use tscap_delay::schema::{
    AlignmentReport, Delays, Measurement, PeerClock, PeerSession, SessionAccount, Variation,
};
use tscap_document::words::number;

/// Its delays with their names, that of the round trip first.
pub(super) fn delays(session: &PeerSession) -> impl Iterator<Item = (&'static str, &Delays)> {
    let all = [
        ("round trip", &session.round_trip),
        ("there", &session.forward),
        ("back", &session.back),
    ];
    all.into_iter()
        .filter_map(|(name, delays)| Some((name, delays.as_ref()?)))
}

/// Its name.
pub(super) fn name(session: &PeerSession) -> String {
    format!("to {}", session.peer)
}

/// What became of the packets, as an equation, and what else came.
pub(super) fn account(session: &PeerSession) -> Vec<String> {
    let account = &session.account;
    let mut parts = vec![format!("{} answered", grouped(account.answered))];
    let others = [
        (account.lost_forward, "lost there"),
        (account.lost_back, "lost on the way back"),
        (account.undecided, "lost either way"),
        (account.late, "late"),
        (account.not_left, "not seen to leave"),
    ];
    let others = others.into_iter().filter(|it| it.0 > 0);
    parts.extend(others.map(|(count, what)| format!("{} {what}", grouped(count))));
    let rejected = account.rejected.iter();
    parts.extend(rejected.map(|(name, count)| format!("{} rejected ({name})", grouped(*count))));
    let mut lines = vec![format!(
        "{} sent = {}",
        grouped(account.sent),
        parts.join(" + ")
    )];
    lines.extend(else_came(account));
    if account.undecided > 0 && account.stateful.is_none() {
        lines.push(
            "the peer does not show that it counts its replies: loss has no direction".to_owned(),
        );
    }
    lines
}

/// What came in another order, twice or unasked.
fn else_came(account: &SessionAccount) -> Option<String> {
    let counts = [
        (account.reordered_forward, "overtaken there"),
        (account.reordered_back, "overtaken on the way back"),
        (account.copies_forward, "copied there"),
        (account.copies_back, "copied on the way back"),
    ];
    let counts = counts.into_iter().filter(|it| it.0 > 0);
    let counts = counts.map(|(count, what)| format!("{} {what}", grouped(count)));
    let unasked = account.unasked.iter();
    let unasked =
        unasked.map(|(name, count)| format!("{} not of a packet ({name})", grouped(*count)));
    let all: Vec<_> = counts.chain(unasked).collect();
    (!all.is_empty()).then(|| format!("beside that: {}", all.join(", ")))
}

/// How delays vary, which needs no alignment of the clocks.
pub(super) fn variation(session: &PeerSession) -> Vec<String> {
    let ways = [
        ("there", &session.forward_variation),
        ("back", &session.back_variation),
    ];
    let ways = ways
        .into_iter()
        .filter_map(|(name, it)| Some((name, it.as_ref()?)));
    ways.map(|(name, it)| varies(name, it)).collect()
}

/// The same of the passages of two captures.
pub(super) fn variation_of(measurement: &Measurement) -> Vec<String> {
    let passages = measurement.passages.iter();
    let ways = passages.flat_map(|it| it.exits.iter().map(|exit| (&it.name, &exit.variation)));
    let ways = ways.filter_map(|(name, it)| Some((name, it.as_ref()?)));
    ways.map(|(name, it)| varies(name, it)).collect()
}

fn varies(name: &str, variation: &Variation) -> String {
    let spread = variation
        .ipdv
        .max
        .unsigned_abs()
        .max(variation.ipdv.min.unsigned_abs());
    format!(
        "{name}: jitter {} (RFC 3550), from packet to packet (IPDV) by {} at most; each ±{}, \
         however far the clocks are apart",
        span(variation.jitter_ns),
        span(spread),
        span(variation.bound_ns)
    )
}

/// The quality of a call that meets what the packets have met.
pub(super) fn voice(session: &PeerSession) -> Vec<String> {
    let quality = session.voice.as_ref().map(|it| {
        format!(
            "a call there: R {}, MOS {} (ITU-T G.107), {} in packets of {} ms; lost {} %, late {} %; \
             mouth to ear {} ms = packet {} + codec {} + path {} + buffer {}",
            number(it.r),
            number(it.mos),
            it.codec.name(),
            number(it.packet_ms),
            number(it.lost_percent),
            number(it.late_percent),
            number(it.mouth_to_ear_ms),
            number(it.packet_ms),
            number(it.algorithm_ms),
            number(it.path_ms),
            number(it.playout_ms),
        )
    });
    quality.into_iter().collect()
}

/// What the delays each way are known by.
pub(super) fn clocks(session: &PeerSession) -> Vec<String> {
    let both = ["the peer's clock", "this one's"];
    aligned(&session.alignment, both, session.peer_clock.as_ref())
}

/// The same of two captures.
pub(super) fn clocks_of(measurement: &Measurement) -> Vec<String> {
    let both = ["the second host's clock", "the first one's"];
    let alignment = measurement.alignment.as_ref();
    let mut lines = alignment.map_or(Vec::new(), |it| aligned(it, both, None));
    if let Some([there, back]) = alignment.and_then(|it| it.packets) {
        lines.push(format!(
            "both captures have {} there and {} back",
            counted(there, "packet"),
            grouped(back)
        ));
    }
    lines
}

/// What is known of two clocks.
fn aligned(
    alignment: &AlignmentReport,
    [peers, own]: [&str; 2],
    peer_clock: Option<&PeerClock>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(bound) = alignment.bound_ns {
        let ahead = alignment.peer_ahead_ns.unwrap_or(0);
        let way = if ahead < 0 { "behind" } else { "ahead of" };
        let by = match alignment.by.as_str() {
            "exchange" => "by the packets themselves",
            "utc" => "by both clocks' errors against UTC",
            _ if alignment.utc_bound_ns.is_some() => "by the packets themselves and UTC",
            _ => "by the packets themselves",
        };
        let median = alignment
            .median_bound_ns
            .map(|it| format!(", {} for half of them", span(it)));
        let apart = match alignment.peer_ahead_ns {
            Some(_) => format!("{peers} is {} {way} {own}; ", span(ahead.unsigned_abs())),
            None => String::new(),
        };
        lines.push(format!(
            "{apart}aligned {by} to ±{}{}",
            span(bound),
            median.unwrap_or_default()
        ));
    }
    let assumed = match alignment.max_asymmetry_ns {
        Some(ns) => format!(
            ", and that the least delays each way differ by {} at most",
            span(ns)
        ),
        None => String::new(),
    };
    lines.push(format!(
        "that assumes that the clocks' rates differ by {} ppm at most{assumed}",
        alignment.max_drift_ppb.div_ceil(1_000)
    ));
    if let Some(peer) = peer_clock {
        let against = if peer.synchronised {
            "of UTC"
        } else {
            "of its own clock, which follows nothing"
        };
        let utc = match alignment.utc_bound_ns {
            Some(ns) => format!("; both are within {} of each other by UTC", span(ns)),
            None => "; UTC does not bound how far both are apart".to_owned(),
        };
        lines.push(format!(
            "the peer says that its times are within {} {against}{utc}",
            span(peer.error_estimate_ns)
        ));
    }
    if let (Some(skew), Some(bound)) = (alignment.skew_ppb, alignment.skew_bound_ppb) {
        let way = if skew < 0 { "slower" } else { "faster" };
        lines.push(format!(
            "{peers} runs {:.3} ppm {way}, ±{:.3}",
            skew.unsigned_abs() as f64 / 1e3,
            bound as f64 / 1e3
        ));
    }
    if alignment.changes > 0 {
        lines.push(format!(
            "it was set, or slewed faster than that, {} while this went on",
            times(alignment.changes)
        ));
    }
    if alignment.unaligned > 0 {
        lines.push(format!(
            "{} have no delays each way",
            counted(alignment.unaligned, "packet")
        ));
    }
    lines
}

fn times(number: u64) -> String {
    if number == 1 {
        "once".to_owned()
    } else {
        format!("{} times", grouped(number))
    }
}
