//! A file's bytes on their way from the page cache to the disk: written out by a thread of its
//! own while a capture goes on, and waited for at the end. What the disk did not take is an
//! error of the file, whoever hears of it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::CloseError;
use super::bearing::Pauses;
use crate::WriteWatch;
use tscap_host::{caps, page_cache};

/// The disk is given so many bytes at a time: as long as a disk writes fast, and short enough to
/// end between two of them.
const STEP: u64 = 8 << 20;
/// Less than a step is written out this often: the longest until an error is seen.
const LEAST_OFTEN: Duration = Duration::from_secs(10);

/// The disk behind a file.
pub(super) trait Disk: Send + Sync {
    /// Waits until it has these bytes.
    fn write_out(&self, bytes: Range<u64>) -> io::Result<()>;

    /// Has the page cache give up these bytes, which are written out.
    fn give_back(&self, bytes: Range<u64>);

    /// Waits until everything is there, and can be found again after a power failure.
    fn sync(&self) -> io::Result<()>;
}

impl Disk for File {
    fn write_out(&self, bytes: Range<u64>) -> io::Result<()> {
        uninterrupted(|| page_cache::write_out(self, bytes.clone()))
    }

    fn give_back(&self, bytes: Range<u64>) {
        page_cache::give_back(self, bytes);
    }

    fn sync(&self) -> io::Result<()> {
        supported(uninterrupted(|| self.sync_data()))
    }
}

/// As often as a signal ends it: network file systems wait so.
fn uninterrupted(mut wait: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            waited => return waited,
        }
    }
}

/// What can't be synchronised, such as a file of procfs, is no error.
fn supported(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        synced => synced,
    }
}

/// How far a file is written out.
pub(super) struct Writeback {
    disk: Box<dyn Disk>,
    /// Other files need the memory: the page cache gives up what is written out.
    gives_back: bool,
    /// Who writes out: an error is told to one caller only, who has to keep it before another
    /// one asks.
    turn: Mutex<()>,
    extent: Mutex<Extent>,
    error: Mutex<Option<io::Error>>,
    has_failed: AtomicBool,
    /// The folder in which the file got its name, until that is on the disk.
    folder: Mutex<Option<File>>,
}

/// Bytes of a file that went by way of the page cache.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// The disk has them up to here.
    out: u64,
    end: u64,
    /// The thread knows that there is a step to write out.
    is_reported: bool,
}

impl Writeback {
    /// Of a file to which nothing was written yet.
    pub fn new(disk: impl Disk + 'static, gives_back: bool) -> Self {
        Self {
            disk: Box::new(disk),
            gives_back,
            turn: Mutex::default(),
            extent: Mutex::default(),
            error: Mutex::default(),
            has_failed: AtomicBool::new(false),
            folder: Mutex::default(),
        }
    }

    /// The file has got its name in this folder.
    pub fn named_in(&self, folder: Option<File>) {
        *lock(&self.folder) = folder;
    }

    /// These bytes are in the page cache. Says whether the thread is to be told.
    pub fn appended(&self, bytes: Range<u64>) -> bool {
        let mut extent = lock(&self.extent);
        // What is between was written past the page cache; a file may have been cut off, too.
        if extent.out == extent.end || bytes.start < extent.out {
            extent.out = bytes.start;
        }
        extent.end = bytes.end;
        let is_news = !extent.is_reported && extent.next(true).is_some();
        extent.is_reported |= is_news;
        is_news
    }

    /// Bytes that the disk is to get yet.
    pub fn left(&self) -> u64 {
        let extent = lock(&self.extent);
        extent.end - extent.out
    }

    /// Whether the disk failed to take something.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The kind of what failed.
    pub fn error(&self) -> Option<io::Error> {
        let error = lock(&self.error);
        error.as_ref().map(same)
    }

    /// Writes one step out. False if there is none, or the disk has failed.
    fn write_out_next(&self, only_whole: bool) -> bool {
        let _turn = lock(&self.turn);
        let step = {
            let mut extent = lock(&self.extent);
            let step = extent.next(only_whole);
            extent.is_reported = step.is_some();
            step
        };
        let Some(step) = step.filter(|_| !self.has_failed()) else {
            return false;
        };
        if let Err(error) = self.disk.write_out(step.clone()) {
            self.keep(error);
            return false;
        }
        if self.gives_back {
            self.disk.give_back(step.clone());
        }
        let mut extent = lock(&self.extent);
        extent.out = extent.out.max(step.end);
        true
    }

    fn keep(&self, error: io::Error) {
        lock(&self.error).get_or_insert(error);
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Has the file's name on the disk.
    fn sync_folder(&self) -> io::Result<()> {
        let folder = lock(&self.folder).take();
        folder.map_or(Ok(()), |folder| supported(folder.sync_all()))
    }

    /// Waits until the disk has everything, or `watch` says that nobody waits any more.
    ///
    /// # Errors
    /// If the disk failed, now or before, or was not waited for.
    pub fn finish(&self, watch: &WriteWatch) -> Result<(), CloseError> {
        while !watch.is_waiting_over() && self.write_out_next(false) {}
        if !self.has_failed() {
            if watch.is_waiting_over() {
                return Err(CloseError::NotAwaited);
            }
            let _turn = lock(&self.turn);
            if let Err(error) = self.disk.sync().and_then(|()| self.sync_folder()) {
                self.keep(error);
            }
        }
        self.error()
            .map_or(Ok(()), |error| Err(CloseError::NotOnDisk(error)))
    }
}

impl std::fmt::Debug for Writeback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writeback")
            .field("extent", &self.extent)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl Extent {
    /// What to write out next. Whole steps end where the page cache is not written to any more.
    fn next(self, only_whole: bool) -> Option<Range<u64>> {
        let whole = (self.out / STEP + 1) * STEP;
        if whole <= self.end {
            Some(self.out..whole)
        } else {
            (!only_whole && self.out < self.end).then_some(self.out..self.end)
        }
    }
}

/// Tells the thread of files that have news. When all of these are gone, it ends.
pub(super) type News = Sender<Arc<Writeback>>;

/// Starts a thread that writes files out, the one with the latest news, and learns how long the
/// disk takes.
pub(super) fn start(pauses: Arc<Pauses>) -> io::Result<News> {
    let (news, reported) = channel();
    let thread = std::thread::Builder::new().name("tscap-writeback".into());
    thread.spawn(move || {
        // What it needs is open.
        let _ = caps::keep_only(&[]);
        write_out(&reported, &pauses);
    })?;
    Ok(news)
}

fn write_out(reported: &Receiver<Arc<Writeback>>, pauses: &Pauses) {
    let mut latest: Option<Arc<Writeback>> = None;
    let mut next = None;
    loop {
        let reported_of = match next.take() {
            Some(file) => Ok(file),
            None => reported.recv_timeout(LEAST_OFTEN),
        };
        let only_whole = match reported_of {
            Ok(file) => {
                latest = Some(file);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(file) = &latest else { continue };
        if let Err(error) = file.sync_folder() {
            file.keep(error);
        }
        // What is left of a file that another one follows is the closer's.
        let mut begun = Instant::now();
        while next.is_none() && file.write_out_next(only_whole) {
            let now = Instant::now();
            pauses.took(now.duration_since(begun), now);
            begun = now;
            next = reported.try_recv().ok();
        }
    }
}

/// The same error once more.
fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => error.kind().into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No value is left half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a disk was asked for, and from which write-out on it fails once: as the kernel's,
    /// which tells an error to one caller.
    #[derive(Clone, Debug, Default)]
    pub struct ScriptedDisk(Arc<Mutex<Script>>);

    #[derive(Debug, Default)]
    pub struct Script {
        pub out: Vec<Range<u64>>,
        pub given_back: Vec<Range<u64>>,
        pub syncs: u32,
        /// The number of the call that fails, of write-outs and syncs together.
        pub fails_at: Option<u32>,
    }

    impl ScriptedDisk {
        pub fn failing_at(call: u32) -> Self {
            let disk = Self::default();
            disk.script().fails_at = Some(call);
            disk
        }

        pub fn script(&self) -> MutexGuard<'_, Script> {
            lock(&self.0)
        }
    }

    impl Script {
        fn result(&self) -> io::Result<()> {
            let calls = self.out.len() as u32 + self.syncs;
            if self.fails_at == Some(calls) {
                Err(io::Error::from_raw_os_error(libc::EIO))
            } else {
                Ok(())
            }
        }
    }

    impl Disk for ScriptedDisk {
        fn write_out(&self, bytes: Range<u64>) -> io::Result<()> {
            let mut script = self.script();
            script.out.push(bytes);
            script.result()
        }

        fn give_back(&self, bytes: Range<u64>) {
            self.script().given_back.push(bytes);
        }

        fn sync(&self) -> io::Result<()> {
            let mut script = self.script();
            script.syncs += 1;
            script.result()
        }
    }

    #[test]
    fn whole_steps_are_written_out_and_the_rest_at_the_end() {
        let disk = ScriptedDisk::default();
        let file = Writeback::new(disk.clone(), true);
        assert!(!file.appended(100..STEP - 1));
        assert!(!file.write_out_next(true), "more may come into that step");
        assert!(file.appended(STEP - 1..3 * STEP + 5));
        assert!(!file.appended(3 * STEP + 5..3 * STEP + 6), "once is enough");
        while file.write_out_next(true) {}
        assert_eq!(file.left(), 6);
        // What follows elsewhere: between them is what was written past the page cache.
        while file.write_out_next(false) {}
        file.appended(5 * STEP + 7..5 * STEP + 9);
        file.finish(&WriteWatch::default()).unwrap();
        let script = disk.script();
        let expected = [
            100..STEP,
            STEP..2 * STEP,
            2 * STEP..3 * STEP,
            3 * STEP..3 * STEP + 6,
            5 * STEP + 7..5 * STEP + 9,
        ];
        assert_eq!(script.out, expected);
        assert_eq!(script.given_back, expected);
        assert_eq!(script.syncs, 1);
    }

    /// The kernel tells an error once, to whoever asks first; the file has it until the end.
    #[test]
    fn an_error_is_kept_whoever_hears_of_it() {
        for call in 1..=4 {
            let file = Writeback::new(ScriptedDisk::failing_at(call), false);
            file.appended(0..2 * STEP + 1);
            while file.write_out_next(true) {}
            assert_eq!(file.has_failed(), call <= 2, "while it is written");
            let ended = file.finish(&WriteWatch::default());
            assert!(
                matches!(&ended, Err(CloseError::NotOnDisk(error)) if error.raw_os_error() == Some(libc::EIO)),
                "{call}: {ended:?}"
            );
            assert!(file.finish(&WriteWatch::default()).is_err(), "{call}");
        }
        let file = Writeback::new(ScriptedDisk::failing_at(5), false);
        file.appended(0..2 * STEP + 1);
        file.finish(&WriteWatch::default()).unwrap();
    }

    #[test]
    fn a_disk_that_nobody_waits_for_is_not_said_to_have_it() {
        let disk = ScriptedDisk::default();
        let file = Writeback::new(disk.clone(), false);
        file.appended(0..1);
        let watch = WriteWatch::default();
        watch.end_waiting();
        assert!(matches!(file.finish(&watch), Err(CloseError::NotAwaited)));
        assert_eq!(disk.script().out.len(), 0);
    }

    #[test]
    fn a_thread_writes_out_what_it_is_told_of() {
        let disk = ScriptedDisk::default();
        let file = Arc::new(Writeback::new(disk.clone(), false));
        let pauses = Arc::<Pauses>::default();
        let news = start(Arc::clone(&pauses)).unwrap();
        file.appended(0..2 * STEP);
        news.send(Arc::clone(&file)).unwrap();
        while file.left() > 0 {
            std::thread::yield_now();
        }
        drop(news);
        while Arc::strong_count(&file) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(disk.script().out, [0..STEP, STEP..2 * STEP]);
        assert!(pauses.greatest() > Duration::ZERO);
    }

    #[test]
    fn what_can_not_be_synchronised_is_no_error() {
        let proc = File::open("/proc/self/stat").unwrap();
        assert!(Disk::sync(&proc).is_ok());
        let error = |number| supported(Err(io::Error::from_raw_os_error(number)));
        assert!(error(libc::EINVAL).is_ok() && error(libc::EIO).is_err());
    }
}
