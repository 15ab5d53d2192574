//! The slowest packets as a file: each as it entered, and as it left.

use std::path::Path;

use crate::command::whole_file::write_whole_bytes;
use crate::command::{Context as _, Failure, Hint as _};
use crate::measuring::delay::live::SlowPacket;
use crate::measuring::delay::packets::pcapng_of;

/// Writes them, in the order of time, whole or not at all.
pub(super) fn write(path: &Path, packets: &[SlowPacket]) -> Result<(), Failure> {
    let bytes = pcapng_of(packets).context("cannot make a capture of the slowest packets")?;
    let written =
        write_whole_bytes(path, &bytes).context(format!("cannot write {}", path.display()));
    written.hint("give --pcapng a file in a folder that you may write to")
}
