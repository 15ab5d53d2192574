//! The commands of docs/two-hosts.md, and those of README.md that are of it.

use tscap_delay::schema::Measurement;
use tscap_testkit::capture::delay;
use tscap_testkit::root::root;
use tscap_testkit::shown::{Runner, commands};

use super::{bed, served, session};

/// A line's words behind `tscap delay`, with what is here in the place of names of others.
fn words<'a>(line: &'a str, interface: &'a str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.split(' ').skip(2);
    while let Some(word) = rest.next() {
        match word {
            // The test is in that namespace, and both ends speak JSON here.
            "--netns" => drop(rest.next()),
            "--json" => {}
            "eth0" | "rx0" => words.push(interface.to_owned()),
            "192.0.2.7" => words.push("10.9.0.2".to_owned()),
            word => words.push(word.to_owned()),
        }
    }
    words
}

/// Each command that sends, against the reflector that is shown before it.
#[test]
fn every_command_works() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-docs");
    let mut lines = commands(Runner::TwoHosts);
    // Those that read captures are in files.rs.
    lines.retain(|line| !line.contains(".pcapng"));
    let (serving, sending): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.contains("--serve"));
    assert!(serving.len() >= 2 && sending.len() >= 3, "{lines:?}");
    for reflector in &serving {
        let running = delay(&bench.rx.netns)
            .with(words(reflector, &bench.rx.name))
            .start();
        running.wait_event("ready");
        let has_port = reflector.contains("8620");
        for line in sending.iter().filter(|it| it.contains("8620") == has_port) {
            let finished = delay(&bench.tx.netns)
                .with(words(line, &bench.tx.name))
                .run();
            let session = session(&finished);
            assert!(
                session.account.answered > 100,
                "{line}: {:?}",
                session.account
            );
            assert_eq!(session.account.lost(), 0, "{line}: {:?}", session.account);
        }
        // It may have ended by itself.
        served(&running.stop());
    }
}

/// What is saved is drawn again, in a page that names the peer.
#[test]
fn a_saved_session_is_reported() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-report");
    let reflector = super::serve(&bench, &[]);
    let finished = super::to(&bench, "10.9.0.2", &["-c", "100", "--rate", "500"]).run();
    served(&reflector.stop());
    let line = finished.stdout.lines().last().expect("a result");
    let read: Measurement = tscap_report::saved::read(line).expect("JSON");
    let page = tscap_report::saved::Saved::from_json(line)
        .expect("a result")
        .document()
        .page();
    for part in ["to 10.9.0.2", "100 answered", "round trip"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(read.sessions.len(), 1);
}
