//! What stands in the file besides the packets: section header, interface
//! descriptions, statistics. All by the pcap-file crate; the packets are
//! written by the XDP program and made final by the engine.

mod account;
mod block;
mod blocks;
mod custom;
mod damage;
mod describe;
mod file;
mod history;
mod merge;
mod name;
mod options;
mod padding;
mod reader;
mod record;
mod rewrite;
mod times_clock;

pub use account::AccountError;
pub use block::BlockFault;
pub use custom::{
    ClockOption, FollowerOption, HardwareOption, HardwareStatistics, Hooks, InterfaceOption, PEN,
    PartOption, StampOption, StatisticsOption, VlanTags,
};
pub use damage::{Damage, Damaged};
pub use file::{FileWriter, InterfaceInfo, SectionInfo, WriteError, most_final_bytes};
pub use history::Gatherer;
pub use merge::{
    CaptureReport, Contradiction, InputReport, MergeError, Merged, Neighbours, Source, merge,
};
pub use name::pcap_name;
pub use padding::{LEAST_PADDING, padded};
pub use reader::records;
pub use record::{Interface, Origin, Packet, ReadError, Record};
pub use rewrite::{Changes, Copied, RewriteError, Times, rewrite};

pub use times_clock::{ClockRelation, TimesClock};

#[cfg(test)]
mod tests;
