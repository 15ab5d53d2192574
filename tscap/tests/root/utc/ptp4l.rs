//! ptp4l with software stamps (`free_running`, so that it never sets the clock), a grandmaster and
//! its slave.

use std::path::Path;
use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::command::{SHORT, run};
use tscap_testkit::files;
use tscap_testkit::port::Port;
use tscap_testkit::root::root;
use tscap_testkit::wait::until;
use tscap_utc::{Parts, Roots, UtcBound, UtcReader, UtcSource};

use super::{Daemon, program};

const LIMIT: Duration = Duration::from_secs(60);
/// clockAccuracy 0x22.
const ACCURACY_NS: u64 = 250;

fn ptp4l(program: &Path, port: &Port, folder: &Path, name: &str, lines: &[&str]) -> Daemon {
    let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
    let own = format!(
        "[global]\ntime_stamping software\nfree_running 1\nlogSyncInterval -2\n\
         logMinDelayReqInterval -2\nuds_address {}\n",
        at("")
    );
    std::fs::write(at(".conf"), own + &lines.join("\n") + "\n").expect("a file");
    let mut command = port.netns.command(program.to_str().expect("UTF-8"));
    command.args(["-m", "-q", "-i", &port.name, "-f", &at(".conf")]);
    Daemon::start(command, Path::new(&at(".said")))
}

#[test]
fn a_slave_of_a_traceable_grandmaster_bounds_the_clock() {
    let Some(_lock) = root() else {
        return;
    };
    let Some((daemon, pmc)) =
        program("linuxptp", "usr/sbin/ptp4l").zip(program("linuxptp", "usr/sbin/pmc"))
    else {
        return;
    };
    let bench = Bench::new("utc-ptp4l");
    bench.acquaint();
    let folder = files::folder();
    let at = |name: &str| folder.path().join(name);
    let lines = ["priority1 1", "clockClass 6", "clockAccuracy 0x22"];
    let mut master = ptp4l(&daemon, &bench.tx, folder.path(), "master", &lines);
    let mut slave = ptp4l(&daemon, &bench.rx, folder.path(), "slave", &["slaveOnly 1"]);
    let roots = Roots {
        ptp4l: vec![at("none"), at("slave")],
        ..Roots::below(folder.path())
    };
    // ptp4l answers within its network namespace.
    bench.rx.netns.enter(|| {
        until("the socket of ptp4l", LIMIT, || {
            master.must_run();
            slave.must_run();
            (at("slave").exists() && at("master").exists()).then_some(())
        });
        let mut reader = UtcReader::open(roots);
        let mut reading = |what: &str, is_wanted: &dyn Fn(&UtcBound) -> bool| {
            let mut seen = None;
            until(what, LIMIT, || {
                seen = reader.read().by(UtcSource::Ptp4l).cloned().or(seen.take());
                seen.clone().filter(|it| is_wanted(it))
            })
        };
        // A grandmaster that has its time from nowhere bounds nothing.
        let why = |it: &UtcBound| it.unknown.clone().unwrap_or_default();
        reading("a slave", &|it| why(it).contains("not traceable"));
        let settings = "SET GRANDMASTER_SETTINGS_NP clockClass 6 clockAccuracy 0x22 \
                        offsetScaledLogVariance 0xffff currentUtcOffset 37 leap61 0 leap59 0 \
                        currentUtcOffsetValid 1 ptpTimescale 0 timeTraceable 1 \
                        frequencyTraceable 0 timeSource 0x20";
        let mut command = std::process::Command::new(&pmc);
        command
            .args(["-u", "-b", "0", "-i"])
            .arg(at("pmc"))
            .arg("-s")
            .arg(at("master"));
        let done = run(command.arg(settings), SHORT);
        assert!(done.stdout.contains("RESPONSE"), "{done:?}");
        let mut seen = Vec::new();
        for _ in 0..3 {
            let after = seen.last().map(|it: &UtcBound| it.as_of);
            let is_new = |it: &UtcBound| Some(it.as_of) > after && it.bound_ns.is_some();
            seen.push(reading("a bound", &is_new));
        }
        for said in &seen {
            let Parts::Ptp4l {
                offset_ns,
                path_delay_ns,
                accuracy_ns,
                steps_removed,
                clock,
                growth_ns,
                ..
            } = &said.parts
            else {
                panic!("{said:?}");
            };
            assert_eq!((*accuracy_ns, *steps_removed), (Some(ACCURACY_NS), 1));
            assert_eq!(clock, "CLOCK_REALTIME");
            assert!(*path_delay_ns < 10_000_000, "{said:?}");
            // Of a Sync of less than 10 s ago.
            assert!(*growth_ns < 500_000, "{said:?}");
            let parts = offset_ns.unsigned_abs() + path_delay_ns + ACCURACY_NS + growth_ns;
            assert_eq!(said.bound_ns, Some(parts));
            // The truth: both have one clock.
            let [earliest, latest] = said.utc_less_host_ns.expect("an interval").0;
            assert!(earliest <= 0 && latest >= 0, "{said:?}");
        }
        drop(master);
        reading("the end of the master", &|it| it.bound_ns.is_none());
    });
}
