//! Offloads that attaching a program turns off for good: vmxnet3's LRO, natively
//! by its driver and in generic mode by the kernel.

use nix::sys::signal::Signal;

use super::doctor;
use crate::agent::TSCAP;
use crate::machine::Rig;
use crate::nic::Kind;

const LRO: &str = "rx-lro";

pub fn given_back(rig: &Rig) {
    let machine = rig.boot(&[Kind::Vmxnet3]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let is_on = || {
        let found = doctor::finds(guest, nic, "offloads");
        found.as_str().expect("words").contains(LRO)
    };
    assert!(is_on(), "the device has none");
    // Before 6.6 its driver has no native XDP, and clsact turns nothing off.
    let at_xdp = if rig.kernel.has_native_vmxnet3() {
        "auto"
    } else {
        "generic"
    };
    for arguments in [
        ["--hook", at_xdp],
        ["--offloads", "off"],
        ["--hook", "generic"],
    ] {
        let arguments = [&["-i", &nic.name][..], &arguments].concat();
        let capture = guest.capture(&arguments).ready();
        assert!(!is_on(), "attaching left it on: {arguments:?}");
        capture.stop().success();
        assert!(is_on(), "{arguments:?}");
    }

    let killed = guest.capture(&["-i", &nic.name, "--hook", at_xdp]).ready();
    killed.stop_with(Signal::SIGKILL);
    assert!(!is_on(), "a killed run can't give it back");
    let restored = guest.must(&[TSCAP, "restore"]);
    assert_eq!(
        restored,
        format!("restored the offload {LRO} of {}: on", nic.name)
    );
    assert!(is_on());
}
