//! The whole of `tscap delay`, live: `tscap gen` sends through a device that costs little, an eBPF
//! program that hands frames from one interface to the other. Programs at XDP of the entry and at
//! the far end of the exit's pair run on the sender's CPU, the matcher on another one.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aya::programs::XdpMode;
use serde::Serialize;
use serde_json::Value;
use tscap_delay::schema::{Measurement, MeasuringPoint};
use tscap_document::Table;
use tscap_statistics::Spread;
use tscap_testkit::between::Between;
use tscap_testkit::capture::{delay, generate_on};
use tscap_testkit::probes::{Attached, Forwarding};

use crate::common::report::Section;
use crate::common::rounds::{Subject, run};
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::common::thread::cpu_ns;

/// What the matcher's thread calls itself.
const MATCHER: &str = "tscap-matcher";
/// Packets that are remembered: more than come in a window.
const MOST_PACKETS: &str = "4194304";
/// Frames to it end right behind the far end's program, as those to others do.
const NOBODY: &str = "02:00:00:00:00:63";
/// Longer than packets are remembered (`--window`).
const WINDOW_OVER: Duration = Duration::from_millis(1_300);
/// Packets a second, in and out, on two CPUs.
const TARGET_RATE: f64 = 1e6;
/// The same on any machine, also on a loaded one.
const ANY_RATE: f64 = 2e5;
/// CPU time of the matcher, ns a packet.
const TARGET_NS: f64 = 200.0;

/// What was found.
#[derive(Debug, Serialize)]
pub struct Live {
    rounds: u32,
    /// Packets of a round.
    packets: u64,
    /// Packets a second without a measurement.
    alone: Spread,
    matched_by: Vec<Measured>,
}

/// A way to match, by round.
#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    /// Packets a second.
    rate: Spread,
    /// CPU time of the matcher's thread, ns a packet.
    matcher_ns: Spread,
    /// Packets that were sent.
    sent: u64,
    /// Packets that were matched.
    matched: u64,
    /// Packets with another outcome, at either end.
    named: u64,
    /// Frames that no program recorded.
    unrecorded: u64,
}

/// One round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    rate: f64,
    matcher_ns: f64,
    matched: u64,
    named: u64,
    unrecorded: u64,
}

impl Section for Live {
    fn targets(&self) -> Vec<Target> {
        let targets = self.matched_by.iter().flat_map(|it| {
            let name = it.name;
            let rate = |what: &str| format!("{name}: packets a second{what}");
            let missing = (it.sent - it.matched) + it.unrecorded;
            [
                Target::at_least(rate(""), it.rate.median, TARGET_RATE).asserted_if(false),
                Target::at_least(rate(", any machine"), it.rate.median, ANY_RATE),
                Target::at_most(format!("{name}: not matched"), missing as f64, 0.0),
                Target::at_most(
                    format!("{name}: matcher, ns a packet"),
                    it.matcher_ns.median,
                    TARGET_NS,
                )
                .asserted_if(false),
            ]
        });
        targets.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let alone = row("not measured", [show(&self.alone, 0)]);
        let rates = self.matched_by.iter().map(|it| {
            let share = 100.0 * it.rate.median / self.alone.median;
            let mut row = row(it.name, [show(&it.rate, 0)]);
            row.push(format!("{share:.0} %"));
            row.push(show(&it.matcher_ns, 0));
            row.extend([it.sent, it.matched, it.named, it.unrecorded].map(|it| it.to_string()));
            row
        });
        let mut rows = vec![alone];
        rows[0].extend(["100 %", "", "", "", "", ""].map(String::from));
        rows.extend(rates);
        let title = format!(
            "64-byte packets through an eBPF forwarder, live; rounds: {}, packets a round: {}",
            self.rounds, self.packets
        );
        let columns = [
            "matched by",
            "packets/s",
            "of the rate alone",
            "matcher, CPU ns",
            "sent",
            "matched",
            "named",
            "unrecorded",
        ];
        vec![Table::figures(title, &columns, rows)]
    }
}

/// Measures rounds of so many packets, which `sender` sends.
pub fn all(rounds: u32, packets: u64, sender: usize) -> Result<Live> {
    let between = Between::new("delay", 1500);
    let forwarding = Forwarding::between(&between.bench.rx, &between.out);
    let path = Path {
        between: &between,
        packets,
        sender,
    };
    let mut subjects = [
        Subject::new("not measured", || path.alone()),
        Subject::new("gen", || path.measured("gen")),
        Subject::new("route", || path.measured("route")),
    ];
    run("live", rounds, &mut subjects)?;
    drop(forwarding);
    let [alone, measured @ ..] = subjects.map(|subject| (subject.name, subject.results));
    let of = |rounds: &[Round], figure: fn(&Round) -> f64| {
        Spread::of(rounds.iter().map(figure).collect())
    };
    let total = |rounds: &[Round], figure: fn(&Round) -> u64| rounds.iter().map(figure).sum();
    let matched_by = measured.iter().map(|(name, results)| Measured {
        name,
        rate: of(results, |it| it.rate),
        matcher_ns: of(results, |it| it.matcher_ns),
        sent: packets * results.len() as u64,
        matched: total(results, |it| it.matched),
        named: total(results, |it| it.named),
        unrecorded: total(results, |it| it.unrecorded),
    });
    Ok(Live {
        rounds,
        packets,
        alone: of(&alone.1, |it| it.rate),
        matched_by: matched_by.collect(),
    })
}

/// From the sender to the far end.
struct Path<'a> {
    between: &'a Between,
    packets: u64,
    /// The sender's CPU.
    sender: usize,
}

impl Path<'_> {
    /// Sends, and nobody measures: programs at the same places let every frame pass.
    fn alone(&self) -> Result<Round> {
        let ends = [&self.between.bench.rx, &self.between.far];
        let _passing = ends.map(|port| Attached::pass(port, XdpMode::Driver));
        Ok(Round {
            rate: self.send()?,
            ..Round::default()
        })
    }

    /// Flat out; gives packets a second.
    fn send(&self) -> Result<f64> {
        let before = self.between.far.received();
        let sent = generate_on(&self.between.bench.tx)
            .with(["--sender", "native", "--flat-out", "--size", "64"])
            .with(["--cpu", &self.sender.to_string()])
            .with(["-c", &self.packets.to_string()])
            .with(["--dst-mac", NOBODY])
            .run();
        ensure!(sent.code == Some(0), "tscap gen: {}", sent.stderr);
        let mut lines = sent.stdout.lines().rev();
        let rate = lines.find_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            line.get("rate_asked").and(line["rate"].as_f64())
        });
        let rate = rate.context("tscap gen tells no rate")?;
        // Frames that the interface refused were sent again: what came is what counts.
        let came = self.between.far.received() - before;
        ensure!(
            came == self.packets,
            "{came} of {} packets came to the far end",
            self.packets
        );
        Ok(rate)
    }

    fn measured(&self, matched_by: &str) -> Result<Round> {
        let (entry, exit) = (&self.between.bench.rx.name, &self.between.out.name);
        let running = delay(self.between.device())
            .with(["--in", entry, "--out", exit, "--out-point", "peer"])
            .with(["--peer-netns", self.between.far.netns.name()])
            .with(["--match", matched_by, "--max-packets", MOST_PACKETS])
            .ready();
        let before = cpu_ns(running.pid(), MATCHER)?;
        let rate = self.send()?;
        // Until each packet was judged.
        thread::sleep(WINDOW_OVER);
        let taken = cpu_ns(running.pid(), MATCHER)? - before;
        let finished = running.stop();
        ensure!(finished.code == Some(0), "tscap delay: {}", finished.stderr);
        let end = finished.stdout.lines().last().unwrap_or_default();
        let measurement = tscap_report::saved::read::<Measurement>(end)?;
        let passage = measurement.passages.first().context("no passage")?;
        let exit = passage.exits.first().context("no exit")?;
        let account = &exit.account;
        ensure!(
            passage.entry.seen == self.packets && exit.spot.seen == self.packets,
            "the programs saw {} and {} of {} packets",
            passage.entry.seen,
            exit.spot.seen,
            self.packets
        );
        let unrecorded =
            |spot: &MeasuringPoint| spot.unkeyed + spot.unrecorded.values().sum::<u64>();
        Ok(Round {
            rate,
            matcher_ns: taken as f64 / self.packets as f64,
            matched: account.matched,
            named: account.entered.max(account.left) - account.matched,
            unrecorded: unrecorded(&passage.entry) + unrecorded(&exit.spot),
        })
    }
}
