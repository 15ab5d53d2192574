//! The commands of docs/stamp.md.

use nix::sys::signal::Signal;
use tscap_testkit::capture::stamp;
use tscap_testkit::root::root;

use super::{bed, count, summary};
use tscap_testkit::shown::{Runner, commands};

#[test]
fn every_command_works() {
    let Some(_lock) = root() else { return };
    let (bench, udp) = bed("stamp-docs");
    for line in commands(Runner::Stamp) {
        let words = line.split(' ').skip(2).filter(|word| *word != "--json");
        let words = words.map(|word| match word {
            "eth0" => bench.rx.name.as_str(),
            word => word,
        });
        let running = stamp(&bench.rx.netns).with(words).start();
        running.wait_event("ready");
        udp.exchanges(100);
        let said = summary(&running.stop_with(Signal::SIGTERM));
        assert!(count(&said, "stamped") > 0, "{line}: {said}");
    }
}
