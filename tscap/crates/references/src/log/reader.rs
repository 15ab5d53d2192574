//! Reads a log line by line.

use std::io::{self, BufRead, Read as _};

use serde::de::Error as _;

use super::{Entry, Header, KIND, Line, VERSION};

/// Why a log can't be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadLogError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not begin as a log does.
    #[error("not a clock log")]
    NotALog,
    /// Written by another version of tscap.
    #[error("a clock log of version {found}; this tscap reads version {VERSION}")]
    Version {
        /// The version that it says.
        found: u64,
    },
    /// A whole line is not as tscap writes it.
    #[error("line {number} of the clock log is damaged")]
    Damaged {
        /// From 1 on.
        number: u64,
        /// What is wrong in it.
        source: serde_json::Error,
    },
    /// A part of it is of another boot.
    #[error("line {number} of the clock log is of another boot")]
    OtherBoot {
        /// From 1 on.
        number: u64,
    },
}

/// A log's whole lines after its first header, one after the other.
#[derive(Debug)]
pub struct LogReader<R> {
    from: R,
    header: Header,
    number: u64,
    line: Vec<u8>,
    is_torn: bool,
}

/// More bytes than any line has: 10 s with as much as they can hold are some 40 kB.
const LONGEST: u64 = 16 << 20;

impl<R: BufRead> LogReader<R> {
    /// Reads its header.
    ///
    /// # Errors
    /// [`ReadLogError`]
    pub fn new(mut from: R) -> Result<Self, ReadLogError> {
        let mut line = Vec::new();
        read_line(&mut from, &mut line)?;
        Ok(Self {
            from,
            header: header(&line)?,
            number: 1,
            line,
            is_torn: false,
        })
    }

    /// The first one.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the last line, which has been passed over, is torn: its writer was
    /// killed, or is at work.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// [`ReadLogError`]
    pub fn next_line(&mut self) -> Result<Option<Line>, ReadLogError> {
        read_line(&mut self.from, &mut self.line)?;
        let number = self.number + 1;
        self.number = number;
        if self.line.is_empty() {
            return Ok(None);
        }
        if !self.line.ends_with(b"\n") && self.line.len() as u64 <= LONGEST {
            self.is_torn = true;
            return Ok(None);
        }
        if is_header(&self.line) {
            let header = header(&self.line).map_err(|error| match error {
                ReadLogError::Damaged { source, .. } => ReadLogError::Damaged { number, source },
                error => error,
            })?;
            return if header.boot_id == self.header.boot_id {
                Ok(Some(Line::Header(header)))
            } else {
                Err(ReadLogError::OtherBoot { number })
            };
        }
        let entry = entry(&self.line).map_err(|source| ReadLogError::Damaged { number, source })?;
        Ok(Some(Line::Entry(Box::new(entry))))
    }
}

fn entry(line: &[u8]) -> Result<Entry, serde_json::Error> {
    let entry: Entry = serde_json::from_slice(line)?;
    if entry.status.counter.ns_per_cycle_2_58.is_possible() {
        Ok(entry)
    } else {
        Err(serde_json::Error::custom("no counter has such a rate"))
    }
}

fn read_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    let mut limited = from.by_ref().take(LONGEST + 1);
    limited.read_until(b'\n', line).map(drop)
}

/// Whether a text begins as a log does.
pub fn is_header(text: &[u8]) -> bool {
    text.starts_with(format!("{{\"kind\":\"{KIND}\",").as_bytes())
}

pub(super) fn header(line: &[u8]) -> Result<Header, ReadLogError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        v: u64,
    }
    if !is_header(line) || !line.ends_with(b"\n") {
        return Err(ReadLogError::NotALog);
    }
    let versioned = serde_json::from_slice::<Versioned>(line);
    let Versioned { v } = versioned.map_err(|_| ReadLogError::NotALog)?;
    if v != u64::from(VERSION) {
        return Err(ReadLogError::Version { found: v });
    }
    serde_json::from_slice(line).map_err(|source| ReadLogError::Damaged { number: 1, source })
}
