//! Frames of a steady stream that are lost where captures are attached and detached. A
//! capture at tcx, which leaves the driver alone, counts those that come through.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tscap_testkit::wait::until;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::machine::{Machine, Rig};
use crate::nic::{Kind, Nic};

/// From one frame to the next.
const PERIOD: Duration = Duration::from_millis(2);
/// Captures that are attached and detached one after the other.
const CAPTURES: usize = 4;
/// Frames have come through when none does for so long.
const QUIET: Duration = Duration::from_millis(500);
/// Longest wait for that.
const LIMIT: Duration = Duration::from_secs(60);

/// Attaches and detaches captures with these arguments, at `hook`.
fn attach_and_detach(guest: &Guest, arguments: &[&str], hook: &str) {
    for _ in 0..CAPTURES {
        let finished = guest.capture(arguments).ready().stop();
        let summary = finished.success();
        let at = summary.interfaces[0].directions[0].hook.clone();
        assert_eq!(at.as_deref(), Some(hook), "{}", finished.stderr);
    }
}

/// Frames that come through to `interface` while `stream` sends them, which gives how many
/// it has sent.
fn lost(guest: &Guest, interface: &str, stream: impl FnOnce() -> u64) -> (u64, u64) {
    let line = [TSCAP, "capture", "--json", "-Q", "in", "--hook", "tcx"];
    let rest = ["--ring-size", "1M", "-s", "64", "-w", "/tmp/through", "-i"];
    let through = guest.start(&[&line[..], &rest, &[interface]].concat());
    let through = through.ready();
    let sent = stream();
    until("all frames", LIMIT, || {
        let before = guest.recorded();
        thread::sleep(QUIET);
        (guest.recorded() == before).then_some(())
    });
    let arrived = through.stop().success().written;
    assert!(arrived > 0 && arrived <= sent, "{arrived} of {sent}");
    (sent - arrived, sent)
}

/// The same of an interface that the host sends to; `None` without other captures.
fn lost_at_nic(machine: &Machine, nic: &Nic, hook: Option<(&str, &str)>) -> u64 {
    let guest = &machine.guest;
    let frame = nic.frame(100);
    let (lost, sent) = lost(guest, &nic.name, || {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let stream = scope.spawn(|| {
                let mut sent = 0;
                while !is_over.load(Ordering::Relaxed) {
                    nic.send(&frame, sent..sent + 1);
                    thread::sleep(PERIOD);
                    sent += 1;
                }
                sent
            });
            match hook {
                Some((choice, at)) => {
                    let arguments = ["-i", &nic.name, "--hook", choice];
                    attach_and_detach(guest, &arguments, at);
                }
                None => thread::sleep(5 * QUIET),
            }
            is_over.store(true, Ordering::Relaxed);
            stream.join().expect("the stream")
        })
    });
    tell(guest, nic.kind().driver(), hook, lost, sent);
    lost
}

/// For the table of docs/directions.md.
fn tell(guest: &Guest, device: &str, hook: Option<(&str, &str)>, lost: u64, sent: u64) {
    let release = guest.must(&["uname", "-r"]);
    let captures = hook.map_or("no capture".into(), |(_, at)| format!("{CAPTURES} at {at}"));
    println!("  Linux {release}, {device}, {captures}: {lost} of {sent} frames lost");
}

/// The hook that leaves the driver alone.
fn in_stack(guest: &Guest) -> (&'static str, &'static str) {
    if super::directions::has_tcx(guest) {
        ("tcx", "tcx ingress")
    } else {
        ("tcx", "clsact ingress")
    }
}

pub fn to_nics(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio, Kind::Vmxnet3]);
    let guest = &machine.guest;
    for nic in &machine.nics {
        assert_eq!(lost_at_nic(&machine, nic, None), 0, "without a capture");
        assert_eq!(lost_at_nic(&machine, nic, Some(in_stack(guest))), 0);
        let has_native = match nic.kind() {
            Kind::Virtio => true,
            Kind::Vmxnet3 => rig.kernel.has_native_vmxnet3(),
        };
        if has_native {
            lost_at_nic(&machine, nic, Some(("xdp", "native XDP")));
        }
        lost_at_nic(&machine, nic, Some(("generic", "generic XDP")));
    }
}
