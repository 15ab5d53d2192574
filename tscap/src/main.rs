//! The `tscap` command.
fn main() {}
