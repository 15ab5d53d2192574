//! Captures under load: this tscap or another program at the receiving end of a
//! veth pair, frames sent to it from the other end, and where each frame went.
//!
//! `pair` and `traffic` are where frames come from, `tool` finds the programs and
//! `arguments` tells them what to do, `capture` runs one, `tool_report` understands what it
//! says and `count` what it wrote; `stack_end` drops what is left; `test_bed` puts all of it together to a `point`.

mod arguments;
mod busy;
mod capture;
mod count;
mod pair;
mod point;
mod receive_cpu;
mod stack_end;
mod stop;
mod test_bed;
mod tool;
mod tool_report;
mod traffic;

pub use arguments::Setup;
pub use busy::{CpuLoad, Ticks};
pub use capture::{Capture, LoadError, Outcome};
pub use count::{CountError, frames};
pub use pair::Pair;
pub use point::{Lost, Point, Unaccounted};
pub use stop::{Stop, Stopped};
pub use test_bed::{TestBed, cpu_apart, tool_cpus, tool_cpus_apart};
pub use tool::{NotInstalled, Program, Tool};
pub use tool_report::{Loss, Stage, ToolReport};
pub use traffic::{Burst, FAST_BYTES, IMIX, Sizes, Traffic, needs_bulks};
