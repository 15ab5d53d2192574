//! The records of a capture file.
//!
//! It is read twice: what it says of its clock stands in statistics blocks behind the packets,
//! and all of it has to be known before the first delay is counted.

use std::io::{Read, Seek, SeekFrom};

use tscap_base::text::causes::chain;
use tscap_file::pcapng::{Damage, ReadError, Record, records};

/// Why it can't be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It does not begin as a pcapng file does.
    #[error("not a pcapng file")]
    NotPcapng(#[source] ReadError),
    /// It can't be read twice.
    #[error("cannot go back to its start")]
    Seek(#[source] std::io::Error),
}

/// What statistics that can't be read may hold.
pub const HIDDEN_STEPS: &str =
    "what can't be read may say that the clock was set during the capture";

/// How far a file could be read.
#[derive(Debug, Default)]
pub struct End {
    /// What was left out.
    damage: Damage,
    /// Why it was not read to its end.
    error: Option<ReadError>,
}

impl End {
    /// Whether all of it was read.
    pub fn is_whole(&self) -> bool {
        self.damage.is_none() && self.error.is_none()
    }

    /// Whether statistics of tscap's, and with them steps of the clock, may be among what could
    /// not be read.
    pub fn may_hide_steps(&self) -> bool {
        self.error.is_some() || !(self.damage.is_of_packets() || self.damage.is_torn_end())
    }

    /// What a reader must know. Of captures of tscap's, bounds are said.
    pub fn warnings(&self, is_tscaps: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.damage.is_torn_end() {
            warnings.push(
                "the file ends in the middle of a block, as that of a killed capture may: read up \
                 to there"
                    .into(),
            );
        } else if !self.damage.is_none() {
            warnings.push(format!("left out: {}", self.damage.lines().join("; ")));
        }
        if is_tscaps && self.may_hide_steps() {
            warnings.push(format!(
                "{HIDDEN_STEPS}: times may be off by more than is said"
            ));
        }
        let error = self.error.as_ref();
        warnings.extend(error.map(|error| format!("read up to there: {}", chain(error))));
        warnings
    }
}

/// Hands over the records, from the start of the file on; what can't be read among them is in
/// what comes back.
pub fn each_record<R: Read + Seek>(
    file: &mut R,
    mut then: impl FnMut(Record),
) -> Result<End, CaptureError> {
    file.seek(SeekFrom::Start(0)).map_err(CaptureError::Seek)?;
    let mut end = End::default();
    for record in records(file).map_err(CaptureError::NotPcapng)? {
        match record {
            Ok(Record::Damaged(damaged)) => end.damage.add(damaged),
            Ok(record) => then(record),
            Err(error) => {
                end.error = Some(error);
                break;
            }
        }
    }
    Ok(end)
}

/// The first records once more, one by one; what can't be read among them is passed over.
pub fn first_records<R: Read + Seek>(
    file: &mut R,
    most: usize,
) -> Result<impl Iterator<Item = Record>, CaptureError> {
    file.seek(SeekFrom::Start(0)).map_err(CaptureError::Seek)?;
    let records = records(file).map_err(CaptureError::NotPcapng)?;
    let records = records.map_while(Result::ok);
    let read = records.filter(|record| !matches!(record, Record::Damaged(_)));
    Ok(read.take(most))
}
