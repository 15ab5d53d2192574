//! A made-up observation for tests.

use super::Watcher;
use super::assemble::verdicts;
use super::schema::{Method, Observation, Subject, VERSION};
use tscap_clock::StampSource;
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;
use tscap_statistics::Summary;
use tscap_traffic::load::Tool;

const ROUNDS: u32 = 10;

/// Nobody, a tscap that changes nothing, and a tcpdump that makes all of it half as long again.
pub fn observation() -> Observation {
    let subjects = vec![
        subject(Watcher::Nobody, 1.0),
        subject(Watcher::Tscap(StampSource::Ktime), 1.001),
        subject(Watcher::Other(Tool::Tcpdump), 1.5),
    ];
    Observation {
        about: about("compare").envelope(Kind::Observer, VERSION, false),
        method: Method {
            rounds: ROUNDS,
            exchanges: 500,
            stream_seconds: 0.1,
            sender_cpu: 0,
            receive_cpu: 1,
            capture_cpus: vec![1],
            snaplen: 128,
            programs: vec!["tcpdump version 4.99".into()],
        },
        verdicts: verdicts(&subjects),
        subjects,
        warnings: Vec::new(),
    }
}

fn subject(watcher: Watcher, times: f64) -> Subject {
    let rounds = |usual: f64| {
        let of_round = |round: u32| times * usual * (1.0 + 0.002 * f64::from(round % 3));
        (0..ROUNDS).map(of_round).collect::<Vec<_>>()
    };
    let trips = (0..2_000).map(|index| (times * f64::from(30_000 + index % 500)) as i64);
    Subject {
        watcher,
        round_trip_ns: Summary::of(trips),
        unanswered: 0,
        median_ns: rounds(30_000.0),
        p99_ns: rounds(45_000.0),
        stream_ns_per_kib: rounds(400.0),
        cpu_ns_per_kib: rounds(300.0),
    }
}
