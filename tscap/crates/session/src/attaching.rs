//! How the programs of a measurement are attached where there is no link of the kernel, and what
//! helps where they can't be.

use std::os::fd::BorrowedFd;

use tscap_base::failure::Failure;
use tscap_live::settings::SettingsGuard;
use tscap_network::clsact::{Clsact, Side};
use tscap_network::netdev::Link;
use tscap_programs::hook::{AttachError, AttachPoint, Refusal};

/// Attaches programs as filters of clsact, which are among the `changes` to the machine.
pub fn by_filter(
    changes: &mut SettingsGuard,
) -> impl FnMut(BorrowedFd<'_>, &Link, Side) -> Result<Clsact, Refusal> {
    |program, link, side| Ok(changes.attach_filter(program, link, side, "tscap")?)
}

/// What helps where a program can't be attached.
pub fn not_attached(error: AttachError) -> Failure {
    let hint = match &error {
        AttachError::Busy { .. } => "tscap doctor -i names what is there",
        AttachError::Refused {
            at: AttachPoint::Tap,
            ..
        } => "it needs CAP_NET_RAW: run as root",
        _ => "dmesg may say more",
    };
    Failure::from_error(error, "cannot attach the program").hint(hint)
}
