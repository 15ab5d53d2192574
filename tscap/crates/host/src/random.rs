//! Random numbers that nobody else can know.

use std::fs::File;
use std::io::{self, Read as _};

/// Where they are from: the kernel's generator, which is seeded when this runs.
#[derive(Debug)]
pub struct Random(File);

impl Random {
    /// Opens the kernel's generator.
    ///
    /// # Errors
    /// If `/dev/urandom` is not there.
    pub fn open() -> io::Result<Self> {
        File::open("/dev/urandom").map(Self)
    }

    /// One of them.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
