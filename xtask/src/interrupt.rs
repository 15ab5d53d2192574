//! Ctrl-C and its relatives, turned into an error at the next step so that
//! whatever was set up is taken down on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From here on SIGINT, SIGTERM and SIGHUP no longer end this process. They do
/// end its children: an exec gives a caught signal its default action back.
pub fn watch() -> Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))
            .with_context(|| format!("cannot catch signal {signal}"))?;
    }
    Ok(())
}

/// Fails after one of the signals.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}
