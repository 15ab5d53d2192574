use std::fs;
use std::os::unix::fs::FileExt as _;

use super::*;
use crate::bound::Leap;
use tscap_time::timex;

/// A page of VMClock by which UTC is so much ahead of the host's clock, or nothing is known.
fn page(ahead_s: i64, is_bounded: bool) -> Vec<u8> {
    let mut octets = vec![0; 4096];
    let mut put = |at: usize, field: &[u8]| octets[at..at + field.len()].copy_from_slice(field);
    put(0, b"VCLK");
    put(8, &1_u16.to_le_bytes());
    put(10, &[tscap_arch::VMCLOCK_COUNTER, 0]);
    put(12, &2_u32.to_le_bytes());
    put(16, &5_u64.to_le_bytes());
    let flags = if is_bounded { 0x50_u64 } else { 0 };
    put(24, &flags.to_le_bytes());
    put(34, &[2]);
    // A counter that stands, so that its time does.
    put(96, &2_000_000_000_u64.to_le_bytes());
    let seconds = (RealNs::now().0 / 1_000_000_000).saturating_add_signed(ahead_s);
    put(72, &seconds.to_le_bytes());
    octets
}

const SYNCHRONISED: KernelClock = KernelClock {
    synchronised: true,
    max_error_ns: 900_000,
    est_error_ns: 10,
    tai_offset_s: 37,
    frequency_ppb: 0,
    tick_ppb: 0,
    leap: timex::Leap::None,
};

fn put(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// A segment of version 1.
fn segment(bound_ns: u64) -> Vec<u8> {
    let mut octets = vec![0; 72];
    let mut put = |at: usize, field: &[u8]| octets[at..at + field.len()].copy_from_slice(field);
    put(0, &0x414d_5a4e_u32.to_ne_bytes());
    put(4, &0x4342_0200_u32.to_ne_bytes());
    put(8, &72_u32.to_ne_bytes());
    put(12, &1_u16.to_ne_bytes());
    put(14, &4_u16.to_ne_bytes());
    put(16, &(MonoNs::now().0 / 1_000_000_000).to_ne_bytes());
    put(32, &u64::from(u32::MAX).to_ne_bytes());
    put(48, &bound_ns.to_ne_bytes());
    put(64, &1_u32.to_ne_bytes());
    octets
}

#[test]
fn each_source_is_found_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = UtcReader::open(Roots::below(folder.path()));
    let all = reader.judge(Some(&SYNCHRONISED));
    assert_eq!(
        (all.bound_ns, all.source),
        (Some(900_000), Some(UtcSource::Kernel))
    );
    assert_eq!((all.readings.len(), all.sentences().len()), (1, 0));
    assert!(reader.disruptions().is_none());
    put(folder.path(), "run/clockbound/shm", &segment(31_000));
    put(folder.path(), "dev/vmclock0", &page(0, true));
    let mut reader = UtcReader::open(Roots::below(folder.path()));
    let all = reader.judge(Some(&SYNCHRONISED));
    let sources: Vec<_> = all.readings.iter().map(|it| it.parts.source()).collect();
    assert_eq!(
        sources,
        [UtcSource::Kernel, UtcSource::ClockBound, UtcSource::VmClock]
    );
    assert_eq!(
        (all.bound_ns, all.source),
        (Some(31_000), Some(UtcSource::ClockBound))
    );
    assert!(matches!(
        all.by(UtcSource::VmClock).unwrap().parts,
        Parts::VmClock {
            leap: Leap::None,
            ..
        }
    ));
    assert_eq!(all.sentences().len(), 3);
    // One that can't be read is no reason to end.
    put(
        folder.path(),
        "run/clockbound/shm",
        b"something else that is longer",
    );
    reader.look();
    assert_eq!(reader.judge(None).by(UtcSource::ClockBound), None);
    let [(UtcSource::ClockBound, why)] = reader.unreadable()[..] else {
        panic!("{:?}", reader.unreadable());
    };
    assert!(why.contains("no segment"), "{why}");
}

#[test]
fn a_host_that_is_off_by_the_hypervisor_is_a_contradiction() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "dev/vmclock0", &page(100, true));
    let mut reader = UtcReader::open(Roots::below(folder.path()));
    let all = reader.judge(Some(&SYNCHRONISED));
    assert_eq!(all.source, None);
    assert_eq!(
        all.contradictions,
        [[UtcSource::Kernel, UtcSource::VmClock]]
    );
    let bound_s = all.bound_ns.unwrap() / 1_000_000_000;
    assert!((98..104).contains(&bound_s), "{bound_s}");
}

#[test]
fn a_disruption_takes_what_was_said_before_until_it_is_said_anew() {
    let folder = tempfile::tempdir().unwrap();
    let device = put(folder.path(), "dev/vmclock0", &page(0, false));
    put(folder.path(), "run/clockbound/shm", &segment(31_000));
    let mut reader = UtcReader::open(Roots::below(folder.path()));
    let mut watch = reader.disruptions().unwrap();
    let source = |reader: &mut UtcReader, max_error_ns| {
        let kernel = KernelClock {
            max_error_ns,
            ..SYNCHRONISED
        };
        let all = reader.judge(Some(&kernel));
        (all.source, all.bound_ns)
    };
    assert_eq!(
        source(&mut reader, 20_000),
        (Some(UtcSource::Kernel), Some(20_000))
    );
    assert!(!watch.was_disrupted());
    // The machine is moved, and the device is the same.
    let file = fs::OpenOptions::new().write(true).open(device).unwrap();
    file.write_all_at(&6_u64.to_le_bytes(), 16).unwrap();
    assert!(watch.was_disrupted() && !watch.was_disrupted());
    reader.read();
    assert!(reader.disrupted.is_some());
    reader.disrupted.as_mut().unwrap().max_error_ns = 20_000;
    // It grows by itself.
    assert_eq!(source(&mut reader, 20_500), (None, None));
    assert_eq!(source(&mut reader, 21_000), (None, None));
    let all = reader.judge(Some(&SYNCHRONISED));
    assert!(all.sentences()[0].contains("counter was disrupted"));
    // A daemon has set it anew.
    assert_eq!(
        source(&mut reader, 15_000),
        (Some(UtcSource::Kernel), Some(15_000))
    );
    assert_eq!(
        source(&mut reader, 40_000),
        (Some(UtcSource::ClockBound), Some(31_000))
    );
}
