//! Goes on as the copy of this program whose file has the capabilities of a capture, for who
//! may execute that: the program itself is everybody's, and has none.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::Context as _;
use super::Failure;
use tscap_cli::Plan;
use tscap_host::caps::{self, Capability};
use tscap_host::installed::Installed;

/// What the copy has.
const CAPABILITIES: [Capability; 4] = [
    Capability::Bpf,
    Capability::NetAdmin,
    Capability::Perfmon,
    Capability::NetRaw,
];

/// Executes the copy in place of this program, with the same words, if it has what `plan` takes
/// and this process lacks. Returns if there is none, or this user may not execute it.
///
/// # Errors
/// If the kernel does not tell what this process lacks.
pub(super) fn take_its_place(plan: &Plan) -> Result<(), Failure> {
    if plan.is_of_files() || plan.is_of_helper() {
        return Ok(());
    }
    let lacking = caps::missing(&CAPABILITIES);
    let lacking = lacking.context("cannot read this process's capabilities")?;
    let copy = Installed::find().copy;
    let Some(copy) = copy.filter(|_| !lacking.is_empty()) else {
        return Ok(());
    };
    let mut words = env::args_os();
    let mut command = Command::new(copy);
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    // Why not does not matter: what lacks is said where it is needed.
    let _ = command.args(words).exec();
    Ok(())
}
