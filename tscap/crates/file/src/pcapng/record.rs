//! What a capture holds: its records, and why there are no more.

use std::io;

use pcap_file::{DataLink, Endianness};
use serde::{Deserialize, Serialize};

use super::block::{BlockFault, SECTION_OPTIONS, options};
use super::custom::{InterfaceOption, StatisticsOption};
use super::damage::Damaged;
use crate::accounting::Direction;
use tscap_clock::{FileNs, Impossible, RawStamp};

/// Why a capture can't be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused to read the file.
    #[error("cannot read on")]
    Io(#[source] io::Error),
    /// It does not begin with a section header.
    #[error("it does not begin with a section header")]
    NotPcapng,
    /// A block that can't be read, and without which there is no more: the first one.
    #[error("cannot read the block at byte {at}")]
    Block {
        /// Where it begins in the file.
        at: u64,
        /// What is wrong in it.
        #[source]
        fault: BlockFault,
    },
    /// An option under our number that is not ours.
    #[error("a custom option of tscap's number is not as tscap writes it")]
    Option(#[from] serde_json::Error),
    /// The history of the clock can't be one.
    #[error(transparent)]
    Clock(#[from] Impossible),
    /// The file holds clocks of several captures.
    #[error("it holds the clocks of several captures")]
    OtherClock,
    /// Of several writers, merged.
    #[error("it was merged of several writers' files, without the history of their clocks")]
    NoHistory,
    /// An option is full.
    #[error("a block has no room for what changes in it: an option holds 64 KiB at most")]
    NoRoom,
}

/// What a section header says of where and by what the section was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The hardware.
    pub hardware: Option<String>,
    /// The operating system.
    pub os: Option<String>,
    /// The program.
    pub application: Option<String>,
}

impl Origin {
    /// What this section header says.
    pub(super) fn of(block: &[u8], endianness: Endianness) -> Self {
        let mut origin = Self::default();
        for (code, value) in options(block, SECTION_OPTIONS, endianness).map_while(Result::ok) {
            let of = match code {
                SHB_HARDWARE => &mut origin.hardware,
                SHB_OS => &mut origin.os,
                SHB_USERAPPL => &mut origin.application,
                _ => continue,
            };
            of.get_or_insert_with(|| String::from_utf8_lossy(&block[value]).into_owned());
        }
        origin
    }
}

/// Codes of options (draft-ietf-opsawg-pcapng, section 4.1).
const SHB_HARDWARE: u16 = 2;
const SHB_OS: u16 = 3;
const SHB_USERAPPL: u16 = 4;

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The section that describes it, counted from 0 on.
    pub section: u32,
    /// Its name, if the file has it.
    pub name: Option<String>,
    /// What its frames begin with.
    pub linktype: DataLink,
    /// Its description can't be read: no more is known of it, and its packets and statistics
    /// are damaged as well. It has a number as the others have.
    pub is_damaged: bool,
    /// Step of its stamps, ns; 1 if they are finer.
    pub resolution_ns: u64,
    /// How its frames were taken; `None` if another program wrote it, or its times are not
    /// in nanoseconds.
    pub tscap: Option<InterfaceOption>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of its interface in the file.
    pub interface: u32,
    /// Its time in the file.
    pub time: FileNs,
    /// The stamp as it was taken, if the capture kept it: for the TSC already
    /// with its CPU's offset, so that stamps of all CPUs compare.
    pub raw: Option<RawStamp>,
    /// Which way it went, by its flags; received if it has none.
    pub direction: Direction,
    /// Its length on the wire, bytes.
    pub origlen: u32,
    /// What was captured of it.
    pub data: Vec<u8>,
}

/// What a capture holds, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "read one at a time, and descriptions are few"
)]
pub enum Record {
    /// A section begins.
    Section(Origin),
    /// An interface: they are numbered from 0 on, also in a file of several
    /// sections.
    Interface(Interface),
    /// A frame.
    Packet(Packet),
    /// A frame in a simple packet block, which has no time. It is of the first interface of
    /// its section.
    Untimed {
        /// Index of its interface in the file.
        interface: u32,
        /// Its length on the wire, bytes.
        origlen: u32,
        /// What was captured of it.
        data: Vec<u8>,
    },
    /// Statistics with counts and clock of the interface with this index.
    Statistics(u32, Box<StatisticsOption>),
    /// A part that can't be read. An interface description that can't be is told before it.
    Damaged(Damaged),
}
