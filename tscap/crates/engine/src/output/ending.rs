//! How a file ends, as it is on the disk: after a write that failed that is looked at.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use tscap_common::block::LENGTH_OFFSET;

use super::CloseError;
use tscap_host::page_cache;

/// What is read again from the disk, bytes: what the page cache holds it need not have.
const PAGES: u64 = 1 << 20;
/// A block's length stands in its first and last bytes.
const LENGTH_BYTES: u64 = size_of::<u32>() as u64;

/// Whether the file, in which blocks begin at `base`, ends with a whole block.
///
/// # Errors
/// If it does not, or that can't be seen.
pub(super) fn check(file: &File, base: u64) -> Result<(), CloseError> {
    if ends_whole(file, base).map_err(CloseError::Unseen)? {
        Ok(())
    } else {
        Err(CloseError::Torn)
    }
}

fn ends_whole(file: &File, base: u64) -> io::Result<bool> {
    // It may have been opened to be written alone, and by somebody who may read it.
    let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let file = again.or_else(|_| file.try_clone())?;
    let end = file.metadata()?.len();
    page_cache::give_back(&file, end.saturating_sub(PAGES)..end);
    if end <= base {
        return Ok(end == base);
    }
    let length_at = |at: u64| {
        let mut length = [0; LENGTH_BYTES as usize];
        file.read_exact_at(&mut length, at)?;
        Ok::<_, io::Error>(u64::from(u32::from_ne_bytes(length)))
    };
    if end - base < LENGTH_BYTES {
        return Ok(false);
    }
    let length = length_at(end - LENGTH_BYTES)?;
    let is_possible = length > LENGTH_OFFSET as u64 + LENGTH_BYTES && length <= end - base;
    Ok(is_possible && length_at(end - length + LENGTH_OFFSET as u64)? == length)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn block(words: u32) -> Vec<u8> {
        let mut block = vec![6; words as usize * 4];
        let length = (words * 4).to_ne_bytes();
        block[4..8].copy_from_slice(&length);
        let end = block.len();
        block[end - 4..].copy_from_slice(&length);
        block
    }

    #[test]
    fn a_file_that_ends_within_a_block_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let whole = [&b"before"[..], &block(8), &block(20)].concat();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            let is_whole = [6, 6 + 32, 6 + 32 + 80].contains(&cut);
            let reported = check(&file, 6);
            if is_whole {
                reported.unwrap()
            } else {
                assert!(
                    matches!(reported, Err(CloseError::Torn)),
                    "{cut}: {reported:?}"
                )
            }
        }
    }
}
