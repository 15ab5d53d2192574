//! What stands in the file besides the packets: section header, interface
//! descriptions, statistics. All by the pcap-file crate; the packets are
//! written by the XDP program and made final by the engine.

mod account;
mod block;
mod custom;
mod describe;
mod file;
mod history;
mod options;
mod reader;
mod rewrite;

pub use account::AccountError;
pub use block::BlockFault;
pub use custom::{
    ClockOption, Hooks, InterfaceOption, PEN, StampOption, StatisticsOption, VlanTags,
};
pub use file::{FileWriter, InterfaceInfo, SectionInfo, WriteError, most_final_bytes};
pub use history::Gatherer;
pub use reader::{Interface, Packet, ReadError, Record, interval_ns, records};
pub use rewrite::{Changes, Copied, RewriteError, Times, rewrite};

#[cfg(test)]
mod tests;
