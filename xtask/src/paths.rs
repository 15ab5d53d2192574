//! Where things lie in the checkout.

use std::env;
use std::path::PathBuf;

/// The root of the checkout. `cargo run` names it at run time; the value from
/// compile time serves a binary that is started by hand.
pub fn root() -> PathBuf {
    let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    match manifest_dir.parent() {
        Some(root) => root.to_path_buf(),
        None => manifest_dir,
    }
}

/// The folder of the committed eBPF objects.
pub fn committed_objects() -> PathBuf {
    root().join("tscap/ebpf")
}
