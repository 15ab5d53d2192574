//! Which facts of a log are told.

use jiff::Timestamp;

use super::{Against, Reference};
use tscap_base::text::numbers::{counted, grouped, span};
use tscap_clock::{RealNs, Segment};
use tscap_document::words::{NOTHING, whole};
use tscap_document::{Table, columns};
use tscap_references::log::Digest;
use tscap_statistics::Allan;

/// Rows of changes: the latest ones.
const ROWS: usize = 50;

/// What is known at the end.
pub(super) fn facts(digest: &Digest) -> Table {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(header) = &digest.header {
        rows.push(("boot", header.boot_id.clone()));
        rows.push(("tscap", header.tscap.clone()));
    }
    if let (Some(first), Some(last)) = (digest.points.front(), digest.points.back()) {
        let seconds = (last.elapsed_ns - first.elapsed_ns) as f64 / 1e9;
        let (from, until) = (time(first.real), time(last.real));
        let continued = match digest.continued {
            0 => String::new(),
            more => format!("; continued {}", counted(more, "time")),
        };
        rows.push((
            "time",
            format!("{from} to {until} ({seconds:.1} s{continued})"),
        ));
    }
    if let Some(status) = &digest.latest {
        let rate = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
        let ppm = status.counter.rate_bound_ppb as f64 / 1e3;
        let utc = status.utc_bound_ns.map(|ns| format!("± {}", span(ns)));
        rows.extend([
            (
                "counter",
                format!("{} Hz ± {ppm:.3} ppm", grouped(rate.unsigned_abs())),
            ),
            ("to the host", format!("± {}", span(status.host_bound_ns))),
            (
                "host to UTC",
                utc.unwrap_or_else(|| "unknown: not synchronised".into()),
            ),
            ("TAI − UTC", format!("{} s", whole(digest.tai_offset_s))),
            ("least reading", span(status.least_width_ns)),
        ]);
    }
    let totals = digest.totals();
    rows.extend([
        (
            "readings",
            format!(
                "{} used; rejected: {} wide, {} torn, {} implausible",
                grouped(totals.used),
                grouped(totals.wide),
                grouped(totals.torn),
                grouped(totals.implausible)
            ),
        ),
        ("clock set", counted(totals.steps, "time")),
    ]);
    rows.push(("reference", reference(digest)));
    let row = |(name, fact): (&str, String)| vec![name.to_owned(), fact];
    Table::figures("", &[], rows.into_iter().map(row).collect()).words(&[0, 1])
}

/// The other references, and how far the host's clock was ahead of each.
fn reference(digest: &Digest) -> String {
    let reported = |name: String, ahead_ns: i64, bound_ns: u64| {
        let (ahead, bound) = (whole(ahead_ns), span(bound_ns));
        format!("{name}: the host's clock was {ahead} ns ahead at last, ± {bound}")
    };
    let device = digest.reference.iter();
    let device = device.map(|it| reported(it.device.clone(), it.ahead_ns, it.bound_ns));
    let servers = digest.ntp.iter().filter_map(|history| {
        let (_, last) = history.points.back()?;
        let name = format!("NTP server {}", history.server.ip());
        Some(reported(name, last.ahead_ns, last.bound_ns))
    });
    let all: Vec<String> = device.chain(servers).collect();
    if all.is_empty() {
        "none but the counter, of which the kernel makes the host's clock".into()
    } else {
        all.join("; ")
    }
}

impl Reference {
    /// Its name in a title.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Counter => "the counter",
            Self::Device(device) => device,
        }
    }

    /// What follows from a deviation against it.
    pub(super) fn meaning(&self) -> &'static str {
        match self {
            Self::Counter => {
                "the kernel makes CLOCK_REALTIME of this very counter: where no daemon corrects it, \
                 this is one oscillator against itself, and shows the noise of the readings and the \
                 kernel's rounding; where one does, it shows the corrections. Neither says how \
                 well the oscillator keeps its rate: that takes --reference"
            }
            Self::Device(_) => {
                "another oscillator: this is the stability of both together, as long as no daemon \
                 steers one of them by the other (phc2sys does)"
            }
        }
    }
}

/// Where segments began; `None` if the first one lasted.
pub(super) fn changes(digest: &Digest) -> Option<Table> {
    let row = |segment: &Segment| {
        let at = segment.from.0.wrapping_add_signed(segment.mono_to_real.low);
        vec![
            time(RealNs(at)),
            whole(segment.step_ns),
            segment.counter_jump_ns.map_or(NOTHING.into(), whole),
            whole(segment.tai_offset_s),
        ]
    };
    let left_out = digest.changes.len().saturating_sub(ROWS);
    let rows: Vec<_> = digest.changes.iter().skip(left_out).map(row).collect();
    let note =
        (left_out > 0).then(|| format!("left out: {}", counted(left_out as u64, "earlier change")));
    let head = columns("from | clock set by, ns | counter jumped by, ns | TAI − UTC, s");
    let table = Table::figures("Where a segment of the clock began", &head, rows);
    table.notes(note).if_any()
}

/// Each scale; `None` if there is none.
pub(super) fn deviations(against: &Against) -> Option<Table> {
    let row = |scale: &Allan| {
        vec![
            format!("{:.1}", scale.tau_s),
            grouped(scale.factor as u64),
            grouped(scale.terms),
            format!("{:.1}", scale.freedom),
            format!("{:.3e}", scale.deviation),
            format!("{:.3e}–{:.3e}", scale.interval[0], scale.interval[1]),
        ]
    };
    Table::figures(
        format!(
            "Allan deviation of the host's clock against {}",
            against.what.name()
        ),
        &columns(
            "τ, s | averaging factor | terms | degrees of freedom | deviation | 95 % interval",
        ),
        against.scales.iter().map(row).collect(),
    )
    .words(&[])
    .note(against.what.meaning())
    .note(
        "overlapping (IEEE Std 1139; NIST SP 1065, 5.2.4), of phases every 100 ms; terms overlap, \
         and a scale has five times as many as its averaging factor at least; degrees of freedom: \
         as many independent values would be known as well (SP 1065, 5.4.1, for the noise found by \
         5.5.6), five at least; interval: by chi squared",
    )
    .if_any()
}

fn time(real: RealNs) -> String {
    let time = Timestamp::from_nanosecond(real.0.into());
    time.map_or_else(|_| NOTHING.into(), |time| format!("{time:.3}"))
}
