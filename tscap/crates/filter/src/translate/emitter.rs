//! What the copies of a program are made of.

use super::{Assembler, FrameAccess, Label, Register, Scratch};
use crate::flow::Step;

/// A of classic BPF.
pub(super) const A: Register = Register::R0;
/// The context, in the body of direct loads.
pub(super) const CONTEXT: Register = Register::R1;
/// X of classic BPF.
pub(super) const X: Register = Register::R2;
/// The frame's linear part and its end, in the body of direct loads.
pub(super) const DATA: Register = Register::R3;
pub(super) const DATA_END: Register = Register::R4;
pub(super) const PLACE: Register = Register::R5;

/// Ends of headers behind that of Ethernet: IPv4, ARP, IPv6. One comparison is made for all
/// loads up to such an end: a frame that has a part of one has all of it.
pub(super) const HEADER_ENDS: [u32; 3] = [34, 42, 54];

/// How the frame's bytes are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loads {
    /// From the linear part.
    Direct,
    /// By the helper that knows the whole frame.
    ByHelper,
}

/// What both copies are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a> {
    pub steps: &'a [Step],
    pub access: &'a FrameAccess,
    pub scratch: Scratch,
    /// Where a direct load goes whose bytes are not in the linear part.
    pub slow: Label,
    /// Where a frame is rejected.
    pub reject: Label,
    /// Where the verdict is in r0.
    pub end: Label,
}

/// One copy in the making.
pub(super) struct Emitter<'a> {
    pub body: &'a Body<'a>,
    pub loads: Loads,
    pub labels: Vec<Label>,
    /// Bytes that the linear part has at least when a step begins; `None` for a step that
    /// no path goes to.
    pub known: Vec<Option<u32>>,
    /// How many steps go to each one.
    pub entries: Vec<usize>,
    /// How far loads reach into each of [`HEADER_ENDS`].
    pub reached: [u32; HEADER_ENDS.len()],
    pub code: &'a mut Assembler,
}
