//! Classic BPF to eBPF, to be put in the place of one call in a program that has the
//! frame.
//!
//! # The contract
//!
//! - At the beginning r1 is the context. [`SCRATCH_BYTES`] of the program's stack, at a
//!   place that is known when the filter is translated, are the filter's: what is in them
//!   may be uninitialised. [`scratch_offset`] finds the place that a call hands over in r2.
//! - With [`FrameAccess::tag_beside`] r3 has the VLAN tag at the beginning: a u32 with the
//!   four bytes as they would be in memory, TPID and TCI in network order. The frame has the
//!   two addresses before it.
//! - At the end control falls past the last instruction, with the verdict in r0: 0 rejects
//!   the frame. r1 to r5 may hold anything. r6 to r9 are never touched: whether they hold
//!   anything that could be saved is nobody's concern here.
//! - All jumps stay inside. There is no map, no global and no function.
//!
//! # How
//!
//! The program is there twice. The first time loads are direct, behind a comparison with
//! the end of the frame's linear part; nothing is called, so that data and its end stay in
//! registers. The first load that finds its bytes missing there goes to the beginning of
//! the second one, whose loads are all made by a helper that knows the whole frame. Filters
//! have no side effects, so that one may begin again. This way the verifier never meets
//! both kinds of loads on one path. Where a program can't look into the linear part, there
//! is the second copy only.
//!
//! A tag beside the frame is put into the scratch memory. Where a load's bytes are is known
//! when it is translated, unless X is added to less than the tag's end: `place` says it. The
//! second copy puts together what is partly in the tag, byte by byte; the first one leaves
//! that to it.

mod access;
mod assembler;
mod body;
mod emitter;
mod load;
mod loads;
mod place;
mod rows;
mod scratch;

pub use tscap_common::config::FILTER_SCRATCH_BYTES as SCRATCH_BYTES;

pub use self::access::{FrameAccess, FrameLength, FrameLoad};
use self::assembler::{Assembler, Label, Register, Source, Width};
use self::emitter::{Body, Loads};
use self::scratch::Scratch;
use super::ancillary::{self, Unsupported};
use super::classic::{Operation, Program};
use super::flow::{Step, flow};
use crate::ebpf::{BPF_ADD, Instruction};

/// Where a VLAN tag stands in a frame, behind the addresses; where it ends.
const TAG_AT: u32 = 12;
const TAG_END: u32 = TAG_AT + TAG_BYTES;
const TAG_BYTES: u32 = 4;

/// Why a program is not translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// It loads what tscap does not know of a frame.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The scratch memory is not where it can be.
    #[error(
        "the filter's scratch memory can't begin {0} bytes from the end of the stack: it takes \
         {SCRATCH_BYTES} of at most 512, in words of 8"
    )]
    Scratch(i16),
    /// A jump is longer than jumps can be.
    #[error(
        "the filter is too long: it makes {length} instructions for the kernel, whose jumps reach \
         32,767; use fewer terms, or terms that say more, such as `net` for many of `host`"
    )]
    TooFar {
        /// Instructions of eBPF.
        length: usize,
    },
}

/// The filter as eBPF for a hook, with its scratch memory at `scratch` bytes from the end
/// of the stack (r10): a negative multiple of 8.
///
/// # Errors
/// When it loads what is not known of a frame, or is too long.
pub fn translate(
    program: &Program,
    access: &FrameAccess,
    scratch: i16,
) -> Result<Vec<Instruction>, TranslateError> {
    ancillary::check(program)?;
    let scratch = Scratch::at(scratch)?;
    let steps = flow(program);
    let mut code = Assembler::default();
    let [slow, reject, end] = [(); 3].map(|()| code.label());
    let body = Body {
        steps: &steps,
        access,
        scratch,
        slow,
        reject,
        end,
    };
    if access.tag_beside {
        code.store(Width::Word, Register::Frame, scratch.tag(), Register::R3);
    }
    if reads_length(&steps) {
        length(&mut code, access, scratch);
    }
    if access.linear.is_some() {
        body.emit(&mut code, Loads::Direct);
    }
    if access.linear.is_none() || code.is_used(slow) {
        code.bind(slow);
        body.emit(&mut code, Loads::ByHelper);
    }
    if code.is_used(reject) {
        code.bind(reject);
        code.mov32(Register::R0, Source::Constant(0));
    }
    code.bind(end);
    code.finish()
}

fn reads_length(steps: &[Step]) -> bool {
    steps.iter().any(|step| {
        matches!(
            step.instruction.operation(),
            Operation::LoadLength | Operation::LoadXLength
        )
    })
}

/// Writes the frame's length to the scratch memory.
fn length(code: &mut Assembler, access: &FrameAccess, scratch: Scratch) {
    match access.length {
        FrameLength::Field(offset) => code.load(Width::Word, Register::R0, Register::R1, offset),
        FrameLength::Helper(helper) => {
            code.store(
                Width::Double,
                Register::Frame,
                scratch.context(),
                Register::R1,
            );
            code.call(helper);
            code.load(
                Width::Double,
                Register::R1,
                Register::Frame,
                scratch.context(),
            );
        }
    }
    if access.tag_beside {
        code.alu32(BPF_ADD, Register::R0, Source::Constant(TAG_BYTES));
    }
    code.store(Width::Word, Register::Frame, scratch.length(), Register::R0);
}
