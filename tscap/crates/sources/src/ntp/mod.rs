//! NTP exchanges of this host, stamped by programs at its interface: as the reference of a
//! clock ([`NtpReference`]), or to see what a server on this host stamps ([`Audit`]).
//!
//! Nothing here runs by itself: who owns one of them calls `turn` some times a second.

mod audit;
mod client;
mod hooks;
mod ntp_reporter;
mod reference;
mod waiting;

pub use audit::{Audit, AuditEvent, Stamped};
pub use client::{SHORTEST_FOREIGN_POLL, ServerName};
pub use hooks::{Lost, SharedWith};
pub use ntp_reporter::NtpReporter;
pub use reference::{ExchangeCounts, NtpEvent, NtpPlan, NtpReference};
