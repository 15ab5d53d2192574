//! What tscap changes on the machine for the time of a capture and nobody but
//! tscap would give back: affinities, steering, offloads, receive filters of hardware stamps,
//! filters of clsact.
//!
//! Each change is written into a journal, a file of this process in
//! [`JournalFolder`], before it is made; the journal goes away when the old
//! values are back. So a process that is killed leaves a journal, by which
//! `tscap restore` knows what it owes. A capture that gives up its privileges leaves journal
//! and giving back to a [`keeper`]. `tscap doctor --fix` leaves a journal on purpose. (Links
//! of programs and promiscuous mode need none: the kernel takes them back from a dead
//! process.)

mod change;
mod filter;
mod guard;
mod interface;
mod journal;
pub mod keeper;
pub mod leftovers;
mod lock;
mod restore;
mod setting;
pub mod turn;

pub use change::{Change, Planned, RestoreOutcome};
pub use filter::FilterError;
pub use guard::{Refused, RestoreSummary, SettingsGuard};
pub use interface::{InterfaceId, sysfs_is_here};
pub use journal::{Journal, JournalError, JournalFolder, State};
pub use lock::JournalLock;
pub use setting::{ChangeError, Setting, SettingValue};

#[cfg(test)]
mod tests;
