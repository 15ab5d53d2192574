//! Where the bytes of a load are, if a VLAN tag is beside the frame.

use crate::ebpf::{BPF_ADD, BPF_JGE, BPF_JGT, BPF_JLT, BPF_LSH, BPF_RSH, BPF_SUB};

use super::emitter::{A, Emitter, X};
use super::load::Load;
use super::{FrameAccess, Register, Source, TAG_AT, TAG_BYTES, TAG_END, Width};

/// Where the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the frame from this offset on, to which X may be added.
    Frame(u32),
    /// In the tag from this one on.
    Tag(u32),
    /// In both, or in one that is not known yet.
    Mixed,
}

/// Where `load` finds its bytes.
pub(super) fn place(load: Load, access: &FrameAccess) -> Place {
    let end = load.from.saturating_add(load.size.bytes());
    match load.from {
        from if !access.tag_beside => Place::Frame(from),
        from @ TAG_END.. => Place::Frame(from - TAG_BYTES),
        _ if load.indirect => Place::Mixed,
        from if end <= TAG_AT => Place::Frame(from),
        from @ TAG_AT.. if end <= TAG_END => Place::Tag(from - TAG_AT),
        _ => Place::Mixed,
    }
}

impl Emitter<'_> {
    /// Puts the bytes of a load together in the memory for what is loaded.
    pub fn assemble(&mut self, load: Load) {
        for number in 0..load.size.bytes() {
            if load.indirect {
                self.byte_at_x(load, number);
            } else {
                self.byte_at(load.from + number, number);
            }
        }
    }

    /// Byte `number` of a load, from an offset that is known.
    fn byte_at(&mut self, from: u32, number: u32) {
        let one = Load::of_byte(from);
        match place(one, self.body.access) {
            Place::Frame(from) => {
                self.code.mov32(Register::R2, Source::Constant(from));
                self.call_helper(number, 1);
            }
            Place::Tag(at) => {
                let scratch = self.body.scratch;
                let frame = Register::Frame;
                let tag = scratch.tag() + at as i16;
                self.code.load(Width::Byte, A, frame, tag);
                let loaded = scratch.loaded() + number as i16;
                self.code.store(Width::Byte, frame, loaded, A);
            }
            Place::Mixed => unreachable!("a byte is in one of them"),
        }
    }

    /// Byte `number` of a load from where X is, which is kept.
    fn byte_at_x(&mut self, load: Load, number: u32) {
        let scratch = self.body.scratch;
        let frame = Register::Frame;
        let [behind, in_frame, done] = [(); 3].map(|()| self.code.label());
        let code = &mut *self.code;
        code.load(Width::Word, X, frame, scratch.kept());
        code.alu64(BPF_ADD, X, Source::Constant(load.from + number));
        code.branch64(BPF_JGE, X, Source::Constant(TAG_END), behind);
        code.branch64(BPF_JLT, X, Source::Constant(TAG_AT), in_frame);
        // The tag as a number, of which this byte comes so many bits behind the first one.
        code.load(Width::Word, A, frame, scratch.tag());
        code.network_to_host(A, 32);
        code.alu32(BPF_SUB, X, Source::Constant(TAG_AT));
        code.alu32(BPF_LSH, X, Source::Constant(3));
        code.alu32(BPF_LSH, A, Source::Register(X));
        code.alu32(BPF_RSH, A, Source::Constant(24));
        let loaded = scratch.loaded() + number as i16;
        code.store(Width::Byte, frame, loaded, A);
        code.goto(done);
        code.bind(behind);
        code.alu64(BPF_SUB, X, Source::Constant(TAG_BYTES));
        let most = Source::Constant(self.body.access.most_offset);
        code.branch64(BPF_JGT, X, most, self.body.reject);
        code.bind(in_frame);
        self.call_helper(number, 1);
        self.code.bind(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;

    const TAGGED: FrameAccess = FrameAccess::SKB_IN.with_tag_beside();

    fn load(from: u32, size: Size) -> Load {
        Load {
            size,
            ..Load::of_byte(from)
        }
    }

    #[test]
    fn a_tag_stands_between_the_addresses_and_the_protocol() {
        for (from, size, expected) in [
            (8, Size::Word, Place::Frame(8)),
            (9, Size::Word, Place::Mixed),
            (11, Size::Byte, Place::Frame(11)),
            (11, Size::Half, Place::Mixed),
            (12, Size::Word, Place::Tag(0)),
            (13, Size::Word, Place::Mixed),
            (14, Size::Half, Place::Tag(2)),
            (15, Size::Byte, Place::Tag(3)),
            (15, Size::Half, Place::Mixed),
            (16, Size::Half, Place::Frame(12)),
            (u32::MAX, Size::Word, Place::Frame(u32::MAX - 4)),
        ] {
            let load = load(from, size);
            assert_eq!(place(load, &TAGGED), expected, "{load:?}");
            assert_eq!(place(load, &FrameAccess::SKB_IN), Place::Frame(from));
        }
    }

    #[test]
    fn only_x_says_where_a_load_from_before_the_end_of_the_tag_is() {
        for (from, expected) in [
            (0, Place::Mixed),
            (15, Place::Mixed),
            (16, Place::Frame(12)),
        ] {
            let load = Load {
                indirect: true,
                ..load(from, Size::Half)
            };
            assert_eq!(place(load, &TAGGED), expected);
        }
    }
}
