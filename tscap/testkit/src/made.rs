//! What tests make on the machine, written down for `cargo xtask test`, which looks
//! whether it is there afterwards, and how long they take. Only what is written down counts as left behind:
//! others' captures and tests may run on the machine too.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Writes it down, if somebody wants to know: the variable names the file.
pub fn note(kind: &str, name: impl Display) {
    let Some(path) = std::env::var_os("TSCAP_TEST_RECORD") else {
        return;
    };
    let mut record = OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap_or_else(|error| panic!("open {}: {error}", path.display()));
    let line = format!("{kind} {name}\n");
    record.write_all(line.as_bytes()).expect("write the record");
}
