//! Loads of the frame's bytes, in either way.

use crate::ebpf::{BPF_ADD, BPF_AND, BPF_JGT, BPF_JNE, BPF_LSH};

use super::emitter::{A, CONTEXT, DATA, DATA_END, Emitter, HEADER_ENDS, PLACE, X};
use super::load::{Load, width};
use super::place::{Place, place};
use super::{FrameLoad, Register, Source, Width};
use crate::classic::Size;
use crate::flow::Step;

/// The greatest end of a direct load, and the greatest X of one. The verifier takes both
/// together: their sum is below its `MAX_PACKET_OFF`.
const MOST_DIRECT: u32 = 0x7fff;

impl Emitter<'_> {
    /// False if the load can't be direct, so that nothing comes after it.
    pub fn load_direct(&mut self, load: Load, known: &mut u32) -> bool {
        let slow = self.body.slow;
        let from = match place(load, self.body.access) {
            Place::Frame(from) if from.saturating_add(load.size.bytes()) <= MOST_DIRECT => from,
            Place::Tag(at) => {
                self.load_of_tag(load, at);
                return true;
            }
            Place::Frame(_) | Place::Mixed => {
                self.code.goto(slow);
                return false;
            }
        };
        let size = load.size.bytes();
        let end = from + size;
        let compared = if load.indirect {
            end
        } else {
            self.widened(end)
        };
        if load.indirect || *known < end {
            self.code.mov64(PLACE, DATA);
            if load.indirect {
                let most = Source::Constant(MOST_DIRECT);
                self.code.branch64(BPF_JGT, X, most, slow);
                self.code.alu64(BPF_ADD, PLACE, Source::Register(X));
            }
            self.code.alu64(BPF_ADD, PLACE, Source::Constant(compared));
            let data_end = Source::Register(DATA_END);
            self.code.branch64(BPF_JGT, PLACE, data_end, slow);
        }
        let (base, offset) = if load.indirect {
            (PLACE, -(size as i16))
        } else {
            *known = compared.max(*known);
            (DATA, from as i16)
        };
        self.code.load(width(load.size), load.to(), base, offset);
        self.finish_load(load);
        true
    }

    /// The end up to which bytes are compared for at once.
    fn widened(&self, end: u32) -> u32 {
        let headers = HEADER_ENDS.iter().zip(self.reached);
        let mut headers = headers.filter(|(header, _)| end <= **header);
        headers.next().map_or(end, |(_, reached)| reached)
    }

    /// Loads from the tag beside the frame.
    fn load_of_tag(&mut self, load: Load, at: u32) {
        let tag = self.body.scratch.tag() + at as i16;
        self.code
            .load(width(load.size), load.to(), Register::Frame, tag);
        self.finish_load(load);
    }

    /// False if no frame has such bytes, so that nothing comes after it.
    pub fn load_by_helper(&mut self, load: Load, step: &Step) -> bool {
        let (access, scratch, reject) = (self.body.access, self.body.scratch, self.body.reject);
        let place = place(load, access);
        match place {
            Place::Frame(from) if from > access.most_offset => {
                self.code.goto(reject);
                return false;
            }
            Place::Tag(at) => {
                self.load_of_tag(load, at);
                return true;
            }
            Place::Frame(_) | Place::Mixed => {}
        }
        let kept = if load.header_length {
            step.live_after.a().then_some(A)
        } else {
            let is_read = load.indirect && place == Place::Mixed;
            (is_read || step.live_after.x()).then_some(X)
        };
        let frame = Register::Frame;
        if let Some(register) = kept {
            self.code
                .store(Width::Word, frame, scratch.kept(), register);
        }
        match place {
            Place::Frame(from) => {
                // The second argument is where X is.
                if load.indirect {
                    self.code.alu64(BPF_ADD, X, Source::Constant(from));
                    let most = Source::Constant(access.most_offset);
                    self.code.branch64(BPF_JGT, X, most, reject);
                } else {
                    self.code.mov32(Register::R2, Source::Constant(from));
                }
                self.call_helper(0, load.size.bytes());
            }
            Place::Mixed | Place::Tag(_) => self.assemble(load),
        }
        self.code
            .load(width(load.size), load.to(), frame, scratch.loaded());
        self.finish_load(load);
        if let Some(register) = kept {
            self.code.load(Width::Word, register, frame, scratch.kept());
        }
        true
    }

    /// Has the helper copy bytes of the frame from the offset in r2 to place `at` of the
    /// memory for what is loaded.
    pub fn call_helper(&mut self, at: u32, bytes: u32) {
        let (access, reject) = (self.body.access, self.body.reject);
        let to = i32::from(self.body.scratch.loaded()) + at as i32;
        let to = Source::Constant(to.cast_unsigned());
        let bytes = Source::Constant(bytes);
        self.reload_context();
        match access.load {
            FrameLoad::OfContext(helper) => {
                self.code.mov64(Register::R3, Register::Frame);
                self.code.alu64(BPF_ADD, Register::R3, to);
                self.code.mov32(Register::R4, bytes);
                self.code.call(helper);
            }
            FrameLoad::OfDynptr(helper) => {
                self.code.mov64(Register::R4, Register::R2);
                self.code.mov64(Register::R3, CONTEXT);
                self.code.mov64(Register::R1, Register::Frame);
                self.code.alu64(BPF_ADD, Register::R1, to);
                self.code.mov32(Register::R2, bytes);
                self.code.mov32(Register::R5, Source::Constant(0));
                self.code.call(helper);
            }
            FrameLoad::OfMemory {
                helper,
                address,
                length,
            } => {
                let (offset, from, end, most) =
                    (Register::R2, Register::R3, Register::R4, Register::R5);
                self.code.load(Width::Double, from, CONTEXT, address);
                self.code.load(Width::Word, most, CONTEXT, length);
                self.code.alu64(BPF_ADD, from, Source::Register(offset));
                self.code.mov64(end, offset);
                self.code.alu64(BPF_ADD, end, bytes);
                self.code
                    .branch64(BPF_JGT, end, Source::Register(most), reject);
                self.code.mov64(Register::R1, Register::Frame);
                self.code.alu64(BPF_ADD, Register::R1, to);
                self.code.mov32(Register::R2, bytes);
                self.code.call(helper);
            }
        }
        self.code
            .branch32(BPF_JNE, Register::R0, Source::Constant(0), reject);
    }

    /// What is loaded becomes a number.
    fn finish_load(&mut self, load: Load) {
        match load.size {
            Size::Byte => {}
            Size::Half => self.code.network_to_host(A, 16),
            Size::Word => self.code.network_to_host(A, 32),
        }
        if load.header_length {
            self.code.alu32(BPF_AND, X, Source::Constant(15));
            self.code.alu32(BPF_LSH, X, Source::Constant(2));
        }
    }

    pub fn reload_context(&mut self) {
        let context = self.body.scratch.context();
        self.code
            .load(Width::Double, CONTEXT, Register::Frame, context);
    }
}
