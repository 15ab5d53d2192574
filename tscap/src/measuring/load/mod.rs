//! Captures under load: this tscap or another program at the receiving end of a
//! veth pair, frames sent to it from the other end, and where each frame went.
//!
//! `pair` and `traffic` are where frames come from, `tool` finds the programs and
//! `arguments` tells them what to do, `capture` runs one, `said` understands what it
//! says and `count` what it wrote; `stand` puts all of it together to a `point`.

mod apart;
mod arguments;
mod busy;
mod capture;
mod count;
mod pair;
mod point;
mod said;
mod stand;
mod stop;
mod tool;
mod traffic;

pub use arguments::Setup;
pub use capture::{Capture, LoadError, Outcome};
pub use count::{CountError, frames};
pub use pair::Pair;
pub use point::{Lost, Point, Unaccounted};
pub use said::{Loss, Said, Stage};
pub use stand::{Stand, tool_cpus};
pub use stop::Stop;
pub use tool::{Absent, Program, Tool};
pub use traffic::{Burst, FAST_BYTES, Traffic};
