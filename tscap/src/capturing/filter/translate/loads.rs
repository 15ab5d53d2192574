//! Loads of the frame's bytes, in either way.

use aya_obj::generated::{BPF_ADD, BPF_AND, BPF_JGT, BPF_JNE, BPF_LSH};

use super::body::{A, CONTEXT, DATA, DATA_END, Emitter, HEADER_ENDS, PLACE, X};
use super::{Register, Source, Width};
use crate::capturing::filter::ancillary::Ancillary;
use crate::capturing::filter::classic::{Operation, Size};
use crate::capturing::filter::flow::Step;

/// The greatest end of a direct load, and the greatest X of one. The verifier takes both
/// together: their sum is below its `MAX_PACKET_OFF`.
const MOST_DIRECT: u32 = 0x7fff;

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

impl Emitter<'_> {
    /// False if the load can't be direct, so that nothing comes after it.
    pub fn load_direct(&mut self, load: Load, known: &mut u32) -> bool {
        let slow = self.body.slow;
        let size = load.size.bytes();
        let end = load.from.saturating_add(size);
        if end > MOST_DIRECT {
            self.code.goto(slow);
            return false;
        }
        let to = if load.header_length { X } else { A };
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
            (DATA, load.from as i16)
        };
        self.code.load(width(load.size), to, base, offset);
        self.finish_load(load);
        true
    }

    /// The end up to which bytes are compared for at once.
    fn widened(&self, end: u32) -> u32 {
        let headers = HEADER_ENDS.iter().zip(self.reached);
        let mut headers = headers.filter(|(header, _)| end <= **header);
        headers.next().map_or(end, |(_, reached)| reached)
    }

    /// False if no frame has such bytes, so that nothing comes after it.
    pub fn load_by_helper(&mut self, load: Load, step: &Step) -> bool {
        let (access, scratch, reject) = (self.body.access, self.body.scratch, self.body.reject);
        if load.from > access.most_offset {
            self.code.goto(reject);
            return false;
        }
        let kept = if load.header_length {
            step.live_after.a().then_some(A)
        } else {
            step.live_after.x().then_some(X)
        };
        let frame = Register::Frame;
        if let Some(register) = kept {
            self.code
                .store(Width::Word, frame, scratch.kept(), register);
        }
        // The second argument is where X is.
        if load.indirect {
            self.code.alu64(BPF_ADD, X, Source::Constant(load.from));
            let most = Source::Constant(access.most_offset);
            self.code.branch64(BPF_JGT, X, most, reject);
        } else {
            self.code.mov32(Register::R2, Source::Constant(load.from));
        }
        self.reload_context();
        self.code.mov64(Register::R3, frame);
        let loaded = i32::from(scratch.loaded()).cast_unsigned();
        self.code
            .alu64(BPF_ADD, Register::R3, Source::Constant(loaded));
        self.code
            .mov32(Register::R4, Source::Constant(load.size.bytes()));
        self.code.call(access.load_helper);
        self.code
            .branch32(BPF_JNE, Register::R0, Source::Constant(0), reject);
        let to = if load.header_length { X } else { A };
        self.code
            .load(width(load.size), to, frame, scratch.loaded());
        self.finish_load(load);
        if let Some(register) = kept {
            self.code.load(Width::Word, register, frame, scratch.kept());
        }
        true
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

/// What a step loads of the frame's bytes, if it does.
pub(super) fn load_of(step: &Step) -> Option<Load> {
    let it = &step.instruction;
    let load = Load {
        from: it.k,
        indirect: false,
        size: Size::Byte,
        header_length: false,
    };
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

fn width(size: Size) -> Width {
    match size {
        Size::Byte => Width::Byte,
        Size::Half => Width::Half,
        Size::Word => Width::Word,
    }
}
