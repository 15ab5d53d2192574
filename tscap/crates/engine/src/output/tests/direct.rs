//! The disk: by its own way and by the page cache.

use super::*;

/// A burst goes by way of the page cache, which does not hold it any more behind the file.
#[test]
fn a_burst_leaves_the_page_cache_to_others() {
    const BYTES: usize = 8 << 20;
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    if direct_io::alignment(file.as_file()).is_none() {
        println!("no direct writes here");
        return;
    }
    let append = OpenOptions::new().append(true).open(file.path()).unwrap();
    let mut output = Output::direct(append);
    let blocks = vec![7; BYTES];
    output.write(&blocks).unwrap();
    assert_eq!(output.written_direct(), BYTES as u64);
    output.set_behind(true);
    output.write(&blocks).unwrap();
    assert!(output.written_direct() <= BYTES as u64);
    output.settle().unwrap();
    let next = tempfile::tempfile().unwrap();
    let next = output.successor(next).unwrap();
    assert_eq!(next.written_direct(), output.written_direct());
    let held = || page_cache::held_of(file.as_file()).unwrap();
    assert!(held() >= BYTES as u64);
    output.close().unwrap();
    assert!(held() < BYTES as u64 / 8, "{} bytes are held", held());
}

/// Writes half of what it is given to a file, and then no more.
struct Filling(Option<File>);

impl Write for Filling {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.take().ok_or(io::ErrorKind::StorageFull)?;
        file.write(&bytes[..bytes.len() / 2])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn half_of_the_last_blocks_is_taken_off_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let file = OpenOptions::new().create_new(true).append(true).open(&path);
    let mut output = Output::regular(file.unwrap(), Io::Buffered).unwrap();
    let whole = [5, 16, 0, 16u32].map(u32::to_ne_bytes).concat();
    output.write(&whole).unwrap();
    let file = output
        .regular
        .as_ref()
        .map(|file| file.try_clone().unwrap());
    output.writer = Box::new(Filling(file));
    let error = output.write_final(b"statistics").unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    output.close().unwrap();
}

/// Bytes of the disk that a file takes.
fn on_disk(file: &File) -> u64 {
    file.metadata().unwrap().blocks() * 512
}

#[test]
fn room_is_kept_until_the_end_where_the_file_system_can() {
    const ROOM: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let file = |name| {
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).read(true);
        options.open(folder.path().join(name)).unwrap()
    };
    let other = file("other");
    let kept = FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let can = fallocate(&other, kept, FAR, ROOM.cast_signed()).is_ok();
    let mine = file("mine");
    let mut output = Output::regular(mine.try_clone().unwrap(), Io::Buffered).unwrap();
    output.reserve(ROOM).unwrap();
    assert_eq!(output.reserve, ROOM);
    assert_eq!(on_disk(&mine) >= ROOM, can);
    output.write(b"whole").unwrap();
    assert_eq!(mine.metadata().unwrap().len(), 5);
    output.close().unwrap();
    assert!(on_disk(&mine) < ROOM, "what was not used is free again");

    // Not behind what somebody else has written after the position.
    let path = folder.path().join("followed");
    std::fs::write(&path, b"before and after").unwrap();
    let followed = OpenOptions::new().write(true).open(&path).unwrap();
    let mut output = Output::inherited(followed.try_clone().unwrap()).unwrap();
    output.reserve(ROOM).unwrap();
    assert!(on_disk(&followed) < ROOM);
}

#[test]
fn pieces_are_a_part_of_a_ring() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name| {
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).read(true);
        options.open(folder.path().join(name)).unwrap()
    };
    const MIB: usize = 1 << 20;
    for (ring, piece) in [(128 << 10, MIB), (32 * MIB, 4 * MIB), (256 * MIB, 8 * MIB)] {
        let mut output = Output::direct(file(format!("direct{ring}"))).out_of_rings(ring);
        assert_eq!(output.piece(), piece);
        let next = file(format!("next{ring}"));
        let is_direct = direct_io::alignment(&next).is_some();
        // Also those of the next file.
        let expected = if is_direct { piece } else { PIECE_BYTES };
        assert_eq!(output.successor(next).unwrap().piece(), expected);
        let buffered = Output::regular(file(format!("buffered{ring}")), Io::Buffered);
        assert_eq!(buffered.unwrap().out_of_rings(ring).piece(), PIECE_BYTES);
    }
}

/// The memory of a process is that of its start, however late the disk and whatever the number
/// of files.
#[test]
fn what_waits_is_in_the_same_memory_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = |number: u32| {
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).read(true);
        options
            .open(folder.path().join(number.to_string()))
            .unwrap()
    };
    let headers = || [6, 32, 0, 0, 0, 0, 0, 32u32].map(u32::to_ne_bytes).concat();
    let mut output = Output::direct(file(0)).out_of_rings(8 << 20);
    output.write_headers(headers()).unwrap();
    let memory = output.waiting.as_ptr();
    for number in 1..3 {
        output.copy(&vec![2; output.piece()]);
        output.copy(&vec![3; BESIDE_PIECE_BYTES / 2]);
        assert_eq!(output.waiting.as_ptr(), memory);
        output.settle().unwrap();
        output.write_final(&[4; 28]).unwrap();
        let next = output.successor(file(number)).unwrap();
        std::mem::replace(&mut output, next).close().unwrap();
        assert_eq!((output.length(), output.waiting()), (0, 0));
        output.write_headers(headers()).unwrap();
        assert_eq!(output.waiting.as_ptr(), memory);
    }
}

/// Errors of earlier writes come when the disk takes them, or when it is asked at the end.
#[test]
fn what_the_disk_did_not_take_is_an_error_of_the_file() {
    for make in [
        (|file| Output::regular(file, Io::Buffered).unwrap()) as fn(File) -> Output,
        Output::direct,
        |file| Output::inherited(file).unwrap(),
    ] {
        let named = tempfile::NamedTempFile::new().unwrap();
        let append = OpenOptions::new().append(true).open(named.path());
        let output = || make(append.as_ref().unwrap().try_clone().unwrap());
        let disk = ScriptedDisk::default();
        let mut written = output().with_disk(disk.clone());
        written.write(b"whole").unwrap();
        written.settle().unwrap();
        written.close().unwrap();
        let script = disk.script();
        assert_eq!((script.out.len(), script.syncs), (1, 1));
        for call in [1, 2] {
            let mut failing = output().with_disk(ScriptedDisk::failing_at(call));
            failing.is_alone = false;
            failing.write(b"whole").unwrap();
            failing.settle().unwrap();
            let error = failing.close().unwrap_err();
            assert!(matches!(error, CloseError::NotOnDisk(_)), "{error}");
        }
    }
}

/// A ring of files may have removed it already.
#[test]
fn a_file_without_a_name_is_not_waited_for() {
    let disk = ScriptedDisk::default();
    let file = Output::regular(tempfile::tempfile().unwrap(), Io::Buffered).unwrap();
    let mut output = file.with_disk(disk.clone());
    output.write(b"whole").unwrap();
    output.close_removed(false).unwrap();
    assert_eq!(disk.script().syncs, 0);
}

/// What happens to an output that is written direct or by way of the page cache.
#[derive(Clone, Debug)]
enum Happening {
    /// So many bytes are written, from where they lie or copied before.
    Write(usize, bool),
    /// The rings bear the disk's pauses, or do not.
    Bears(bool),
    Behind(bool),
    /// The thread writes out what it has to.
    WrittenOut,
    /// What waits is overdue.
    Overdue,
}

fn happenings() -> impl proptest::strategy::Strategy<Value = Vec<Happening>> {
    use proptest::prelude::*;
    let bytes = prop_oneof![1usize..6_000, 200_000usize..1_500_000];
    let happening = prop_oneof![
        5 => (bytes, any::<bool>()).prop_map(|(bytes, copied)| Happening::Write(bytes, copied)),
        3 => any::<bool>().prop_map(Happening::Bears),
        1 => any::<bool>().prop_map(Happening::Behind),
        1 => Just(Happening::WrittenOut),
        1 => Just(Happening::Overdue),
    ];
    prop::collection::vec(happening, 1..25)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    /// However often it goes one way or the other.
    #[test]
    fn a_file_has_every_byte_once_and_in_its_place(happenings in happenings()) {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let mut output = Output::direct(file);
        let (mut expected, mut now): (Vec<u8>, _) = (Vec::new(), 0);
        output.expect_pauses(Duration::ZERO);
        for happening in happenings {
            match happening {
                Happening::Write(bytes, copied) => {
                    let begin = expected.len();
                    expected.extend((begin..begin + bytes).map(|at| (at % 251) as u8));
                    if copied {
                        output.copy(&expected[begin..]);
                        output.flush().unwrap();
                    } else { output.write(&expected[begin..]).unwrap() }
                }
                Happening::Bears(bears) => {
                    let hour = Duration::from_secs(3_600);
                    output.expect_pauses(if bears { Duration::ZERO } else { hour });
                }
                Happening::Behind(is_behind) => output.set_behind(is_behind),
                Happening::WrittenOut => {
                    let writeback = Arc::clone(output.writeback.as_ref().unwrap());
                    writeback.finish(&WriteWatch::default()).unwrap();
                }
                Happening::Overdue => {
                    for _ in 0..2 {
                        now += 200_000_000;
                        output.flush_overdue(MonoNs(now)).unwrap();
                    }
                    proptest::prop_assert!(std::fs::read(&path).unwrap() == expected);
                }
            }
        }
        output.settle().unwrap();
        proptest::prop_assert_eq!(output.length(), expected.len() as u64);
        output.close().unwrap();
        proptest::prop_assert!(std::fs::read(&path).unwrap() == expected);
    }
}

/// Direct at first, by way of the page cache while the rings would not bear a pause, and direct
/// again once the disk has what went that way.
#[test]
fn writes_go_by_way_of_the_page_cache_while_a_pause_would_lose_frames() {
    const PART: usize = 1 << 20;
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    let mut output = Output::direct(file).with_disk(ScriptedDisk::default());
    let part = vec![7; PART];
    let writes = |output: &mut Output, count: usize| {
        let before = output.written_direct();
        for _ in 0..count {
            output.write(&part).unwrap();
        }
        output.written_direct() > before
    };
    output.expect_pauses(Duration::ZERO);
    assert!(writes(&mut output, 2));
    assert_eq!(output.pauses().1, 0);
    assert!(output.piece() > PIECE_BYTES);
    output.expect_pauses(Duration::from_secs(1));
    assert!(!writes(&mut output, 20));
    assert!(output.pauses().1 >= 20 * PART as u64);
    assert_eq!(output.piece(), PIECE_BYTES, "soon back in the ring");
    // The disk is to have that first.
    output.expect_pauses(Duration::ZERO);
    assert!(!writes(&mut output, 1));
    let writeback = Arc::clone(output.writeback.as_ref().unwrap());
    writeback.finish(&WriteWatch::default()).unwrap();
    assert!(writes(&mut output, 1));
    // A page cache that can't keep up is no help.
    output.expect_pauses(Duration::from_secs(1));
    output.set_behind(true);
    if let Some(direct) = &mut output.direct {
        direct.slow_page_cache();
    }
    assert!(writes(&mut output, 1));
}
