use super::*;
use tscap_base::recorded::Recorded;
use tscap_time::{PhcNs, RealNs, TscCycles};

const TIME_NS: u64 = 1_700_000_000_000_000_000;

/// The device read so much ahead of the host's clock, in 2 µs.
fn clock(ahead_ns: u64) -> PhcReading {
    PhcReading {
        tsc: [TscCycles(0), TscCycles(1)],
        real: [RealNs(TIME_NS), RealNs(TIME_NS + 2_000)],
        phc: PhcNs(TIME_NS + 1_000 + ahead_ns),
    }
}

fn reading(clock: Result<PhcReading, String>, error_ns: Result<u64, String>) -> Reading {
    Reading {
        interface: "eth0".into(),
        device: "/dev/ptp0".into(),
        clock,
        error_ns,
        as_of: MonoNs(5),
    }
}

#[test]
fn the_bound_is_the_reading_and_what_the_driver_says() {
    for (ahead_ns, counts_tai) in [(700, false), (37_000_000_700, true)] {
        let said = reading(Ok(clock(ahead_ns)), Ok(22_000));
        let bound = said.bound(50_000, 37);
        let interval = bound.utc_less_host_ns.unwrap();
        // 1 µs to either side, 22 µs, and 50 ppm of a second.
        assert_eq!(interval, UtcInterval([700 - 73_000, 700 + 73_000]));
        assert!(
            matches!(bound.parts, Parts::Phc { offset_ns: 700, counts_tai: it, .. } if it == counts_tai)
        );
    }
}

#[test]
fn what_is_no_time_or_has_no_bound_is_named() {
    for (clock, error_ns, tai_s, why) in [
        // Of TAI, which the kernel does not know.
        (Ok(clock(37_000_000_000)), Ok(1), 0, "neither UTC nor TAI"),
        (Ok(clock(2_000_000_000)), Ok(1), 37, "neither UTC nor TAI"),
        (Ok(clock(0)), Err("not there".into()), 37, "not there"),
        (Err("EACCES".into()), Ok(1), 37, "EACCES"),
        (
            Ok(PhcReading {
                real: [RealNs(TIME_NS + 2_000), RealNs(TIME_NS)],
                ..clock(0)
            }),
            Ok(1),
            37,
            "went back",
        ),
    ] {
        let bound = reading(clock, error_ns).bound(0, tai_s);
        let unknown = bound.unknown.unwrap_or_default();
        assert!(
            bound.bound_ns.is_none() && unknown.contains(why),
            "{why}: {unknown}"
        );
    }
}

#[test]
fn a_device_is_found_by_its_interface() {
    let machine = Recorded::veth();
    let devices = tempfile::tempdir().unwrap();
    assert!(Phc::find(&machine.files, devices.path()).is_empty());
    machine.put("sys/class/net/ens5/device/phc_error_bound", "21473\n");
    // The driver may have the file and no clock.
    assert!(Phc::find(&machine.files, devices.path()).is_empty());
    machine.put("sys/class/net/ens5/device/ptp/ptp3/clock_name", "ena-ptp");
    let mut found = Phc::find(&machine.files, devices.path());
    let [device] = &mut found[..] else {
        panic!("{found:?}");
    };
    let said = device.read();
    assert_eq!(
        (said.interface.as_str(), said.error_ns()),
        ("ens5", Some(21_473))
    );
    assert!(said.device.ends_with("/ptp3"), "{said:?}");
    let bound = said.bound(0, 37);
    assert!(bound.unknown.unwrap().contains("ptp3"));
    machine.put("sys/class/net/ens5/device/phc_error_bound", "many");
    assert!(device.read().error_ns.unwrap_err().contains("no number"));
}
