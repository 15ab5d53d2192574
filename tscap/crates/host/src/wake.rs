//! Interrupting a system call of another thread.

use std::io;
use std::os::unix::thread::JoinHandleExt as _;
use std::thread::JoinHandle;

use nix::sys::pthread::pthread_kill;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Ignored by default, so that one which comes late does no harm.
const WAKE: Signal = Signal::SIGURG;
/// Those of a fault in the thread itself.
const FAULTS: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
];

extern "C" fn nothing(_: i32) {}

/// Makes the signal interrupt system calls (EINTR), in this process.
pub fn prepare() -> io::Result<()> {
    // Without SA_RESTART.
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing, so it is safe at any time.
    unsafe { sigaction(WAKE, &action) }?;
    Ok(())
}

/// Leaves every signal of this process to its other threads, but for the one that wakes this
/// one: a handler may need system calls that this thread may not make.
pub fn take_no_others() -> io::Result<()> {
    let mut blocked = SigSet::all();
    FAULTS
        .into_iter()
        .chain([WAKE])
        .for_each(|signal| blocked.remove(signal));
    Ok(blocked.thread_block()?)
}

/// Interrupts the system call that a thread may be in.
pub fn wake<T>(thread: &JoinHandle<T>) -> io::Result<()> {
    // The thread has not been joined, since its handle is still there.
    Ok(pthread_kill(thread.as_pthread_t(), WAKE)?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_thread_is_woken_and_nothing_else() {
        let blocked = std::thread::spawn(|| {
            take_no_others().unwrap();
            SigSet::thread_get_mask().unwrap()
        });
        let blocked = blocked.join().unwrap();
        for signal in [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGXFSZ,
        ] {
            assert!(blocked.contains(signal), "{signal}");
        }
        assert!(!blocked.contains(WAKE) && !blocked.contains(Signal::SIGSEGV));
    }

    #[test]
    fn a_sleep_is_cut_short() {
        prepare().unwrap();
        let start = Instant::now();
        let sleeper = std::thread::spawn(|| {
            let forever = nix::sys::time::TimeSpec::new(60, 0);
            let clock = nix::time::ClockId::CLOCK_MONOTONIC;
            let flags = nix::time::ClockNanosleepFlags::empty();
            nix::time::clock_nanosleep(clock, flags, &forever)
        });
        // It may not be asleep yet.
        while !sleeper.is_finished() && start.elapsed() < Duration::from_secs(30) {
            wake(&sleeper).unwrap();
            std::thread::yield_now();
        }
        assert_eq!(sleeper.join().unwrap(), Err(nix::errno::Errno::EINTR));
    }
}
