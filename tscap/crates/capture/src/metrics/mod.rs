//! The counters of a capture for Prometheus (`--metrics-file`), by node_exporter's textfile
//! collector.

mod file;
mod text;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::file::MetricsFile;
use self::text::Kind::{Counter, Gauge};
use self::text::Page;
use crate::{DirectionSummary, InterfaceSummary, Progress, Ready, Summary};
use tscap_base::text::causes::chain;
use tscap_clock::read_order;
use tscap_file::accounting::{Directed, Direction, Outcomes};

/// Prometheus usually looks every 15 s.
const EVERY: Duration = Duration::from_secs(10);
/// How long the last page may take.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The metrics of one capture.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    /// The label by which captures are told from each other.
    name: String,
    file: MetricsFile,
    started: SystemTime,
    /// The capture's clock and rings, once it is ready.
    clock: Option<Clock>,
    latest: Latest,
    /// When the next page is due.
    due: Instant,
    failures: u64,
    /// The last page could not be written, which has been told.
    is_failing: bool,
}

/// What does not change.
#[derive(Debug)]
struct Clock {
    source: &'static str,
    path: &'static str,
    is_ordered: bool,
    ring_bytes: u64,
}

/// What was last known.
#[derive(Debug, Default)]
struct Latest {
    is_up: bool,
    seen: Directed<u64>,
    interfaces: Vec<InterfaceSummary>,
    bytes: u64,
    rate: f64,
    host_bound_ns: u64,
    utc_bound_ns: Option<u64>,
    /// Fullest that a ring was in the last second, 0 to 1.
    ring_fill: f64,
    /// The same since the start.
    ring_fill_max: f64,
}

impl Metrics {
    /// Of a capture that starts now; none are written yet.
    ///
    /// # Errors
    /// If there can't be another thread.
    pub fn to(path: &Path) -> io::Result<Self> {
        let name = path.file_stem().unwrap_or(OsStr::new(""));
        Ok(Self {
            path: path.to_owned(),
            name: name.to_string_lossy().into_owned(),
            file: MetricsFile::at(path)?,
            started: SystemTime::now(),
            clock: None,
            latest: Latest::default(),
            due: Instant::now(),
            failures: 0,
            is_failing: false,
        })
    }

    /// The capture has begun; nothing is written yet.
    pub fn ready(&mut self, ready: &Ready) {
        self.clock = Some(Clock {
            source: ready.clock.name(),
            path: ready.path,
            is_ordered: ready.ordered,
            ring_bytes: ready.ring_bytes as u64,
        });
        self.latest.is_up = true;
        self.latest.host_bound_ns = ready.host_bound_ns;
    }

    /// Writes a page if one is due. Gives a warning if that fails.
    pub fn progress(&mut self, now: &Progress) -> Option<String> {
        let latest = &mut self.latest;
        latest.seen = now.account.seen;
        latest.interfaces.clone_from(&now.account.interfaces);
        latest.bytes = now.bytes;
        latest.rate = now.rate;
        latest.host_bound_ns = now.host_bound_ns;
        latest.utc_bound_ns = now.account.utc_bound_ns;
        latest.ring_fill = now.ring_fill;
        latest.ring_fill_max = latest.ring_fill_max.max(now.ring_fill);
        if Instant::now() < self.due {
            return None;
        }
        self.due += EVERY;
        self.write()
    }

    /// Writes the last page, by the account if there is one. Gives a warning if that fails.
    /// What a capture before it left stays where this one did not begin.
    pub fn end(mut self, summary: Option<&Summary>) -> Option<String> {
        self.clock.as_ref()?;
        let latest = &mut self.latest;
        latest.is_up = false;
        (latest.rate, latest.ring_fill) = (0.0, 0.0);
        if let Some(summary) = summary {
            latest.seen = Directed::by(|direction| {
                let mut of_each = summary.directions.iter();
                let of = of_each.find(|it| it.direction == DirectionSummary::name(direction));
                of.map_or(0, |it| it.totals.seen)
            });
            latest.interfaces.clone_from(&summary.interfaces);
            latest.bytes = summary.bytes_written;
            latest.host_bound_ns = summary.clock.host_bound_ns;
            latest.utc_bound_ns = summary.clock.utc_bound_ns;
        }
        let warning = self.write();
        let results = self.file.finish(END_WITHIN);
        self.failed(results).or(warning)
    }

    fn write(&mut self) -> Option<String> {
        let page = self.page();
        let results = self.file.write(page);
        self.failed(results)
    }

    /// Counts failures; gives a warning of the first after a success.
    fn failed(&mut self, results: Vec<io::Result<()>>) -> Option<String> {
        let mut warning = None;
        for result in results {
            match result {
                Ok(()) => self.is_failing = false,
                Err(error) => {
                    self.failures += 1;
                    if !std::mem::replace(&mut self.is_failing, true) {
                        warning = Some(format!(
                            "cannot write the metrics to {}: {}; the capture goes on, and \
                             tries again every {} s\nhint: --metrics-file needs a folder that \
                             this user may write to",
                            self.path.display(),
                            chain(&error),
                            EVERY.as_secs()
                        ));
                    }
                }
            }
        }
        warning
    }

    fn page(&self) -> String {
        let now = &self.latest;
        let mut page = Page::of(&self.name);
        let up = u8::from(now.is_up);
        page.metric(
            "tscap_up",
            Gauge,
            "1 while the capture runs, 0 after its end.",
        )
        .sample(&[], up);
        page.metric(
            "tscap_start_time_seconds",
            Gauge,
            "When the capture started, Unix time.",
        )
        .sample(&[], unix_seconds(self.started));
        page.metric(
            "tscap_last_write_timestamp_seconds",
            Gauge,
            "When this was written, Unix time.",
        )
        .sample(&[], unix_seconds(SystemTime::now()));
        page.metric(
            "tscap_metrics_write_failures_total",
            Counter,
            "Times that this could not be written.",
        )
        .sample(&[], self.failures);
        self.clock_and_rings(&mut page);
        page.metric(
            "tscap_seen_frames_total",
            Counter,
            "Frames that entered the programs. Those without an outcome yet are in the rings.",
        );
        for direction in Direction::ALL {
            let labels = [("direction", DirectionSummary::name(direction))];
            page.sample(&labels, now.seen[direction]);
        }
        frames(&mut page, &now.interfaces);
        page.metric("tscap_written_bytes_total", Counter, "Length of all files.")
            .sample(&[], now.bytes);
        page.metric(
            "tscap_written_frames_per_second",
            Gauge,
            "Frames written in the last second.",
        )
        .sample(&[], now.rate);
        page.into_text()
    }

    fn clock_and_rings(&self, page: &mut Page) {
        let (Some(clock), now) = (&self.clock, &self.latest) else {
            return;
        };
        let read = read_order(clock.is_ordered);
        page.metric("tscap_info", Gauge, "What captures and stamps.")
            .sample(
                &[
                    ("version", env!("CARGO_PKG_VERSION")),
                    ("clock", clock.source),
                    ("path", clock.path),
                    ("read", read),
                ],
                1,
            );
        page.metric(
            "tscap_host_clock_bound_seconds",
            Gauge,
            "Greatest error of a stamp against the clock of this host.",
        )
        .sample(&[], seconds(now.host_bound_ns));
        if let Some(bound) = now.utc_bound_ns {
            page.metric(
                "tscap_utc_bound_seconds",
                Gauge,
                "Greatest error of the clock of this host against UTC, as the source that is used says; \
                 absent while it is not synchronised.",
            )
            .sample(&[], seconds(bound));
        }
        let size = clock.ring_bytes;
        page.metric("tscap_ring_size_bytes", Gauge, "Length of each ring.")
            .sample(&[], size);
        let bytes = |share: f64| (share * size as f64).round();
        for (name, of_bytes, share, when) in [
            (
                "tscap_ring_fill_ratio",
                "tscap_ring_fill_bytes",
                now.ring_fill,
                "in the last second",
            ),
            (
                "tscap_ring_fill_max_ratio",
                "tscap_ring_fill_max_bytes",
                now.ring_fill_max,
                "since the start",
            ),
        ] {
            let help = format!("Fullest that a ring was {when}, as a share of its length.");
            page.metric(name, Gauge, &help).sample(&[], share);
            let help = format!("Fullest that a ring was {when}.");
            page.metric(of_bytes, Gauge, &help)
                .sample(&[], bytes(share));
        }
    }
}

/// Which samples an interface has: by its namespace and name.
type Name<'a> = (&'a str, &'a str);

/// Frames by interface, direction and outcome. Interfaces that had one name after the other
/// are one.
fn frames(page: &mut Page, interfaces: &[InterfaceSummary]) {
    let mut counts: BTreeMap<(Name<'_>, &str), (u64, Outcomes)> = BTreeMap::new();
    let mut hooks: BTreeMap<(Name<'_>, &str), &str> = BTreeMap::new();
    let mut missed: BTreeMap<Name<'_>, u64> = BTreeMap::new();
    for interface in interfaces {
        let name = (
            interface.namespace.as_deref().unwrap_or_default(),
            interface.name.as_str(),
        );
        for direction in &interface.directions {
            let of = (name, direction.direction.as_str());
            let (written, outcomes) = counts.entry(of).or_default();
            *written += direction.totals.written;
            *outcomes += direction.totals.outcomes;
            hooks.insert(of, direction.hook.as_deref().unwrap_or_default());
        }
        if let Some(number) = interface.ifdrop {
            *missed.entry(name).or_default() += number;
        }
    }
    page.metric("tscap_interface_info", Gauge, "Where frames are stamped.");
    for (((namespace, name), direction), hook) in hooks {
        let labels = [
            ("interface", name),
            ("namespace", namespace),
            ("direction", direction),
            ("hook", hook),
        ];
        page.sample(&labels, 1);
    }
    page.metric(
        "tscap_frames_total",
        Counter,
        "Frames by what became of them: each has one outcome.",
    );
    for (((namespace, name), direction), (written, outcomes)) in counts {
        let others = outcomes.entries().map(|(entry, count)| (entry.name, count));
        for (outcome, count) in std::iter::once(("written", written)).chain(others) {
            let labels = [
                ("interface", name),
                ("namespace", namespace),
                ("direction", direction),
                ("outcome", outcome),
            ];
            page.sample(&labels, count);
        }
    }
    if !missed.is_empty() {
        page.metric(
            "tscap_interface_missed_frames_total",
            Counter,
            "Frames that the interface missed before any program saw them.",
        );
        for ((namespace, name), count) in missed {
            page.sample(&[("interface", name), ("namespace", namespace)], count);
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn unix_seconds(time: SystemTime) -> f64 {
    // A clock before 1970 counts from there.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as f64 / 1e3
}
