//! The priority of the calling thread.

use std::io;

/// The lowest priority (setpriority(2)).
const LOWEST: libc::c_int = 19;

/// Gives this thread the lowest priority, which children that it starts inherit.
/// On Linux a priority is a thread's own (setpriority(2), "C library/kernel
/// differences").
pub fn lower_to_lowest() -> io::Result<()> {
    // SAFETY: takes plain numbers; 0 is the calling thread.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOWEST) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_priority_is_this_threads_alone_and_is_inherited() {
        let nice = || {
            let output = std::process::Command::new("nice").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let before = nice();
        let lowered = std::thread::spawn(move || {
            lower_to_lowest().unwrap();
            nice()
        });
        assert_eq!(lowered.join().unwrap(), "19\n");
        assert_eq!(nice(), before);
    }
}
