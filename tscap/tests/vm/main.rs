//! Checks in virtual machines with kernels that people run, on drivers that they
//! use: `cargo xtask test --vm`. Needs no privilege.
//!
//! This program is both the host's side, which boots the machines, and, copied
//! into the guest, the agent there.

mod agent;
mod architecture;
mod checks;
mod guest;
mod initramfs;
mod kernel;
mod machine;
mod nic;
mod others;
mod protocol;
mod traffic;

use std::process::ExitCode;
use std::sync::{Arc, RwLock};

use libtest_mimic::{Arguments, Trial};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::machine::Rig;

/// So many machines run side by side.
const MACHINES: usize = 2;
/// Checks of the clock need it for themselves: they compare times of the guest with the
/// host's.
static ROOM: RwLock<()> = RwLock::new(());

/// Names of checks, with commas between: only these run.
const ONLY: &str = "TSCAP_VM_ONLY";
/// Parts of names, with commas between: only checks with one of them run.
const PARTS: &str = "TSCAP_VM_PARTS";

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let called = arguments.next();
    if called.as_deref() == Some(agent::PROGRAM) {
        match arguments.next().as_deref() {
            Some(agent::PROBE) => agent::probe(&arguments.collect::<Vec<_>>()),
            Some(agent::TRAFFIC) => traffic::send(),
            Some(agent::SEND) => others::send(arguments),
            Some(agent::DATAGRAMS) => others::send_datagrams(arguments),
            Some(agent::OTHERS) => others::hold(arguments),
            Some(agent::STAMPED) => checks::stamp::exchange(arguments),
            Some(agent::REPLIES) => checks::stamp::reply_from(arguments),
            Some(agent::FILTERS) => checks::filter::run(arguments),
            Some(agent::INTERRUPTED) => checks::causes::interrupted(),
            _ => agent::serve(),
        }
        return ExitCode::SUCCESS;
    }
    // Killed, and the machine with it, when whoever started this ends.
    set_pdeathsig(Signal::SIGKILL).expect("ask for a signal");
    let mut arguments = Arguments::from_args();
    // A machine runs on one CPU; it dies with the thread that started it.
    arguments.test_threads.get_or_insert(MACHINES);
    let kernel = match Kernel::from_environment() {
        Ok(kernel) => kernel,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    let rig = Arc::new(Rig {
        initramfs: Initramfs::build(&kernel),
        kernel,
    });
    // The harness takes one filter.
    let [only, parts] = [ONLY, PARTS].map(|variable| std::env::var(variable).ok());
    let is_wanted = |name: &str| {
        let is_one = |only: &String| only.split(',').any(|it| it == name);
        let has_one = |parts: &String| parts.split(',').any(|it| name.contains(it));
        only.as_ref().is_none_or(is_one) && parts.as_ref().is_none_or(has_one)
    };
    let wanted = checks::ALL.iter().filter(|(name, _)| is_wanted(name));
    let trials = wanted.map(|(name, check)| {
        let rig = Arc::clone(&rig);
        Trial::test(*name, move || {
            // A check that failed poisons it, which matters to no other.
            let (_alone, _beside) = if name.starts_with("clock::") {
                (Some(ROOM.write()), None)
            } else {
                (None, Some(ROOM.read()))
            };
            check(&rig);
            Ok(())
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    conclusion.exit_code()
}
