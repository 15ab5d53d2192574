//! `BPF_PROG_TEST_RUN` that signals don't end.

use std::io;

use aya::programs::ProgramError;

/// A run is a few milliseconds: more signals than this don't hit it by chance.
const MOST_TRIES: u32 = 100;

/// Repeats a run that a signal, or a stop and its continuation, interrupted.
pub(crate) fn retried<T>(
    mut run: impl FnMut() -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let mut tries = 1;
    loop {
        match run() {
            Err(ProgramError::SyscallError(error))
                if error.io_error.kind() == io::ErrorKind::Interrupted && tries < MOST_TRIES =>
            {
                tries += 1;
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use aya::sys::SyscallError;

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
        let third = retried(|| {
            runs += 1;
            if runs < 3 {
                failed(libc::EINTR)
            } else {
                Ok(runs)
            }
        });
        assert_eq!(third.unwrap(), 3);
        let mut runs = 0;
        let refused = retried(|| {
            runs += 1;
            failed::<()>(libc::EPERM)
        });
        assert!(refused.is_err() && runs == 1);
        let mut runs = 0;
        let forever = retried(|| {
            runs += 1;
            failed::<()>(libc::EINTR)
        });
        assert!(forever.is_err() && runs == MOST_TRIES);
    }
}
