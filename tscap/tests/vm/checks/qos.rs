//! Layers of the network stack on other kernels: programs at each that there is.

use tscap_programs::hook::Layer;
use tscap_report::saved::Saved;

use super::directions::{PAIR, is_at_least};
use super::stamp::MANY;
use crate::agent::{PROGRAM, STAMPED, TSCAP};
use crate::machine::{Processor, Rig};

/// Datagrams from another namespace to a socket here, each of which is read: at every layer
/// that this kernel has each is found again, up to the receive call; the others are named.
pub fn by_layers(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    guest.must(&["sh", "-c", PAIR]);
    let near = guest.must(&["pidof", "sleep"]);
    guest.must(&[
        "sh",
        "-c",
        "mkdir /tmp/groups && mount -t cgroup2 none /tmp/groups",
    ]);
    // The module's interface has hardware stamps (hardware.rs).
    let all = &Layer::ALL[1..];
    let all: Vec<_> = all.iter().copied().map(Layer::name).collect();
    let all = all.join(",");
    let running = guest.start(&[TSCAP, "qos", "-i", "va", "--layers", &all, "--json"]);
    let running = running.ready();
    guest.must(&[PROGRAM, STAMPED, "10.9.0.1", "1", near.trim()]);
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let Ok(Saved::Residences(found)) = Saved::from_json(&finished.stdout) else {
        panic!("{}", finished.stdout);
    };
    let absent: Vec<_> = found.absent.iter().map(|it| it.layer).collect();
    // The links of netfilter are of Linux 6.4; before 6.6 clsact takes the place of tcx.
    let expected: &[Layer] = if is_at_least(guest, (6, 4)) {
        &[]
    } else {
        &[Layer::Pre, Layer::LocalIn]
    };
    assert_eq!(absent, expected, "{:?}", found.absent);
    for it in &found.layers {
        let account = &it.account;
        assert!(account.adds_up() && account.missed == 0, "{it:?}");
        assert!(account.seen >= MANY as u64, "{it:?}");
    }
    let flow = &found.flows[0];
    assert!(flow.packets >= MANY as u64, "{flow:?}");
    for step in &flow.residences {
        let timed = step.figures.map_or(0, |figures| figures.n);
        assert_eq!(timed + flow.in_cost_turns, flow.packets, "{step:?}");
        assert_eq!(step.went_back, 0, "{step:?}");
    }
}
