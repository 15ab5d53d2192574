//! `--rx-cpu` and `tscap restore` on veth: what is steered is where it should
//! be, and everything is given back. Needs root.

mod interrupts;
mod killed;
mod machine;
mod namespaces;
mod refusals;
mod restored;
mod steering;

/// Why its tests run alone.
const JOURNALS: &str = "journals are the machine's";
