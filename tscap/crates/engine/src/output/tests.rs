//! Of an output alone.

mod direct;

use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt as _;

use super::*;
use tscap_host::direct_io;
use tscap_host::page_cache;

/// A pipe that is full every other time.
struct Stubborn {
    taken: Vec<u8>,
    is_full: bool,
    tell: std::sync::mpsc::Sender<Vec<u8>>,
}

impl Write for Stubborn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full = !self.is_full;
        if self.is_full {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let takes = bytes.len().min(7);
        self.taken.extend_from_slice(&bytes[..takes]);
        let _ = self.tell.send(self.taken.clone());
        Ok(takes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_inherited_file_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for appends in [false, true] {
        std::fs::write(&path, b"before").unwrap();
        let mut file = OpenOptions::new()
            .write(true)
            .append(appends)
            .open(&path)
            .unwrap();
        if !appends {
            io::Seek::seek(&mut file, io::SeekFrom::End(0)).unwrap();
        }
        let mut output = Output::inherited(file).unwrap();
        assert!(output.can_be_truncated());
        output.write(b"whole").unwrap();
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"torn")
            .unwrap();
        output.cut_at(5).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"beforewhole");
    }
}

/// A file that can't be written: what waited is lost, and the error says so.
#[test]
fn an_error_of_bytes_that_waited_is_told() {
    let file = || {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        File::open(&path).unwrap()
    };
    for output in [
        Output::regular(file(), Io::Buffered).unwrap(),
        Output::direct(file()),
    ] {
        let mut output = output;
        let words = [6, 32, 0, 0, 0, 0, 0, 32u32].map(u32::to_ne_bytes);
        output.copy(&words.concat());
        let error = output.settle().unwrap_err();
        assert_eq!(error.lost.len(), 1);
        assert!(!error.is_aborted() && !error.is_reader_gone());
        assert_eq!(output.length(), 0);
    }
}

#[test]
fn each_way_has_its_name() {
    let file = || tempfile::tempfile().unwrap();
    let buffered = Output::regular(file(), Io::Buffered).unwrap();
    let ways = [Output::stream(io::sink()), buffered, Output::direct(file())];
    let names = ways.map(|output| output.way());
    assert_eq!(names, ["stream", "buffered", "direct"]);
}

/// Bytes that go by way of the page cache in between are written again with their block of
/// the disk, also where a few follow many that waited.
#[test]
fn every_byte_is_there_whichever_way_it_went() {
    const MANY: usize = 300_001;
    for few in [0, 92, 3_000, 5_000] {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let mut output = Output::direct(file);
        let mut expected: Vec<u8> = Vec::new();
        for (is_behind, length) in [(false, 0), (true, few), (true, few), (false, few)] {
            output.set_behind(is_behind);
            let begin = expected.len();
            expected.extend((begin..begin + MANY + length).map(|at| (at % 251) as u8));
            output.copy(&expected[begin..begin + MANY]);
            output.write(&expected[begin + MANY..]).unwrap();
        }
        output.settle().unwrap();
        assert_eq!(output.length(), expected.len() as u64);
        assert!(std::fs::read(&path).unwrap() == expected, "{few}");
    }
}

#[test]
fn a_full_non_blocking_pipe_is_waited_for() {
    let (tell, reported) = std::sync::mpsc::channel();
    let mut output = Output::stream(Stubborn {
        taken: Vec::new(),
        is_full: false,
        tell,
    });
    output.write(b"one block and another").unwrap();
    assert_eq!(
        reported.try_iter().last().unwrap(),
        b"one block and another"
    );
    assert_eq!(output.length(), 21);
}

/// Takes a few bytes and then is interrupted without end.
struct Hanging(usize);

impl Write for Hanging {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match std::mem::take(&mut self.0) {
            0 => Err(io::ErrorKind::Interrupted.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_write_that_hangs_ends_when_it_is_told_to() {
    let watch = Arc::new(WriteWatch::default());
    let mut output = Output::stream(Hanging(7)).watched(Arc::clone(&watch));
    let writer = std::thread::spawn(move || {
        let written = output.write(b"more than it takes");
        (written, output.length())
    });
    while watch.done() == 0 {
        std::thread::yield_now();
    }
    watch.abort();
    let (written, length) = writer.join().unwrap();
    assert!(written.unwrap_err().is_aborted());
    assert_eq!(length, 0, "no whole block");
}

#[test]
fn what_others_do_to_a_file_shows_when_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let output = || {
        let mut output = crate::PreparedFile::open(&path)
            .unwrap()
            .start(Io::Buffered)
            .unwrap();
        output.reserve(1 << 16).unwrap();
        output.write(b"whole").unwrap();
        output
    };
    output().close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"whole");

    let removed = output();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(removed.close(), Err(CloseError::Removed)));

    // It goes on where the file ends now: the length tells, not only a hole.
    let mut emptied = output();
    File::create(&path).unwrap();
    emptied.write(b"more").unwrap();
    let error = emptied.close().unwrap_err();
    let lengths = "it has 4 bytes where 9 were written";
    assert!(error.to_string().ends_with(lengths), "{error}");

    let lengthened = output();
    std::fs::write(&path, b"somebody else's").unwrap();
    assert!(matches!(
        lengthened.close(),
        Err(CloseError::Changed { found: 15, .. })
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody else's");
}

#[test]
fn a_write_that_ends_before_it_is_told_to_is_whole() {
    let watch = Arc::new(WriteWatch::default());
    watch.abort();
    let mut output = Output::stream(io::sink()).watched(watch);
    output.write(b"all at once").unwrap();
    assert_eq!(output.length(), 11);
}

#[test]
fn what_follows_an_inherited_position_stays_when_the_file_is_closed() {
    let named = tempfile::NamedTempFile::new().unwrap();
    let mut file = named.reopen().unwrap();
    file.write_all(b"before and after").unwrap();
    io::Seek::seek(&mut file, io::SeekFrom::Start(7)).unwrap();
    let mut output = Output::inherited(file.try_clone().unwrap()).unwrap();
    output.reserve(64).unwrap();
    output.write(b"AND").unwrap();
    output.close().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 16);
}

/// Interrupted by a signal before each byte.
struct Interrupted {
    taken: Arc<std::sync::Mutex<Vec<u8>>>,
    is_next: bool,
}

impl Write for Interrupted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_next = !self.is_next;
        if self.is_next {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.taken.lock().unwrap().push(bytes[0]);
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_interrupted_write_goes_on() {
    let taken = Arc::default();
    let mut output = Output::stream(Interrupted {
        taken: Arc::clone(&taken),
        is_next: false,
    });
    output.write(b"whole").unwrap();
    assert_eq!(*taken.lock().unwrap(), b"whole");
}
