//! The programs from user space: embed, load, attach, read the counters.

mod attach;
mod attach_error;
mod attach_point;
mod attached_program;
mod calibration;
mod call;
mod code;
mod counters;
mod disturbance;
mod entry;
mod expected;
mod generator;
mod held;
mod kfunc;
mod layer;
mod load;
mod load_error;
mod loader;
mod object;
pub mod offloads;
mod order;
mod place;
mod port;
mod program;
mod retry;
mod scratch_offset;
mod shares;
mod splice;
mod stamper;
mod tsc;

pub use attach::{Attacher, Attachment};
pub use attach_error::AttachError;
pub use attach_point::AttachPoint;
pub use attached_program::AttachedProgram;
pub use calibration::calibrate;
pub use call::Call;
pub use code::Code;
pub use counters::{CounterError, Counters};
pub use disturbance::{Disturbance, words as disturbance_in_words};
pub use entry::NoEntry;
pub use expected::{Expected, expected};
pub use generator::{Generator, GeneratorProgram, GeneratorState, generates_by_perf};
pub use held::{Held, Presence, Refusal};
pub use kfunc::{
    BtfError, InterruptKfuncs, KernelCounters, Kfunc, MetadataKfunc, NoCounters, NoKfunc,
    TransmitKernel, has_tcx,
};
pub use layer::{Layer, LayerAttacher, LayerError, LayerPoint};
pub use load::take;
pub use load::{KFUNC_BRACKET_PROGRAM, Keys, LoadOptions, Loaded, MIRROR_PROGRAM};
pub use load_error::{FilterError, LoadError};
pub use loader::Loader;
pub use object::{COMPARE_PROGRAMS, KEY_PROGRAMS, LAYER_PROGRAMS, PROGRAMS};
pub use place::Place;
pub use port::{EgressPoint, HookChoice, Port};
pub use program::Program;
pub use retry::retry_interrupted;
pub use shares::Shares;
pub use stamper::{Stamper, StamperLinks};
pub use tsc::{TscError, TscEvents, TscOffset};
