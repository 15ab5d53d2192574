//! The slowest packets as a file: each as it entered, and as it left.

use std::io::{self, Write as _};
use std::path::Path;

use crate::command::{Context as _, Failure, Hint as _};
use tscap_delay::live::SlowPacket;
use tscap_delay::packets::pcapng_of;
use tscap_host::whole_file::write_whole_by;

/// Writes them, in the order of time, whole or not at all.
pub(super) fn write(path: &Path, packets: &[SlowPacket]) -> Result<(), Failure> {
    let bytes = pcapng_of(packets).context("cannot make a capture of the slowest packets")?;
    let written: io::Result<()> = write_whole_by(path, 0o600, |file| file.write_all(&bytes));
    let written = written.context(format!("cannot write {}", path.display()));
    written.hint("give --pcapng a file in a folder that you may write to")
}
