use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::AtomicBool;

use clock_bound_shm::{ClockErrorBound, ClockStatus, ShmReader, ShmWrite as _, ShmWriter};
use old_nix::sys::time::TimeSpec;

use super::*;

const STATUS: [(ClockStatus, ClockBoundStatus); 4] = [
    (ClockStatus::Unknown, ClockBoundStatus::Unknown),
    (ClockStatus::Synchronized, ClockBoundStatus::Synchronized),
    (ClockStatus::FreeRunning, ClockBoundStatus::FreeRunning),
    (ClockStatus::Disrupted, ClockBoundStatus::Disrupted),
];

fn spec(ns: u64) -> TimeSpec {
    TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64)
}

fn written(as_of: u64, void_after: u64, bound_ns: i64, status: ClockStatus) -> ClockErrorBound {
    ClockErrorBound::new(
        spec(as_of),
        spec(void_after),
        bound_ns,
        77,
        15_000,
        status,
        true,
    )
}

/// By the client library of ClockBound itself.
fn by_library(path: &Path) -> (u64, ClockStatus) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let mut reader = ShmReader::new(&path).unwrap();
    let (earliest, latest, status) = reader.snapshot().unwrap().now().unwrap();
    let ns = |it: TimeSpec| it.tv_sec() * 1_000_000_000 + it.tv_nsec();
    (ns(latest).abs_diff(ns(earliest)) / 2, status)
}

#[test]
fn a_segment_is_read_as_clockbounds_own_library_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shm0");
    assert!(read(&path).is_none());
    let mut writer = ShmWriter::new(&path).unwrap();
    assert!(
        read(&path)
            .unwrap()
            .is_err_and(|why| why.contains("never written"))
    );
    // Its clock is coarse.
    let now = MonoNs::now().0 - 20_000_000;
    for (theirs, ours) in STATUS {
        writer.write(&written(now, now + 1_000_000_000_000, 31_416, theirs));
        let segment = read(&path).unwrap().unwrap();
        assert_eq!((segment.status, segment.version), (ours, 2));
        assert_eq!(segment.disruption_marker, Some(77));
        assert_eq!((segment.as_of.0, segment.bound_ns), (now, 31_416));
        // Both grow, and the library reads its clock in between.
        let before = segment.bound(MonoNs::now());
        let (library_ns, status) = by_library(&path);
        let after = segment.bound(MonoNs::now());
        assert_eq!(status, theirs);
        let is_bounded = [ClockStatus::Synchronized, ClockStatus::FreeRunning].contains(&theirs);
        assert_eq!(before.bound_ns.is_some(), is_bounded, "{before:?}");
        if let (Some(before), Some(after)) = (before.bound_ns, after.bound_ns) {
            // It rounds down, and counts by a coarse clock, whose tick is 10 ms at most.
            assert!(library_ns + 151 >= before, "{library_ns} {before}");
            assert!(library_ns <= after, "{library_ns} {after}");
        }
    }
}

#[test]
fn a_bound_grows_until_it_is_void() {
    let segment = Segment {
        version: 2,
        as_of: MonoNs(1_000_000_000),
        void_after: MonoNs(11_000_000_000),
        bound_ns: 1_000,
        max_drift_ppb: 50_000,
        status: ClockBoundStatus::FreeRunning,
        disruption_marker: None,
    };
    let at = |ns| segment.bound(MonoNs(ns));
    assert_eq!(at(1_000_000_000).bound_ns, Some(1_000));
    assert_eq!(at(10_999_999_999).bound_ns, Some(501_000));
    assert!(at(11_000_000_000).unknown.unwrap().contains("in time"));
    // Of the next boot, or another machine.
    assert!(at(900_000_000).unknown.unwrap().contains("to come"));
    assert_eq!(at(999_999_999).bound_ns, Some(1_000));
}

#[test]
fn other_files_and_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shm");
    // Version 1, as its document has it.
    let mut octets = vec![0; 72];
    let mut put = |at: usize, field: &[u8]| octets[at..at + field.len()].copy_from_slice(field);
    put(0, &MAGIC[0].to_ne_bytes());
    put(4, &MAGIC[1].to_ne_bytes());
    put(8, &72_u32.to_ne_bytes());
    put(12, &1_u16.to_ne_bytes());
    put(14, &4_u16.to_ne_bytes());
    put(16, &5_u64.to_ne_bytes());
    put(32, &9_u64.to_ne_bytes());
    put(48, &123_u64.to_ne_bytes());
    put(56, &1_000_u32.to_ne_bytes());
    put(64, &1_u32.to_ne_bytes());
    let read_back = |octets: &[u8]| {
        std::fs::write(&path, octets).unwrap();
        read(&path).unwrap()
    };
    let segment = read_back(&octets).unwrap();
    assert_eq!((segment.version, segment.disruption_marker), (1, None));
    assert_eq!(
        (segment.as_of.0, segment.void_after.0),
        (5_000_000_000, 9_000_000_000)
    );
    assert_eq!((segment.bound_ns, segment.max_drift_ppb), (123, 1_000));
    type Change = fn(&mut Vec<u8>);
    let changes: [(Change, &str); 6] = [
        (|it| it[0] ^= 1, "no segment"),
        (|it| it[12] = 3, "version 3"),
        (|it| it[14] = 5, "being written"),
        (|it| it.truncate(60), "impossible"),
        (|it| it[55] = 0x80, "impossible"),
        (|it| it[59] = 0xff, "impossible"),
    ];
    for (change, why) in changes {
        let mut other = octets.clone();
        change(&mut other);
        let error = read_back(&other).unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// A daemon that writes all the time: no reading mixes two updates.
#[test]
fn no_reading_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shm0");
    let is_over = AtomicBool::new(false);
    let mut writer = ShmWriter::new(&path).unwrap();
    writer.write(&written(1, 2, 3, ClockStatus::Synchronized));
    let mut read_values = std::collections::BTreeSet::new();
    let writer = std::sync::Mutex::new(Some(SendWriter(writer)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = writer.lock().unwrap().take().unwrap();
            for value in 1_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let bound = i64::try_from(value).unwrap() + 2;
                let status = ClockStatus::Synchronized;
                writer.0.write(&written(value, value + 1, bound, status));
            }
        });
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut reads = 0;
        while reads < 20_000 && std::time::Instant::now() < deadline {
            if let Some(Ok(segment)) = read(&path) {
                let value = segment.as_of.0;
                assert_eq!(segment.void_after.0, value + 1);
                assert_eq!(segment.bound_ns, value + 2);
                read_values.insert(value);
                reads += 1;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(reads > 0);
    });
}

/// It is used by one thread at a time.
struct SendWriter(ShmWriter);

#[expect(unsafe_code, reason = "the library's writer has pointers")]
// SAFETY: the pointers are into a mapping, which belongs to no thread.
unsafe impl Send for SendWriter {}
