//! The layers beside each other, what became of packets there, and the times of a flow.

use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped, ring};
use tscap_document::words::{LEAST, Unit, maybe, whole};
use tscap_document::{Table, facts};
use tscap_flows::layers::schema::{
    Cost, FlowResidences, LayerReport, OwnPrograms, Residence, Residences,
};
use tscap_programs::hook::Layer;

/// Where and how it was measured.
pub(super) fn environment(of: &Residences) -> Table {
    let method = &of.method;
    let said = format!(
        "received on {}: all stamps by {}; a packet is looked for {} ms, {} at most ({})",
        escaped(&method.interface),
        method.clock,
        grouped(method.window_ns / 1_000_000),
        counted(method.max_flows, "flow"),
        ring(method.memory_bytes)
    );
    let mut table = facts(&of.about, said);
    let layers = of.layers.iter();
    let hooks = layers.map(|it| vec![it.layer.name().to_owned(), it.hook.clone()]);
    table.rows.extend(hooks);
    table
}

/// What became of the packets of each layer.
pub(super) fn layers(of: &Residences) -> Table {
    let rows = of.layers.iter().map(|it| {
        let LayerReport { account, cost, .. } = it;
        vec![
            it.layer.name().to_owned(),
            grouped(account.seen),
            grouped(account.came),
            grouped(account.first),
            grouped(account.went_on),
            grouped(account.ended),
            maybe(*cost, |cost: Cost| whole(cost.mean_ns.round() as i64)),
        ]
    });
    let head = ["layer", "seen", "came", "new", "on", "ended", "cost ns"];
    Table::figures("", &head, rows.collect())
}

/// What the counts mean, and what is in no column.
pub(super) fn sentences(of: &Residences) -> Vec<String> {
    let mut sentences = Vec::new();
    for (index, it) in of.layers.iter().enumerate() {
        let (account, layer) = (&it.account, it.layer);
        let next = of.layers.get(index + 1);
        let merged = next.map_or(0, |next| account.merged(&next.account));
        let ended = account.ended - merged;
        if next.is_some() && ended > 0 {
            let packets = counted(ended, "packet");
            sentences.push(format!("{packets} ended at {layer}: {}", reasons(layer)));
        }
        let counts = [
            (
                merged,
                "ended as parts of aggregates, which are new at the next layer",
            ),
            (
                account.pending,
                "seen at no layer after, but too short before the end to tell",
            ),
            (account.unkeyed, "not IP"),
            (account.ambiguous, "like another one within the window"),
            (account.untracked, "not remembered: too many at a time"),
            (account.passed_by, "seen before and after, but not there"),
            (account.missed, "runs of its program left out by the kernel"),
        ];
        let named = counts.map(|(count, what)| (count, what.to_owned()));
        let unrecorded = account.unrecorded.iter();
        let unrecorded = unrecorded.map(|(name, count)| (*count, format!("not recorded ({name})")));
        let all = named.into_iter().chain(unrecorded);
        let said = all.filter(|(count, _)| *count > 0);
        sentences.extend(said.map(|(count, what)| format!("{layer}: {} {what}", grouped(count))));
    }
    sentences
}

/// Why packets may be seen at no layer behind this one.
const fn reasons(layer: Layer) -> &'static str {
    match layer {
        Layer::Hw | Layer::Xdp => "dropped by the driver or the stack, or not for its protocols",
        Layer::Tcx => "dropped by tc, of another protocol, or passed on to another interface",
        Layer::Pre => "dropped by a rule, forwarded, or for another host",
        Layer::LocalIn => "dropped by a rule, without a socket, or for the kernel itself",
        Layer::Cgroup | Layer::App => {
            "not taken by a receive call of UDP: of another protocol, dropped, or left"
        }
    }
}

/// A flow's name, and its packets.
pub(super) fn name(flow: &FlowResidences) -> String {
    let packets = counted(flow.packets, "packet");
    let name = escaped(&flow.name);
    match flow.in_cost_turns {
        0 => format!("{name}: {packets}"),
        left => format!(
            "{name}: {packets}, {} of them while costs were measured, in no figure",
            grouped(left)
        ),
    }
}

/// Times of a flow between its layers: a row in the unit that fits its median.
pub(super) fn times(flow: &FlowResidences) -> Option<Table> {
    let rows = flow.residences.iter().filter_map(|it| {
        let figures = it.figures?;
        let unit = Unit::fitting(figures.p50_ns.unwrap_or(figures.max_ns) as f64, LEAST);
        let of = |ns: Option<i64>| maybe(ns, |ns| unit.figure(ns as f64));
        Some(vec![
            format!("{} → {}, {}", it.from, it.to, unit.name),
            grouped(figures.n),
            of(Some(figures.min_ns)),
            of(figures.p50_ns),
            of(figures.p90_ns),
            of(figures.p99_ns),
            of(figures.p99_9_ns),
            of(Some(figures.max_ns)),
            maybe(it.own_programs, |own: OwnPrograms| unit.figure(own.mean_ns)),
        ])
    });
    let back = flow.residences.iter().filter(|it| it.went_back > 0);
    let back = back.map(|it| {
        let (from, to) = (it.from, it.to);
        let packets = counted(it.went_back, "packet");
        format!("{packets} with the stamps of {from} and {to} the wrong way round: in no figure")
    });
    // Between the two stamps, without what own programs took.
    let bound = |is_hardware: bool| {
        let mut of = flow.residences.iter();
        let of = of.find(|it| (it.from == Layer::Hw) == is_hardware && it.figures.is_some());
        let own = |it: &Residence| it.own_programs.map_or(0, |own| own.greatest_ns);
        of.and_then(|it| Some(it.figures?.bound_ns?.saturating_sub(own(it))))
    };
    let hardware = bound(true).map(|ns| format!("those from {} ±{ns} ns", Layer::Hw));
    let bound = bound(false).map(|ns| format!("each ±{ns} ns, between its two stamps"));
    let own = flow.residences.iter().filter_map(|it| it.own_programs);
    let own = own.map(|own| own.greatest_ns).max().map(|most| {
        format!(
            "tscap: mean of what its own programs took of it, {} ns at most: by so much it would be \
             shorter without them",
            grouped(most)
        )
    });
    let head = [
        "time", "n", "min", "median", "p90", "p99", "p99.9", "max", "tscap",
    ];
    let notes: Vec<_> = back.chain(bound).chain(hardware).chain(own).collect();
    Table::figures("", &head, rows.collect())
        .notes(notes)
        .if_any()
}
