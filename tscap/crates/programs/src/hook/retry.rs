//! `BPF_PROG_TEST_RUN` and `BPF_PROG_LOAD` that signals don't end.

use std::io;

use aya::programs::ProgramError;

/// A run is a few milliseconds: more signals than this don't hit it by chance.
const MOST_TRIES: u32 = 100;

/// Repeats a run, or a load, that a signal, or a stop and its continuation,
/// interrupted: the verifier gives up with EAGAIN then (`do_check` in
/// `kernel/bpf/verifier.c`).
pub fn retry_interrupted<T>(
    mut run: impl FnMut() -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let mut tries = 1;
    loop {
        match run() {
            Err(error) if is_interrupted(&error) && tries < MOST_TRIES => tries += 1,
            result => return result,
        }
    }
}

fn is_interrupted(error: &ProgramError) -> bool {
    match error {
        ProgramError::SyscallError(error) => error.io_error.kind() == io::ErrorKind::Interrupted,
        ProgramError::LoadError { io_error, .. } => io_error.kind() == io::ErrorKind::WouldBlock,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use aya::sys::SyscallError;
    use aya_obj::VerifierLog;

    use super::*;

    fn failed<T>(errno: i32) -> Result<T, ProgramError> {
        Err(ProgramError::SyscallError(SyscallError {
            call: "bpf_prog_test_run",
            io_error: io::Error::from_raw_os_error(errno),
        }))
    }

    #[test]
    fn only_interrupted_runs_are_repeated() {
        let mut runs = 0;
        let third = retry_interrupted(|| {
            runs += 1;
            if runs < 3 {
                failed(libc::EINTR)
            } else {
                Ok(runs)
            }
        });
        assert_eq!(third.unwrap(), 3);
        let mut runs = 0;
        let refused = retry_interrupted(|| {
            runs += 1;
            failed::<()>(libc::EPERM)
        });
        assert!(refused.is_err() && runs == 1);
        let mut runs = 0;
        let forever = retry_interrupted(|| {
            runs += 1;
            failed::<()>(libc::EINTR)
        });
        assert!(forever.is_err() && runs == MOST_TRIES);
        let mut runs = 0;
        let loaded = retry_interrupted(|| {
            runs += 1;
            if runs < 2 {
                Err(ProgramError::LoadError {
                    io_error: io::Error::from_raw_os_error(libc::EAGAIN),
                    verifier_log: VerifierLog::new(String::new()),
                })
            } else {
                Ok(())
            }
        });
        assert!(loaded.is_ok() && runs == 2);
    }
}
