//! A made-up machine for tests of results.

use crate::envelope::Circumstances;
use crate::machine::Machine;

/// How a result of `command` came about.
pub fn about(command: &str) -> Circumstances {
    Circumstances {
        command: ["tscap", command, "--json"].map(String::from).into(),
        started_ns: 1_800_000_000_000_000_000,
        seconds: 12.5,
        machine: machine(),
        captured: None,
        reference: None,
    }
}

fn machine() -> Machine {
    Machine {
        kernel: "6.18.0 x86_64".into(),
        cpu: "made up".into(),
        cpus: 2,
        clocksource: "tsc".into(),
        utc: None,
        mitigations: [("spectre_v2".into(), "Retpolines".into())].into(),
        governor: None,
        virtualisation: Some("KVM".into()),
        load: [0.1, 0.2, 0.3],
        steal_percent: 0.25,
        interface: "veth0".into(),
        driver: "veth".into(),
    }
}
