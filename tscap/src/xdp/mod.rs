//! The XDP programs from user space: embed, load, attach, read the counters.

mod attach;
mod calibration;
mod counters;
mod generator;
mod load;
mod object;
mod occupant;
pub mod offloads;
mod test_run;
mod tsc;

pub use attach::{AttachError, Attachment, ModeChoice, XdpMode, attach};
pub use calibration::TscOffset;
pub(crate) use calibration::calibrate;
pub use counters::{CounterError, Counters};
pub use generator::{Generator, GeneratorProgram, GeneratorState, is_generating};
pub(crate) use load::take;
pub use load::{LoadError, LoadOptions, Loaded};
pub use object::{PROGRAMS, program_name};
pub use occupant::Occupant;
pub(crate) use test_run::retried;
pub use tsc::{TscError, TscEvents};
