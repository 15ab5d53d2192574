//! A filter in the kernel, by itself.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use aya_obj::generated::bpf_insn;
use tscap_filter::Program;
use tscap_filter::translate::{FrameAccess, SCRATCH_BYTES, TranslateError, translate};
use tscap_network::bpf::program::{self, Kind, TestContext, code_of, load, returned};

/// Bytes of a frame with a tag beside it that a test run takes.
const LEAST: usize = 14;
/// The longest frame that a test run of tc takes, less than a page.
const MOST_TC: usize = 3_000;

/// Where a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the program.
    pub kind: Kind,
    /// How the filter gets at the frame there.
    pub access: FrameAccess,
}

/// All of them.
pub const PLACES: [Place; 5] = [
    Place {
        kind: Kind::XDP,
        access: FrameAccess::XDP,
    },
    Place {
        kind: Kind::XDP,
        access: FrameAccess::XDP.with_tag_beside(),
    },
    Place {
        kind: Kind::Tc,
        access: FrameAccess::SKB_IN,
    },
    Place {
        kind: Kind::Tc,
        access: FrameAccess::SKB_OUT,
    },
    Place {
        kind: Kind::Tc,
        access: FrameAccess::SKB_OUT.with_tag_beside(),
    },
];

/// A program that is a filter and nothing else.
#[derive(Debug)]
pub struct InKernel {
    /// As loaded.
    pub program: OwnedFd,
    place: Place,
}

impl Place {
    /// Loads a filter, which returns its verdict.
    pub fn load(self, name: &str, filter: &Program) -> Result<InKernel, TranslateError> {
        self.load_with(name, filter, &[EXIT])
    }

    /// Loads a filter with `end` behind it, where its verdict is in r0.
    pub fn load_with(
        self,
        name: &str,
        filter: &Program,
        end: &[bpf_insn],
    ) -> Result<InKernel, TranslateError> {
        let code = translate(filter, &self.access, -(SCRATCH_BYTES as i16))?;
        let code = [self.tag_to_r3(), code_of(&code), end.to_vec()].concat();
        let program = program::Program {
            name: "filter",
            license: c"GPL",
            code: &code,
            kind: self.kind,
            module: None,
            functions: None,
            entry_of: None,
        };
        let program = load(&program).unwrap_or_else(|(error, log)| {
            let mut tail = log.len().saturating_sub(3_000);
            while !log.is_char_boundary(tail) {
                tail += 1;
            }
            panic!("{name}, {self:?}: {error}\n{}", &log[tail..])
        });
        Ok(InKernel {
            program,
            place: self,
        })
    }

    /// A frame as it is here, and the tag beside it; `None` if no test run takes it. Any 4
    /// bytes may be those of a tag.
    pub fn split(self, frame: &[u8]) -> Option<(Vec<u8>, u32)> {
        let (mut bytes, mut tag) = (frame.to_vec(), 0);
        if self.access.tag_beside {
            tag = u32::from_ne_bytes(frame.get(12..16)?.try_into().ok()?);
            bytes.drain(12..16);
        }
        (bytes.len() >= LEAST).then_some((bytes, tag))
    }

    /// The tag is the metadata of XDP, and the mark of tc.
    fn tag_to_r3(self) -> Vec<bpf_insn> {
        match self.kind {
            _ if !self.access.tag_beside => Vec::new(),
            Kind::Xdp { .. } => vec![
                // r2 = data_meta; r4 = data; if r2 + 4 > r4 return 0
                it(0x61, 2, 1, 8, 0),
                it(0x61, 4, 1, 0, 0),
                it(0xbf, 3, 2, 0, 0),
                it(0x07, 3, 0, 0, 4),
                it(0xbd, 3, 4, 2, 0),
                it(0xb7, 0, 0, 0, 0),
                EXIT,
                it(0x61, 3, 2, 0, 0),
            ],
            // r3 = mark
            Kind::Tc => vec![it(0x61, 3, 1, 8, 0)],
            _ => unreachable!("no place"),
        }
    }
}

impl InKernel {
    /// The verdict on a frame of which the first `linear` bytes are in one piece, where that
    /// can be; `None` if no test run takes the frame.
    pub fn verdict(&self, frame: &[u8], linear: usize) -> Option<io::Result<u32>> {
        let (mut bytes, tag) = self.place.split(frame)?;
        let context = match self.place.kind {
            Kind::Tc if !tc_takes(&bytes) => return None,
            Kind::Tc => TestContext::Tc { mark: tag },
            Kind::Xdp { .. } => {
                let mut linear = linear.min(bytes.len()) as u32;
                let mut metadata = 0;
                if self.place.access.tag_beside {
                    bytes.splice(..0, tag.to_ne_bytes());
                    (metadata, linear) = (4, linear + 4);
                }
                TestContext::Xdp { metadata, linear }
            }
            _ => unreachable!("it is none of the places"),
        };
        Some(returned(self.program.as_fd(), &bytes, context))
    }
}

/// Whether a test run of tc takes the frame: what says that it is IP must have a whole
/// header (`bpf_prog_test_run_skb` in net/bpf/test_run.c).
fn tc_takes(frame: &[u8]) -> bool {
    let least = match frame[12..14] {
        [0x08, 0x00] => LEAST + 20,
        [0x86, 0xdd] => LEAST + 40,
        _ => LEAST,
    };
    (least..=MOST_TC).contains(&frame.len())
}

/// Ends the program.
const EXIT: bpf_insn = it(0x95, 0, 0, 0, 0);

/// An instruction.
pub const fn it(code: u8, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
    bpf_insn {
        code,
        _bitfield_align_1: [],
        _bitfield_1: aya_obj::generated::__BindgenBitfieldUnit::new([from << 4 | to]),
        off,
        imm,
    }
}
