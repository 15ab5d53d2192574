//! `tscap compare --observer`: what captures do to traffic that passes.

use tscap_lab::observer::schema::Metric;
use tscap_lab::observer::{Observation, Watcher};
use tscap_report::saved::Saved;
use tscap_testkit::command::{run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::alone_with;

use super::{LIMIT, MEASURES, compare};

/// Every watcher takes its turns, every question is answered, and the page is drawn again of
/// what was saved.
#[test]
fn every_watcher_takes_its_turns() {
    let programs = ["ip", "tcpdump", "dumpcap", "netsniff-ng"];
    let Some(_lock) = alone_with(MEASURES, &programs) else {
        return;
    };
    // A busy machine takes twice the time.
    let limit = 3 * LIMIT;
    let done = run(&mut compare(&["--observer", "--quick", "--json"]), limit);
    assert!(done.status.success(), "{}", done.stderr);
    let observation = observation(&done.stdout);
    let watchers: Vec<_> = observation.subjects.iter().map(|it| it.watcher).collect();
    for watcher in Watcher::ALL {
        let named = watcher.name();
        let reported = observation.warnings.iter().any(|it| it.contains(&named));
        assert!(
            watchers.contains(&watcher) || reported,
            "{named}: {:?}",
            observation.warnings
        );
    }
    for subject in &observation.subjects {
        let trips = subject.round_trip_ns.as_ref().expect("round trips");
        assert_eq!(trips.n + subject.unanswered, 16 * 200, "{subject:?}");
        assert_eq!(subject.unanswered, 0, "{subject:?}");
        assert!(trips.min > 0, "{subject:?}");
        for metric in Metric::ALL {
            let rounds = subject.rounds(metric);
            assert_eq!(rounds.len(), 16, "{metric:?}");
            assert!(
                rounds.iter().all(|it| it.is_finite() && *it > 0.0),
                "{subject:?}"
            );
        }
    }
    let others = observation.subjects.len() - 1;
    assert_eq!(observation.verdicts.len(), others * Metric::ALL.len());

    let folder = files::folder();
    let (json, page) = (folder.path().join("o.json"), folder.path().join("o.html"));
    std::fs::write(&json, &done.stdout).expect("a file");
    let mut report = std::process::Command::new(tscap_path());
    let done = run(report.arg("report").arg(&json).arg("-o").arg(&page), LIMIT);
    assert!(
        done.stdout.contains("round trip, median"),
        "{}",
        done.stdout
    );
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("What a capture does to the traffic it watches"));
}

#[track_caller]
fn observation(json: &str) -> Observation {
    match Saved::from_json(json) {
        Ok(Saved::Observation(observation)) => *observation,
        other => panic!("{other:?}: {json}"),
    }
}
