//! A loaded XDP program, however it was loaded.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::programs::ProgramError;
use aya::sys::SyscallError;

use tscap_network::bpf;

/// A program in the kernel, which forgets it when neither this nor a link holds it.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Program {
    /// Runs it `repeat` times on one frame; returns the mean duration, ns.
    pub fn run(&self, frame: &[u8], repeat: u32) -> Result<u32, ProgramError> {
        let run = bpf::program::run(self.as_fd(), frame, repeat, None);
        run.map_err(|io_error| {
            SyscallError {
                call: "bpf_prog_test_run",
                io_error,
            }
            .into()
        })
    }

    /// Runs it on `times` live frames, copies of `frame`, of which the kernel makes
    /// `batch` at a time.
    pub(crate) fn run_live(&self, frame: &[u8], times: u32, batch: u32) -> io::Result<()> {
        bpf::program::run(self.as_fd(), frame, times, Some(batch)).map(drop)
    }
}

impl From<OwnedFd> for Program {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
