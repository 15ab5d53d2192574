//! Where the captures go.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::common::tmpfs;

/// A kind of place for captures.
#[derive(Debug)]
pub struct Output {
    /// Its name in the report.
    pub name: &'static str,
    folder: Option<TempDir>,
}

/// A file for one capture, removed when it is dropped.
#[derive(Debug)]
pub struct OneFile {
    /// Where it is.
    pub path: PathBuf,
    temporary: bool,
}

impl Output {
    /// A file for the next capture.
    pub fn file(&self) -> OneFile {
        let path = |folder: &TempDir| folder.path().join("out.pcapng");
        OneFile {
            path: self.folder.as_ref().map_or("/dev/null".into(), path),
            temporary: self.folder.is_some(),
        }
    }
}

impl Drop for OneFile {
    fn drop(&mut self) {
        if self.temporary {
            // The folder goes away as a whole if this fails.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The outputs that can be used for files of up to `largest` bytes, and why
/// others can't.
pub fn usable(largest: u64) -> (Vec<Output>, Vec<String>) {
    let output = |name, folder| Output { name, folder };
    let null = output("/dev/null", None);
    match tmpfs::warm_folder(largest) {
        Ok(folder) => (vec![null, output("tmpfs", Some(folder))], Vec::new()),
        Err(error) => (vec![null], vec![format!("files in memory: {error:#}")]),
    }
}
