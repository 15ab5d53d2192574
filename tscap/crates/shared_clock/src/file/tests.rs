use super::*;
use tscap_clock_reader::{Clock, OpenError, Refused, State};

const S: u64 = 1_000_000_000;

/// A page that the kernel's clocks confirm for a second, from now on.
fn page() -> Page {
    let witness = tscap_clock_reader::system::precise();
    // The rate does not matter for so long.
    let latest = Latest {
        raw: witness.raw,
        real_ns: witness.real_ns,
        rate: 1 << 57,
        host_bound_ns: 5 * S,
        mono_to_real_ns: exact_offset(),
        difference_rate: 1 << 57,
        state: state::UNSYNCHRONISED,
        utc_bound_ns: u64::MAX,
        stale_raw: u64::MAX,
        void_raw: u64::MAX,
        ..Latest::default()
    };
    Page {
        latest,
        past: Vec::new(),
    }
}

fn exact_offset() -> i64 {
    tscap_clock::cross::exact_offset()
        .expect("ticks are far apart")
        .0
}

#[test]
fn a_reader_takes_the_page_that_took_the_place_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/clock");
    assert!(matches!(Clock::open(&path), Err(OpenError::Io(_))));
    let mut file = PageFile::new(&path);
    file.write(&page()).unwrap();
    let mut clock = Clock::open(&path).unwrap();
    let first = clock.header().generation;
    assert_eq!(clock.now().unwrap().state, State::Unsynchronised);
    let other = PageFile::new(&path).write(&page());
    assert!(matches!(other, Err(PageFileError::InUse)), "{other:?}");
    drop(file);
    assert_eq!(clock.now(), Err(Refused::Closed));
    let mut file = PageFile::new(&path);
    file.write(&page()).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while clock.now() == Err(Refused::Closed) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert!(clock.now().is_ok() && clock.header().generation > first);
}

#[test]
fn only_a_page_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clock");
    let replaced = || PageFile::new(&path).write(&page());
    for length in [0, 100, SIZE] {
        fs::write(&path, vec![7; length]).unwrap();
        assert!(
            matches!(replaced(), Err(PageFileError::OtherFile)),
            "{length}"
        );
        let opened = Clock::open(&path);
        assert!(
            matches!(opened, Err(OpenError::Io(_) | OpenError::NoPage)),
            "{opened:?}"
        );
    }
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert!(matches!(replaced(), Err(PageFileError::OtherFile)));
    fs::remove_file(&path).unwrap();
    replaced().unwrap();
    replaced().unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn a_page_of_another_boot_counter_or_version_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clock");
    let mut file = PageFile::new(&path);
    file.write(&page()).unwrap();
    let writable = File::options().write(true).read(true).open(&path).unwrap();
    let mut bytes = [0; 64];
    writable.read_exact_at(&mut bytes, 0).unwrap();
    for (at, is_expected) in [
        (
            0,
            (|it| matches!(it, OpenError::NoPage)) as fn(&OpenError) -> bool,
        ),
        (8, |it| matches!(it, OpenError::NoPage)),
        (12, |it| matches!(it, OpenError::NoPage)),
        (16, |it| matches!(it, OpenError::OtherBoot)),
        (31, |it| matches!(it, OpenError::OtherBoot)),
        (40, |it| matches!(it, OpenError::OtherCounter)),
    ] {
        writable.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
        let error = Clock::open(&path).unwrap_err();
        assert!(is_expected(&error), "{at}: {error}");
        writable.write_all_at(&bytes[at..=at], at as u64).unwrap();
        assert!(Clock::open(&path).is_ok());
    }
}
