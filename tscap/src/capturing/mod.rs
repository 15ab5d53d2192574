//! What captures. No module here uses one of [`crate::measuring`], and each uses
//! only modules that stand before it in this list:
//!
//! `accounting` (what became of each frame), `host` (the operating system), `membership` (what
//! is not for everybody who may capture), `filter`
//! (which frames are asked for), `clock` (raw stamps to wall clock), `pcapng` (the file),
//! `ring` (shared memory), `hook` (load and attach the programs, read their counters),
//! `settings` (what must be given back, and its journal), `doctor` (checks of the
//! machine), `engine` (the converter thread), `capture` (all of it as an object), `stamping`
//! (receive times for programs that know nothing of tscap), `ntp` (exchanges with NTP
//! servers, stamped by the programs), `reference` (a server or a PTP device whose time takes
//! the place of the host's).

pub mod accounting;
pub mod capture;
pub mod clock;
pub mod doctor;
pub mod engine;
pub mod filter;
pub mod hook;
#[allow(unsafe_code, reason = "system calls without a safe wrapper")]
pub mod host;
pub mod membership;
pub mod ntp;
pub mod pcapng;
pub mod reference;
#[allow(
    unsafe_code,
    reason = "maps memory that the kernel writes; the invariants are in its files"
)]
pub mod ring;
pub mod settings;
pub mod stamping;
pub mod time;
