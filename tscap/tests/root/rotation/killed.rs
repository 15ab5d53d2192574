//! `kill -9` while files come and go.

use std::time::Duration;

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;
use tscap_testkit::wait;

use super::together::names;

#[test]
fn every_file_is_readable_and_only_the_latest_may_be_torn() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("killed");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    for options in [
        &["-b", "packets:300"][..],
        &["-b", "packets:300", "-b", "files:3"],
    ] {
        for round in 1..5 {
            let folder = files::folder();
            let path = folder.path().join("out");
            let mut sender = LiveSender::open(&bench.tx);
            let capture = capture_on(&bench.rx, &path).with(options).ready();
            std::thread::scope(|scope| {
                scope.spawn(|| sender.pour(&frame, 300_000, 0));
                let begun = format!("out_{:05}_", round * 40);
                wait::until("so many files", Duration::from_secs(20), || {
                    names(folder.path())
                        .iter()
                        .any(|name| *name >= begun)
                        .then_some(())
                });
                assert_eq!(capture.stop_with(Signal::SIGKILL).signal, Some(9));
            });
            assert_eq!(bench.rx.xdp_program(), None);
            let mut names = names(folder.path());
            // One that has not taken its name yet.
            names.retain(|name| !name.starts_with(".tscap-"));
            let (latest, complete) = names.split_last().expect("files");
            for name in complete {
                let recording = Recording::read(&folder.path().join(name));
                assert_eq!(recording.packets.len(), 300, "{name}");
                assert_eq!(recording.last_statistics(0).delivered, Some(300));
            }
            // The one that is being begun may lack its headers.
            let latest = folder.path().join(latest);
            if files::length(&latest) > 0 {
                let (recording, _) = Recording::read_torn(&latest);
                assert_eq!(recording.interfaces.len(), 1);
            }
        }
    }
}
