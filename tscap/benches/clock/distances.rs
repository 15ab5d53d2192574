//! tscap's clock of an NTP server at several distances (figure 9 of the paper): on the link, behind
//! a router, and behind one whose link is slow and loaded. All at the same time, each in namespaces
//! of its own. The server tells the host's clock, which is the truth.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use tscap_document::Table;
use tscap_statistics::quantile;
use tscap_testkit::bench::Bench;
use tscap_testkit::between::Between;
use tscap_testkit::capture::{Capture, clock, generate_on};
use tscap_testkit::netns::Netns;
use tscap_testkit::ntp::NtpServer;

use crate::common::report::Section;
use crate::common::run::Options;
use crate::common::table::row;
use crate::common::target::Target;

/// Where each server listens, and as tscap is told to ask it: no more often than this through a
/// router.
const SERVER: &str = "10.9.0.1:123";
const REFERENCE: &str = "ntp:10.9.0.1,poll=8s";
/// Between two lines of the clock.
const EVERY: &str = "100ms";
/// Most bytes that tbf sends at once, and that wait: some frames of the load.
const BURST: u64 = 1_600;
const QUEUE: u64 = 60_000;
/// Shares of the errors that are given: those of the paper.
const QUANTILES: [f64; 5] = [0.01, 0.25, 0.5, 0.75, 0.99];
const HEAD: [&str; 10] = [
    "", "samples", "p1", "p25", "p50", "p75", "p99", "IQR", "RTT", "of bound",
];

/// What is between client and server.
enum Way {
    Link(Bench),
    Router(Between),
}

/// A router's link towards the client: its rate, and frames of 1,250 bytes a second that go through
/// it beside the replies.
type Slow = (&'static str, &'static str);

const ROUTERS: [(&str, Option<Slow>); 3] = [
    ("a router", None),
    (
        "a router, 10 Mbit/s, half of it taken",
        Some(("10mbit", "500")),
    ),
    (
        "a router, 2 Mbit/s, four fifths taken",
        Some(("2mbit", "160")),
    ),
];

/// Errors at one distance: the host's clock less the server's, ns.
#[derive(Debug, Serialize)]
struct Errors {
    way: &'static str,
    samples: usize,
    quantiles_ns: Vec<(f64, f64)>,
    /// Median of the round trips, ns.
    rtt_ns: f64,
    /// Greatest error / stated bound.
    of_bound: f64,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Distances {
    seconds: u64,
    errors: Vec<Errors>,
}

/// Measures eight minutes, or one and a half.
pub fn measure(options: &Options) -> Result<Distances> {
    let seconds = options.either(90, 480);
    let mut ways = vec![("the link", Way::link(), None)];
    for (number, (name, slow)) in ROUTERS.into_iter().enumerate() {
        ways.push((name, Way::router(number, slow), slow));
    }
    let running: Vec<_> = ways
        .iter()
        .map(|(_, way, slow)| {
            let server =
                NtpServer::start(way.server(), SERVER, |asked| vec![asked.reply(0).to_vec()]);
            let client = clock(way.client());
            let client = client.with(["--reference", REFERENCE, "--interval", EVERY]);
            (server, way.load(*slow), client.ready())
        })
        .collect();
    eprintln!("{} distances, {seconds} s", ways.len());
    thread::sleep(Duration::from_secs(seconds));
    let mut errors = Vec::new();
    for ((name, ..), (_server, load, client)) in ways.iter().zip(running) {
        let finished = client.stop();
        if let Some(load) = load {
            load.stop();
        }
        ensure!(finished.code == Some(0), "{}", finished.stderr);
        errors.push(Errors::of(name, &finished.events("clock"))?);
    }
    Ok(Distances { seconds, errors })
}

impl Way {
    fn link() -> Self {
        let bench = Bench::new("distance");
        bench.acquaint();
        Self::Link(bench)
    }

    fn router(number: usize, slow: Option<Slow>) -> Self {
        let between = Between::router(&format!("distance{number}"));
        if let Some((rate, _)) = slow {
            between.throttle(rate, BURST, QUEUE);
        }
        Self::Router(between)
    }

    fn server(&self) -> &Netns {
        match self {
            Self::Link(bench) => &bench.tx.netns,
            Self::Router(between) => &between.bench.tx.netns,
        }
    }

    fn client(&self) -> &Netns {
        match self {
            Self::Link(bench) => &bench.rx.netns,
            Self::Router(between) => &between.far.netns,
        }
    }

    fn load(&self, slow: Option<Slow>) -> Option<Capture> {
        match (self, slow) {
            (Self::Router(between), Some((_, rate))) => {
                let load = generate_on(&between.bench.tx).with(between.through());
                Some(load.with(["--size", "1250", "--rate", rate]).ready())
            }
            _ => None,
        }
    }
}

impl Errors {
    fn of(way: &'static str, lines: &[Value]) -> Result<Self> {
        let known = lines.iter().filter_map(|line| {
            let reference = line.get("reference")?;
            let of = |name| reference.get(name)?.as_f64();
            Some([of("host_ahead_ns")?, of("bound_ns")?, of("rtt_ns")?])
        });
        let known: Vec<_> = known.collect();
        let of_bound = known.iter().map(|[off, bound, _]| off.abs() / bound);
        let of_bound = of_bound.fold(0.0, f64::max);
        let sorted = |column: usize| {
            let mut all: Vec<_> = known.iter().map(|it| it[column]).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (errors, rtts) = (sorted(0), sorted(2));
        let of = |share| quantile(&errors, share).context("tscap said nothing of the server");
        Ok(Self {
            way,
            samples: errors.len(),
            quantiles_ns: QUANTILES
                .into_iter()
                .map(|share| Ok((share, of(share)?)))
                .collect::<Result<_>>()?,
            rtt_ns: quantile(&rtts, 0.5).context("no round trip")?,
            of_bound,
        })
    }

    fn row(&self) -> Vec<String> {
        let us = |ns: f64| format!("{:.1}", ns / 1e3);
        let quantiles: Vec<_> = self.quantiles_ns.iter().map(|(_, ns)| *ns).collect();
        let iqr = quantiles[3] - quantiles[1];
        let figures = [self.samples.to_string()].into_iter();
        let figures = figures.chain(quantiles.into_iter().map(us));
        let figures = figures.chain([us(iqr), us(self.rtt_ns), format!("{:.2}", self.of_bound)]);
        row(self.way, figures)
    }
}

impl Section for Distances {
    fn targets(&self) -> Vec<Target> {
        let of_bound = self.errors.iter().map(|it| it.of_bound);
        vec![Target::at_most(
            "a server at any distance: error / bound, most",
            of_bound.fold(0.0, f64::max),
            1.0,
        )]
    }

    fn tables(&self) -> Vec<Table> {
        let title = format!(
            "an NTP server at several distances, a request every 8 s, {} s: error, µs (Fig. 9)",
            self.seconds
        );
        let mut table = Table::figures(title, &HEAD, self.errors.iter().map(Errors::row).collect());
        table.notes.push(
            "the server tells the host's clock: the truth is 0; RTT: median; of bound: the greatest \
             error over the stated bound"
                .to_owned(),
        );
        vec![table]
    }
}
