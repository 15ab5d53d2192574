//! What `tscap delay` keeps.

use tscap_delay::schema::Measurement;
use tscap_testkit::between::Between;
use tscap_testkit::capture::{LIMIT, delay, generate_on};
use tscap_testkit::files;
use tscap_testkit::root::root;
use tscap_testkit::wait;

use super::status::{self, FOR_FILES};

const FRAMES: u64 = 50;

/// With load and traffic beside it too, which have threads of their own. Files at the end are
/// made in any folder, as before.
#[test]
fn delays_are_measured_without_capabilities() {
    let Some(_lock) = root() else { return };
    let between = Between::router("drop-delay");
    let (tx, far) = (&between.bench.tx, &between.far);
    let device = between.device();
    device.ip(&["link", "add", "p0", "type", "veth", "peer", "name", "p1"]);
    device.ip(&["link", "set", "p0", "up"]);
    device.ip(&["link", "set", "p1", "up"]);
    let folder = files::folder();
    let slowest = folder.path().join("worst.pcapng");
    for file in [None, Some(slowest.as_path())] {
        let mut plan = delay(device)
            .with(["--in", &between.bench.rx.name, "--out", &between.out.name])
            .with([
                "--window",
                "100ms",
                "--load",
                "paper",
                "--parallel",
                "1Mbit:p0",
            ]);
        if let Some(file) = file {
            plan = plan.with([std::ffi::OsStr::new("--pcapng"), file.as_os_str()]);
        }
        let running = plan.ready();
        let of_main = file.map_or(0, |_| FOR_FILES);
        let names = ["tscap-matcher", "tscap-parallel"];
        status::wait_for_threads(running.pid(), &names, |name, it| {
            it.capabilities == if name == "tscap" { of_main } else { 0 }
        });
        let before = far.received();
        let sent = generate_on(tx)
            .with(["--sender", "packet", "--rate", "2k"])
            .with(["-c", &FRAMES.to_string()])
            .with(between.through())
            .run();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        wait::until("all frames to arrive", LIMIT, || {
            (far.received() >= before + FRAMES).then_some(())
        });
        let finished = running.stop();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let measurement =
            tscap_report::saved::read::<Measurement>(&finished.stdout).expect("a result");
        let account = measurement.passages[0].exits[0].account;
        assert_eq!(account.matched, FRAMES, "{account:?}");
        assert_eq!(file.is_some(), slowest.exists());
    }
    assert_eq!(between.bench.rx.xdp_program(), None);
}
