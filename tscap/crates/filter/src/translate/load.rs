//! Loads of a program, one by one.

use super::emitter::{A, X};
use super::{Register, Width};
use crate::ancillary::Ancillary;
use crate::classic::{Operation, Size};
use crate::flow::Step;

/// Bytes of the frame that an instruction loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub from: u32,
    /// X is added to `from`.
    pub indirect: bool,
    pub size: Size,
    /// The result is the length of an IPv4 header, in X.
    pub header_length: bool,
}

impl Load {
    pub fn of_byte(from: u32) -> Self {
        Self {
            from,
            indirect: false,
            size: Size::Byte,
            header_length: false,
        }
    }

    /// The register for the result.
    pub fn to(self) -> Register {
        if self.header_length { X } else { A }
    }
}

/// What a step loads of the frame's bytes, if it does.
pub(super) fn load_of(step: &Step) -> Option<Load> {
    let it = &step.instruction;
    let load = Load::of_byte(it.k);
    match it.operation() {
        Operation::LoadAbsolute(size) if Ancillary::at(it.k).is_none() => {
            Some(Load { size, ..load })
        }
        Operation::LoadIndirect(size) => Some(Load {
            size,
            indirect: true,
            ..load
        }),
        Operation::LoadXHeaderLength => Some(Load {
            header_length: true,
            ..load
        }),
        _ => None,
    }
}

pub(super) fn width(size: Size) -> Width {
    match size {
        Size::Byte => Width::Byte,
        Size::Half => Width::Half,
        Size::Word => Width::Word,
    }
}
