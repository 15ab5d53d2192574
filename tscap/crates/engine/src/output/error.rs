//! Why an output does not hold what was written.

use std::io;

use tscap_file::pcapng::WriteError;
use tscap_programs::ring::FinalFrame;

/// Why a file does not hold what was written.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The system says so, for instance of an earlier write on a network file system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has no name any more.
    #[error("it was removed meanwhile: what was written into it is gone")]
    Removed,
    /// Its length is not that of what was written.
    #[error(
        "another program changed it meanwhile: it has {found} bytes where {written} were written"
    )]
    Changed {
        /// Its length, bytes.
        found: u64,
        /// What it should be, bytes.
        written: u64,
    },
    /// The disk did not take it, now or before.
    #[error("the disk did not take all of what was written: {0}")]
    NotOnDisk(#[source] io::Error),
    /// Nobody waited for the disk.
    #[error("the disk was not waited for")]
    NotAwaited,
    /// After a write that failed it does not end as it should.
    #[error("it does not end with a whole block")]
    Torn,
    /// After a write that failed it can't be seen how it ends.
    #[error("it can't be seen whether it ends with a whole block: {0}")]
    Unseen(#[source] io::Error),
}

impl CloseError {
    /// Whether what was written may not be on the disk.
    pub fn is_of_disk(&self) -> bool {
        !matches!(self, Self::Removed | Self::Changed { .. })
    }
}

/// A write that failed. A file ends with the last whole block before it; in a pipe a part
/// of a block may follow.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct OutputError {
    /// The frames that are not in the output: of this write, and of earlier ones that were
    /// still waiting.
    pub lost: Vec<FinalFrame>,
    /// Why.
    pub source: io::Error,
    /// Why the file does not end with a whole block.
    pub torn: Option<io::Error>,
}

impl OutputError {
    /// Whether the other end of a pipe is gone: the reader has had enough.
    pub fn is_reader_gone(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }

    /// Whether the write was given up because it was told to.
    pub fn is_aborted(&self) -> bool {
        self.source.kind() == io::ErrorKind::Interrupted
    }

    /// What to tell people.
    pub(crate) fn cause(self) -> io::Error {
        self.torn.unwrap_or(self.source)
    }
}

impl From<WriteError> for OutputError {
    fn from(error: WriteError) -> Self {
        let source = match error {
            WriteError::Encode(error) => io::Error::other(error),
            WriteError::Output(error) => error,
        };
        Self {
            lost: Vec::new(),
            source,
            torn: None,
        }
    }
}
