//! The programs from user space: embed, load, attach, read the counters.

mod attach;
mod attached_program;
mod calibration;
mod code;
mod counters;
mod disturbance;
mod expected;
mod generator;
mod held;
mod kfunc;
mod load;
mod object;
pub mod offloads;
mod program;
mod retry;
mod splice;
mod tsc;

pub use attach::{AttachError, AttachPoint, Attacher, Attachment, EgressPoint, HookChoice, Port};
pub use attached_program::AttachedProgram;
pub use calibration::TscOffset;
pub(crate) use calibration::calibrate;
pub use code::FilterError;
pub(crate) use code::{Call, Code};
pub use counters::{CounterError, Counters};
pub use disturbance::{Disturbance, words as disturbance_in_words};
pub use expected::{Expected, expected};
pub use generator::{Generator, GeneratorProgram, GeneratorState, generates_by_perf};
pub use held::{Held, Presence, Refusal};
pub use kfunc::{BtfError, InterruptKfuncs, Kfunc, NoKfunc, TransmitKernel, VlanTagKfunc, has_tcx};
pub use load::{LoadError, LoadOptions, Loaded};
pub(crate) use load::{load_by, take};
pub use object::PROGRAMS;
pub use program::Program;
pub(crate) use retry::retry_interrupted;
pub use tsc::{TscError, TscEvents};
