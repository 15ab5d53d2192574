//! Where the copy of a capture goes: a file, whole or not at all, or standard output.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use super::print::{say, tell};
use super::{Context as _, Failure};
use tscap_file::pcapng::pcap_name;
use tscap_host::whole_file::{is_one, write_whole_by};

/// Where a copy goes.
#[derive(Debug)]
pub(super) struct CopyTarget {
    path: PathBuf,
    stdout: File,
    is_stdout: bool,
    /// What is there, if anything.
    before: Option<Metadata>,
}

impl CopyTarget {
    /// Of what was given to `-w`: `-` is standard output.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        if let Some(what) = pcap_name(path) {
            say(&format!("warning: {what}\n"));
        }
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let stdout = stdout.map(File::from);
        let stdout = stdout.context("cannot use standard output")?;
        let is_dash = path.as_os_str() == "-";
        let before = if is_dash {
            stdout.metadata().ok()
        } else {
            fs::metadata(path).ok()
        };
        // /dev/stdout that leads to a file would be another file than standard output.
        let leads_there = |it: &Metadata| stdout.metadata().is_ok_and(|out| is_one(it, &out));
        Ok(Self {
            path: path.to_owned(),
            is_stdout: is_dash || before.as_ref().is_some_and(leads_there),
            stdout,
            before,
        })
    }

    /// What is there, if anything.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.before.as_ref()
    }

    /// Writes what `write` writes; a new file has the mode `new_mode`.
    pub fn write<T, E: From<io::Error>>(
        &mut self,
        new_mode: u32,
        write: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.is_stdout {
            let written = write(&mut self.stdout)?;
            if self.stdout.metadata()?.is_file() {
                self.stdout.sync_all()?;
            }
            Ok(written)
        } else {
            write_whole_by(&self.path, new_mode, write)
        }
    }

    /// Prints what was done: on standard error where the copy may be on standard output.
    pub fn tell(&self, said: &str) -> Result<(), Failure> {
        let is_file = self.before.as_ref().is_none_or(Metadata::is_file);
        if self.is_stdout || !is_file {
            say(said);
            return Ok(());
        }
        tell(said).map(drop)
    }
}
