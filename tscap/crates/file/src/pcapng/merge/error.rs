//! Why captures can't be joined.

use std::io;

use super::super::record::ReadError;
use tscap_clock::TimeBase;

/// Why captures can't be joined.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file can't be read any further.
    #[error("cannot read {file}")]
    Read {
        /// Its name.
        file: String,
        /// Why.
        #[source]
        error: ReadError,
    },
    /// A file with a second section header.
    #[error("cannot merge {0}: it has several sections, as captures put one behind the other")]
    Sections(String),
    /// A packet that has no time.
    #[error("cannot merge {0}: it has a packet without a time (a simple packet block)")]
    Untimed(String),
    /// A byte order that the first file does not have.
    #[error("cannot merge {other} with {first}: its byte order is the other one")]
    ByteOrder {
        /// The first file.
        first: String,
        /// The one that differs.
        other: String,
    },
    /// Times of different clocks.
    #[error(
        "cannot merge {other} with {first}: its times are of {}, not of {}",
        .is.name(), .of.name()
    )]
    Clocks {
        /// The file with the first interface.
        first: String,
        /// Its clock.
        of: TimeBase,
        /// The one that differs.
        other: String,
        /// Its clock.
        is: TimeBase,
    },
    /// Times that no bound of the file's statistics is of.
    #[error("cannot merge {0}: its times are of an NTP server's clock")]
    OfServer(String),
    /// Times by different references.
    #[error("cannot merge {other} with {first}: its times are by {is}, not by {of}")]
    References {
        /// The file with the first interface.
        first: String,
        /// Whose time it has.
        of: String,
        /// The one that differs.
        other: String,
        /// Whose time it has.
        is: String,
    },
    /// Two files of the same writer.
    #[error("cannot merge {other} with {first}: both are of writer {writer} of one capture")]
    SameWriter {
        /// The first one.
        first: String,
        /// The other one.
        other: String,
        /// The writer.
        writer: u32,
    },
    /// Files of one capture that contradict each other.
    #[error("cannot merge {other} with {first}: they are of one capture, and describe {what}")]
    Contradict {
        /// The first one.
        first: String,
        /// The other one.
        other: String,
        /// What they describe in different ways.
        what: &'static str,
    },
    /// More interfaces than tscap reads in a file.
    #[error("cannot merge so many files: they have more than {0} interfaces together")]
    Interfaces(usize),
    /// The copy can't be written.
    #[error("cannot write a block")]
    Copy(#[source] io::Error),
}

impl MergeError {
    pub(super) fn read(file: &str, error: ReadError) -> Self {
        Self::Read {
            file: file.to_owned(),
            error,
        }
    }
}
