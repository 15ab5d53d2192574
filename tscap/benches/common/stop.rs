//! An end by signals.

use std::sync::Arc;
use std::thread;

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};
use tscap_traffic::load::Stop;

/// Captures have process groups of their own, which a terminal's Ctrl-C does not
/// reach: we end them.
pub fn stopped_by_signals() -> Result<Arc<Stop>> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    // Threads inherit this, captures don't.
    signals.thread_block()?;
    let stop = Arc::new(Stop::default());
    let asked = Arc::clone(&stop);
    thread::spawn(move || {
        while signals.wait().is_ok() {
            let is_second = !asked.ask();
            asked.kill_child();
            if is_second {
                std::process::exit(130);
            }
        }
    });
    Ok(stop)
}
