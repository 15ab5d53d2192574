//! `tscap gen` sends flat out over a veth pair, flow by turns. The programs of `tscap qos` run on
//! the sender's CPU, the thread of its flows on another one.

use std::fs;

use anyhow::{Context, Result, ensure};
use aya::programs::XdpMode;
use serde::Serialize;
use serde_json::Value;
use tscap_document::Table;
use tscap_flows::schema::Quality;
use tscap_report::saved::Saved;
use tscap_statistics::Spread;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{generate_on, qos_on};
use tscap_testkit::probes::Attached;

use crate::common::report::Section;
use crate::common::rounds::{Subject, run};
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::common::thread::cpu_ns;

/// What the thread of the flows calls itself.
const FLOWS_THREAD: &str = "tscap-flows";
/// Flows that take turns.
const FLOWS: u64 = 10_000;
/// Packets a second on two CPUs.
const TARGET_RATE: f64 = 1e6;
/// The same on any machine, also on a loaded one.
const ANY_RATE: f64 = 2e5;
/// Frames to it end behind the programs at XDP: nobody has this address.
const NOBODY: &str = "02:00:00:00:00:63";

/// What was found.
#[derive(Debug, Serialize)]
pub struct Live {
    rounds: u32,
    /// Packets of a round.
    packets: u64,
    /// Packets a second without a measurement.
    alone: Spread,
    flows_by: Vec<Measured>,
}

/// What flows are told by, by round.
#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    /// Packets a second.
    rate: Spread,
    /// CPU time of the thread of the flows, ns a packet.
    flows_ns: Spread,
    /// Anonymous memory that was taken while packets came, over what `tscap qos` says that its
    /// table takes at most.
    memory_share: Spread,
    /// Packets that were sent.
    sent: u64,
    /// Those that are in a flow.
    in_flows: u64,
}

/// One round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    rate: f64,
    flows_ns: f64,
    memory_share: f64,
    in_flows: u64,
}

impl Section for Live {
    fn targets(&self) -> Vec<Target> {
        let targets = self.flows_by.iter().flat_map(|it| {
            let name = it.name;
            let missing = it.sent - it.in_flows;
            [
                Target::at_least(
                    format!("{name}: packets a second"),
                    it.rate.median,
                    TARGET_RATE,
                )
                .asserted_if(false),
                Target::at_least(
                    format!("{name}: packets a second, any machine"),
                    it.rate.median,
                    ANY_RATE,
                ),
                Target::at_most(format!("{name}: packets lost"), missing as f64, 0.0),
                Target::at_most(
                    format!("{name}: memory taken, of what is stated"),
                    it.memory_share.max,
                    1.0,
                ),
            ]
        });
        targets.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let mut alone = row("not measured", [show(&self.alone, 0)]);
        alone.extend(["100 %", "", "", "", ""].map(String::from));
        let measured = self.flows_by.iter().map(|it| {
            let share = 100.0 * it.rate.median / self.alone.median;
            let mut row = row(it.name, [show(&it.rate, 0)]);
            row.push(format!("{share:.0} %"));
            row.push(show(&it.flows_ns, 0));
            row.push(show(&it.memory_share, 2));
            row.extend([it.sent, it.in_flows].map(|it| it.to_string()));
            row
        });
        let title = format!(
            "64-byte packets of {FLOWS} flows, live; rounds: {}, packets a round: {}",
            self.rounds, self.packets
        );
        let columns = [
            "flows by",
            "packets/s",
            "of the rate alone",
            "flows, CPU ns",
            "memory of that stated",
            "sent",
            "in flows",
        ];
        let rows = std::iter::once(alone).chain(measured).collect();
        vec![Table::figures(title, &columns, rows)]
    }
}

/// Measures rounds of so many packets, which are sent on the CPU `sender`.
pub fn all(rounds: u32, packets: u64, sender: usize) -> Result<Live> {
    let bench = Bench::new("qos-rate");
    let path = Path {
        bench: &bench,
        packets,
        sender,
    };
    let mut subjects = [
        Subject::new("not measured", || path.alone()),
        Subject::new("5tuple", || path.measured("5tuple")),
        Subject::new("gen", || path.measured("gen")),
    ];
    run("live", rounds, &mut subjects)?;
    let [alone, measured @ ..] = subjects.map(|subject| (subject.name, subject.results));
    let of = |rounds: &[Round], figure: fn(&Round) -> f64| {
        Spread::of(rounds.iter().map(figure).collect())
    };
    let flows_by = measured.iter().map(|(name, results)| Measured {
        name,
        rate: of(results, |it| it.rate),
        flows_ns: of(results, |it| it.flows_ns),
        memory_share: of(results, |it| it.memory_share),
        sent: packets * results.len() as u64,
        in_flows: results.iter().map(|it| it.in_flows).sum(),
    });
    Ok(Live {
        rounds,
        packets,
        alone: of(&alone.1, |it| it.rate),
        flows_by: flows_by.collect(),
    })
}

/// From the sender to the programs.
struct Path<'a> {
    bench: &'a Bench,
    packets: u64,
    /// The sender's CPU.
    sender: usize,
}

impl Path<'_> {
    /// Sends, and nobody measures: a program at the same place lets every frame pass.
    fn alone(&self) -> Result<Round> {
        let _passing = Attached::pass(&self.bench.rx, XdpMode::Driver);
        Ok(Round {
            rate: self.send()?,
            ..Round::default()
        })
    }

    /// Flat out; gives packets a second.
    fn send(&self) -> Result<f64> {
        let before = self.bench.rx.received();
        let sent = generate_on(&self.bench.tx)
            .with(["--sender", "native", "--flat-out", "--size", "64"])
            .with(["--flows", &FLOWS.to_string()])
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
        let came = self.bench.rx.received() - before;
        ensure!(
            came == self.packets,
            "{came} of {} packets came",
            self.packets
        );
        Ok(rate)
    }

    fn measured(&self, by: &str) -> Result<Round> {
        let running = qos_on(&self.bench.rx)
            .with(["--flow", by, "-Q", "in"])
            .ready();
        let pid = running.pid();
        let before = (cpu_ns(pid, FLOWS_THREAD)?, anonymous_bytes(pid)?);
        let rate = self.send()?;
        running.wait_event_with("qos", |event| {
            let account = &event["account"];
            account["seen"].as_u64().unwrap_or(0) >= self.packets
        });
        let taken = cpu_ns(pid, FLOWS_THREAD)? - before.0;
        let memory = anonymous_bytes(pid)?.saturating_sub(before.1);
        let finished = running.stop();
        ensure!(finished.code == Some(0), "tscap qos: {}", finished.stderr);
        let quality = quality(&finished.stdout)?;
        ensure!(
            quality.flows.len() as u64 == FLOWS && quality.account.seen == self.packets,
            "{} flows of {FLOWS}, {:?}",
            quality.flows.len(),
            quality.account
        );
        Ok(Round {
            rate,
            flows_ns: taken as f64 / self.packets as f64,
            memory_share: memory as f64 / quality.method.memory_bytes as f64,
            in_flows: quality.account.in_flows,
        })
    }
}

fn quality(text: &str) -> Result<Quality> {
    let end = text.lines().last().unwrap_or_default();
    match Saved::from_json(end)? {
        Saved::Quality(quality) => Ok(*quality),
        other => anyhow::bail!("tscap qos ended with {other:?}"),
    }
}

/// Anonymous memory of a process (proc_pid_status(5)).
fn anonymous_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kibibytes: u64 = kibibytes.context("no RssAnon")?.trim().parse()?;
    Ok(kibibytes * 1024)
}
