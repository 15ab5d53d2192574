//! Names of files.

use std::path::PathBuf;

/// A file that node_exporter's textfile collector reads.
pub(crate) fn metrics_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.extension().is_some_and(|ending| ending == "prom") {
        Ok(path)
    } else {
        Err("the name must end in .prom: node_exporter reads no other file".into())
    }
}
