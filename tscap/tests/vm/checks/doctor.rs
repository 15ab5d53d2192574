//! `tscap doctor` on these kernels and drivers.

use serde_json::Value;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::machine::Rig;
use crate::nic::{Kind, Nic};

fn report(guest: &Guest, nic: &Nic) -> Value {
    let done = guest.run(&[TSCAP, "doctor", "--json", "-i", &nic.name]);
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr))
}

fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let mut checks = report["checks"].as_array().expect("checks").iter();
    let check = checks.find(|check| check["id"] == id);
    check.unwrap_or_else(|| panic!("no {id}: {report}"))
}

/// What check `id` finds.
pub fn finds(guest: &Guest, nic: &Nic, id: &str) -> Value {
    check(&report(guest, nic), id)["found"].clone()
}

pub fn says_what_works(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio, Kind::Vmxnet3]);
    let works = |works| if works { "good" } else { "warning" };
    let tsc = works(rig.kernel.reads_perf_events_in_xdp());
    for (nic, driver, has_native) in [
        (&machine.nics[0], "virtio_net", true),
        (&machine.nics[1], "vmxnet3", rig.kernel.has_native_vmxnet3()),
    ] {
        let report = report(&machine.guest, nic);
        assert_eq!(report["bad"], 0, "{report}");
        let kernel = report["machine"]["kernel"].as_str().expect("a kernel");
        assert!(kernel.contains(&rig.kernel.release), "{kernel}");
        assert_eq!(report["interface"]["driver"], driver);
        let verdict = |id| &check(&report, id)["verdict"];
        assert_eq!(verdict("stamp_ktime"), "good");
        assert_eq!(verdict("stamp_tai"), "good");
        assert_eq!(verdict("stamp_tsc"), tsc);
        assert_eq!(verdict("xdp_mode"), works(has_native), "{driver}: {report}");
    }
    // Where another capture stamps is told without attaching it.
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let found = finds(guest, nic, "attaching");
    assert!(found.to_string().contains("halts virtio_net"), "{found}");
    let capture = guest.capture(&["-i", &nic.name]).ready();
    let in_stack = if super::directions::has_tcx(guest) {
        "tcx ingress"
    } else {
        "clsact ingress"
    };
    for id in ["xdp_mode", "attaching", "xdp_programs"] {
        let found = check(&report(guest, nic), id).to_string();
        assert!(found.contains(in_stack), "{in_stack}: {found}");
    }
    capture.stop().success();
}
