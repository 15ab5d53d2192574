//! The flows beside each other, the account, and how it was measured.

use super::lines::{name, round_trip};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped, ring};
use tscap_document::words::{NOTHING, maybe, number, time};
use tscap_document::{Table, facts};
use tscap_flows::schema::{FlowBy, Place, Quality, StreamFrames};
use tscap_streams::DelayBasis;

/// Most rows of a page's table.
const MOST_ROWS: usize = 200;

/// Where and how it was measured.
pub(super) fn environment(quality: &Quality) -> Table {
    let method = &quality.method;
    let by = match method.flow {
        FlowBy::FiveTuple => "protocol, addresses and ports",
        FlowBy::Rtp => "source of RTP",
        FlowBy::Dscp => "DSCP",
        FlowBy::Gen => "stream of tscap gen",
    };
    let inner = if method.inner { ", inside tunnels" } else { "" };
    let method_said = format!(
        "flows by {by}{inner}; {} at most ({})",
        grouped(method.max_flows),
        ring(method.memory_bytes)
    );
    let mut table = facts(&quality.about, method_said);
    let used = quality.places.iter().enumerate().filter(|(index, _)| {
        let mut flows = quality.flows.iter();
        flows.any(|flow| usize::from(flow.place) == *index)
    });
    let said = used.flat_map(|(_, place)| {
        let [intervals, delays] = of_place(place);
        let is_gen = method.flow == FlowBy::Gen;
        let delays = is_gen.then(|| vec!["delays".to_owned(), delays]);
        [Some(vec!["intervals".to_owned(), intervals]), delays]
    });
    table.rows.extend(said.flatten());
    table
}

/// What intervals and delays of a place are worth.
fn of_place(place: &Place) -> [String; 2] {
    let place_said = said(place);
    let basis = &place.intervals;
    let worth = match (&basis.unbounded, basis.ends_ns) {
        (Some(why), _) => format!("no bound: {why}"),
        (None, Some(ends)) if basis.rate_ppb > 0 => format!(
            "±{} ns, and {} parts per billion of their length",
            grouped(ends),
            grouped(basis.rate_ppb)
        ),
        (None, ends) => format!("±{} ns", maybe(ends, grouped)),
    };
    let delays = match &place.delays {
        DelayBasis::Unavailable { why } => format!("none: {why}"),
        DelayBasis::Clocks {
            host_bound_ns,
            utc_bound_ns,
            reference,
            ..
        } => format!(
            "±{} ns {}; from another one the difference of both clocks adds to it, of which this \
             one's part is {}",
            grouped(*host_bound_ns),
            match reference {
                None => "where one host sends and receives".to_owned(),
                Some(reference) => format!(
                    "from a clock that follows {}, which no sender reads",
                    escaped(reference)
                ),
            },
            match utc_bound_ns {
                Some(bound) => format!("±{} ns", grouped(*bound)),
                None => "not known: its clock was not synchronised".to_owned(),
            }
        ),
    };
    [
        format!("{place_said}: by {}, {worth}", basis.clock),
        format!("{place_said}: {delays}"),
    ]
}

fn said(place: &Place) -> String {
    let interface = place.interface.as_deref();
    let interface = interface.map_or("an interface".into(), escaped);
    let direction = if place.sent { "sent" } else { "received" };
    format!("{direction} on {interface}")
}

/// What the frames of a place are.
fn of_frames(frames: &StreamFrames) -> String {
    let details = [
        (frames.cut, "cut before the stream header"),
        (frames.length_wrong, "with wrong lengths"),
        (frames.checksum_wrong, "with a wrong UDP checksum"),
        (frames.port_wrong, "from the port of another flow"),
        (frames.checksum_absent, "of streams without a UDP checksum"),
        (
            frames.checksum_unknown,
            "of streams too short to check the UDP checksum",
        ),
    ];
    let details = details.iter().filter(|(count, _)| *count > 0);
    let details: Vec<_> = details
        .map(|(count, what)| format!("{} {what}", grouped(*count)))
        .collect();
    let details = if details.is_empty() {
        String::new()
    } else {
        format!(" ({})", details.join(", "))
    };
    format!(
        "{} = {} of streams + {} + {} malformed{details}",
        counted(frames.frames, "frame"),
        grouped(frames.streams),
        counted(frames.others, "other"),
        grouped(frames.malformed)
    )
}

/// What became of every packet, as equations.
pub(super) fn account(quality: &Quality) -> Vec<String> {
    let account = &quality.account;
    let flows = quality.flows.len() as u64 + account.evicted.unlisted;
    let counts = [
        (account.fragments, "fragments"),
        (account.non_ip, "not IP"),
        (account.without_key, "without what flows are by"),
        (account.malformed, "malformed"),
        (account.cut, "cut by the snaplen"),
        (account.not_ethernet, "not Ethernet"),
        (account.untimed, "without a time"),
    ];
    let named = counts
        .iter()
        .map(|(count, name)| (*count, (*name).to_owned()));
    let unrecorded = account.unrecorded.iter();
    let unrecorded = unrecorded.map(|(name, count)| (*count, escaped(name).into_owned()));
    let parts = named.chain(unrecorded).filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, name)| format!(" + {} {name}", grouped(count)));
    let mut sentences = vec![format!(
        "{} = {} in {}{}",
        counted(account.seen, "packet"),
        grouped(account.in_flows),
        counted(flows, "flow"),
        parts.collect::<String>()
    )];
    let streams = quality.places.iter().filter_map(|place| {
        let frames = place.streams.filter(|it| it.frames > 0)?;
        Some(format!("{}: {}", said(place), of_frames(&frames)))
    });
    sentences.extend(streams);
    let evicted = account.evicted;
    if evicted.flows > 0 {
        sentences.push(format!(
            "{} made room for others when {} were in the table (--max-flows): {} of them are not \
             listed, with {}, {} bytes, {} lost",
            counted(evicted.flows, "flow"),
            grouped(quality.method.max_flows),
            grouped(evicted.unlisted),
            counted(evicted.unlisted_packets, "packet"),
            grouped(evicted.unlisted_bytes),
            grouped(evicted.unlisted_lost)
        ));
    }
    sentences
}

/// All flows beside each other.
pub(super) fn flows(quality: &Quality) -> Option<Table> {
    let rows = quality.flows.iter().take(MOST_ROWS).map(|flow| {
        vec![
            name(flow),
            grouped(flow.packets),
            grouped(flow.bytes),
            maybe(flow.packets_per_s, number),
            maybe(flow.bits_per_s.map(|bits| bits / 1e6), number),
            maybe(flow.inter_arrival.map(|it| it.mean_ns), time),
            maybe(flow.inter_arrival.map(|it| it.sd_ns), time),
            maybe(flow.jitter.map(|it| it.last_ns), time),
            maybe(flow.delay.map(|it| it.mean_ns), time),
            maybe(round_trip(flow), time),
            maybe(flow.voice.map(|it| it.voice.r), number),
            maybe(flow.voice.map(|it| it.voice.mos), number),
            maybe(flow.loss.map(|it| it.lost), grouped),
            maybe(flow.loss.map(|it| it.loss_periods), grouped),
            maybe(flow.loss.map(|it| it.duplicates), grouped),
            maybe(flow.reordering.map(|it| it.reordered), grouped),
            maybe(flow.retransmissions.map(|it| it.bytes), grouped),
        ]
    });
    let head = [
        "flow",
        "packets",
        "bytes",
        "packets/s",
        "Mbit/s",
        "gap",
        "its sd",
        "jitter",
        "delay",
        "round trip",
        "R",
        "MOS",
        "lost",
        "periods",
        "copies",
        "reordered",
        "seen again, B",
    ];
    let mut rows: Vec<Vec<String>> = rows.collect();
    // Columns that say nothing of any flow.
    let is_said = |column: usize| rows.iter().any(|row| row[column] != NOTHING);
    let kept: Vec<_> = (0..head.len()).map(is_said).collect();
    let mut shown = 0..head.len();
    let head: Vec<_> = head
        .into_iter()
        .filter(|_| shown.next().is_some_and(|at| kept[at]))
        .collect();
    for row in &mut rows {
        let mut at = 0..kept.len();
        row.retain(|_| at.next().is_some_and(|at| kept[at]));
    }
    let more = quality.flows.len().saturating_sub(MOST_ROWS);
    let more = (more > 0).then(|| format!("and {} more in the JSON", counted(more as u64, "flow")));
    Table::figures("", &head, rows).notes(more).if_any()
}
