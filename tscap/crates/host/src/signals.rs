//! The signals that this process catches: each is left to whoever waits for them.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, sem_t};
use nix::errno::Errno;

/// Those that end a process unless it catches them, by the kernel's table (signal(7)), but for
/// those of a fault, SIGKILL, and those that have a meaning of their own here.
const ENDING: [c_int; 12] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    // What a write fails with (EPIPE) says more.
    libc::SIGPIPE,
];
/// A file has the greatest size that is allowed: the write fails as on a full disk.
const FILE_TOO_LARGE: c_int = libc::SIGXFSZ;

/// What somebody wants of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// To end, by the signal with this number.
    End(c_int),
    /// To say how far it is (SIGUSR1).
    Counts,
    /// To flush what there is, and to begin the next file (SIGUSR2).
    NextFile,
}

/// Those that have come and that nobody has taken yet: bit n - 1 for signal n.
static CAME: AtomicU64 = AtomicU64::new(0);
static NEWS: Semaphore = Semaphore(UnsafeCell::new(MaybeUninit::zeroed()));

/// Counts what nobody has waited for yet.
struct Semaphore(UnsafeCell<MaybeUninit<sem_t>>);

// SAFETY: `sem_post` and `sem_wait` may be called by several threads at once, and `sem_init` is
// called before there is anybody to call them.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    fn pointer(&self) -> *mut sem_t {
        self.0.get().cast()
    }
}

extern "C" fn came(number: c_int) {
    CAME.fetch_or(bit(number), Ordering::Release);
    tell();
}

fn bit(number: c_int) -> u64 {
    1 << (number - 1)
}

/// Ends the [`wait`] of the thread that waits, or the next one.
pub fn tell() {
    // SAFETY: the semaphore was made before the first signal is caught; the call is safe in the
    // handler of a signal (signal-safety(7)) and fails only where nobody has taken 2³¹ of them.
    unsafe { libc::sem_post(NEWS.pointer()) };
}

/// Catches all signals that would end this process, but those of a fault. What this process was
/// started with as ignored stays so (nohup(1)). To be called once.
///
/// # Errors
/// If the kernel refuses.
pub fn catch() -> io::Result<()> {
    // SAFETY: nobody uses the semaphore yet.
    Errno::result(unsafe { libc::sem_init(NEWS.pointer(), 0, 0) })?;
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let asking = [libc::SIGUSR1, libc::SIGUSR2, FILE_TOO_LARGE];
    for number in ENDING.into_iter().chain(asking).chain(real_time) {
        if !is_ignored(number)? {
            set(number, came as *const () as libc::sighandler_t)?;
        }
    }
    Ok(())
}

fn is_ignored(number: c_int) -> io::Result<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call only reads, and fills the structure in.
    let action = unsafe {
        Errno::result(libc::sigaction(
            number,
            std::ptr::null(),
            action.as_mut_ptr(),
        ))?;
        action.assume_init()
    };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

fn set(number: c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all zeros are a structure of no flags and an empty mask; the handler is one of the
    // system's, or `came`, which only makes calls that are safe in one.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        Errno::result(libc::sigaction(number, &action, std::ptr::null_mut()))?;
    }
    Ok(())
}

/// Waits until signals have come, or for [`tell`], and gives what is asked for by now. The same
/// signal twice is one.
pub fn wait() -> Vec<SignalRequest> {
    // SAFETY: the semaphore was made by `catch`. Another signal may interrupt the call.
    while unsafe { libc::sem_wait(NEWS.pointer()) } != 0 {}
    let came = CAME.swap(0, Ordering::AcqRel);
    let numbers = (1..=u64::BITS.cast_signed()).filter(|number| came & bit(*number) != 0);
    numbers.filter_map(meaning).collect()
}

fn meaning(number: c_int) -> Option<SignalRequest> {
    match number {
        libc::SIGUSR1 => Some(SignalRequest::Counts),
        libc::SIGUSR2 => Some(SignalRequest::NextFile),
        FILE_TOO_LARGE | libc::SIGPIPE => None,
        number => Some(SignalRequest::End(number)),
    }
}

/// Ends this process as the signal would have if nobody had caught it.
pub fn end_by(number: c_int) -> ! {
    let _ = set(number, libc::SIG_DFL);
    // SAFETY: the call has no effect on memory.
    unsafe { libc::raise(number) };
    // As shells report it, if the signal is blocked.
    std::process::exit(128 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the table of signal(7): what ends a process and is neither a fault nor SIGKILL.
    #[test]
    fn every_signal_that_ends_a_process_has_a_meaning() {
        let faults = [
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGSEGV,
            libc::SIGSYS,
        ];
        let left_alone = [
            libc::SIGKILL,
            libc::SIGSTOP,
            libc::SIGCHLD,
            libc::SIGCONT,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
            libc::SIGURG,
            libc::SIGWINCH,
        ];
        let caught = ENDING
            .into_iter()
            .chain([libc::SIGUSR1, libc::SIGUSR2, FILE_TOO_LARGE]);
        let mut all: Vec<_> = caught.chain(faults).chain(left_alone).collect();
        all.sort_unstable();
        assert_eq!(all, (1..32).collect::<Vec<_>>());
        assert_eq!(meaning(libc::SIGRTMAX()), Some(SignalRequest::End(64)));
        assert_eq!(bit(libc::SIGRTMAX()), 1 << 63);
    }
}
