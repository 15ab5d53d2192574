//! Translated programs give the interpreter's verdicts, wherever a frame's linear part
//! ends.

use fastrand::Rng;
use tscap_filter::translate::{FrameAccess, FrameLoad, SCRATCH_BYTES, TranslateError, translate};
use tscap_filter::{Frame, Instruction, Program, ebpf};
use tscap_testkit::libpcap::libpcap;

use super::emulator::Emulator;
use super::libpcap::compiled;
use tscap_testkit::filters::{expressions, frames};

const INTERFACE: u32 = 3;
/// Random programs; by night there are more.
const PROGRAMS: usize = 20_000;
const SCRATCH: i16 = -(SCRATCH_BYTES as i16) - 16;

/// Where filters run.
const ACCESSES: [FrameAccess; 8] = [
    FrameAccess::XDP,
    FrameAccess::XDP.with_tag_beside(),
    FrameAccess::SKB_IN,
    FrameAccess::SKB_OUT,
    FrameAccess::SKB_OUT.with_tag_beside(),
    FrameAccess::TRANSMITTED,
    FrameAccess::TRANSMITTED.with_tag_beside(),
    FrameAccess::ENTERED,
];

/// A program, and its translation for where it runs.
struct Translated<'a> {
    program: &'a Program,
    access: FrameAccess,
    code: Vec<ebpf::Instruction>,
}

impl<'a> Translated<'a> {
    fn of(program: &'a Program, access: FrameAccess) -> Result<Self, TranslateError> {
        Ok(Self {
            program,
            access,
            code: translate(program, &access, SCRATCH)?,
        })
    }

    /// Compares verdicts on a frame whose linear part is cut at `linear`. Any 4 bytes may be
    /// those of a tag.
    fn check(&self, frame: &[u8], linear: usize) {
        let access = &self.access;
        let expected = self.program.verdict(&Frame {
            interface: INTERFACE,
            packet_type: access.packet_type,
            ..Frame::received(frame)
        });
        let (mut bytes, mut tag) = (frame.to_vec(), None);
        if access.tag_beside {
            let Some(bytes_of_tag) = frame.get(12..16) else {
                return;
            };
            tag = Some(u32::from_ne_bytes(bytes_of_tag.try_into().expect("4")));
            bytes.drain(12..16);
        }
        let linear = match access.load {
            // There are no others.
            FrameLoad::OfMemory { .. } => bytes.len(),
            FrameLoad::OfContext(_) | FrameLoad::OfDynptr(_) => linear.min(bytes.len()),
        };
        let emulator = Emulator::new(&self.code, access, (&bytes, tag), linear, INTERFACE);
        assert_eq!(
            emulator.run().as_ref(),
            Ok(&expected),
            "{access:?}, {linear} of {} bytes linear: {frame:02x?}\n{}",
            frame.len(),
            self.program.listing()
        );
    }
}

/// A valid program of any instructions.
fn random_program(rng: &mut Rng) -> Program {
    const CODES: [u16; 47] = [
        0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0xb1, 0x81, 0x01, 0x61, 0x02, 0x03,
        0x84, 0x07, 0x87, 0x05, 0x06, 0x16, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44,
        0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x94, 0x9c, 0xa4, 0xac, 0x15, 0x1d, 0x25, 0x2d,
        0x35, 0x45,
    ];
    let length = rng.usize(1..30);
    // In some of them tests of one A for many constants, one behind the other.
    let row = match rng.u8(..3) {
        0 => rng.usize(..length)..rng.usize(..40),
        _ => 0..0,
    };
    let mut instructions: Vec<_> = (0..length)
        .map(|number| {
            let left = length - number;
            let code = if row.contains(&number) {
                0x15
            } else {
                CODES[rng.usize(..CODES.len())]
            };
            let jump = |rng: &mut Rng| rng.usize(..left.min(6)) as u8;
            let k = match code {
                0x60 | 0x61 | 0x02 | 0x03 => rng.u32(..16),
                0x05 if number > 0 && rng.u8(..4) == 0 => {
                    (rng.u32(1..=number.min(6) as u32) + 1).wrapping_neg()
                }
                0x05 => jump(rng).into(),
                0x20 | 0x28 | 0x30 if rng.u8(..20) == 0 => 0xffff_f004 + 4 * rng.u32(..2),
                0x34 | 0x94 => rng.u32(1..10),
                _ => match rng.u32(..10) {
                    0 => rng.u32(..),
                    1 => [0, 31, 32, 0x7fff, 0x8000, 0xffff, u32::MAX][rng.usize(..7)],
                    _ => rng.u32(..70),
                },
            };
            Instruction {
                code,
                jt: jump(rng),
                jf: if row.contains(&number) { 0 } else { jump(rng) },
                k,
            }
        })
        .collect();
    instructions.push(Instruction {
        code: [0x06, 0x16][rng.usize(..2)],
        jt: 0,
        jf: 0,
        k: 7,
    });
    Program::new(instructions).expect("made to be sound")
}

#[test]
fn any_program_means_the_same() {
    let programs = std::env::var("TSCAP_FILTER_PROGRAMS").map_or(PROGRAMS, |count| {
        count.parse().expect("TSCAP_FILTER_PROGRAMS is a number")
    });
    let mut rng = Rng::with_seed(0x17);
    let frames = frames::frames(3, 500);
    let (mut translated, mut accepted) = (0, 0);
    for number in 0..programs {
        let program = random_program(&mut rng);
        let filter = match Translated::of(&program, ACCESSES[number % ACCESSES.len()]) {
            Ok(filter) => filter,
            Err(TranslateError::Unsupported(_)) => continue,
            Err(error) => panic!("{error}\n{}", program.listing()),
        };
        translated += 1;
        for _ in 0..2 {
            let frame = &frames[rng.usize(..frames.len())];
            // Some are shorter than any header.
            let frame = match rng.u8(..8) {
                0 => &frame[..rng.usize(14..=20).min(frame.len())],
                _ => frame,
            };
            let linear = match rng.u8(..3) {
                0 => frame.len(),
                _ => rng.usize(..=frame.len()),
            };
            filter.check(frame, linear);
            accepted += usize::from(program.verdict(&Frame::received(frame)) != 0);
        }
    }
    println!("{translated} programs, {accepted} verdicts that accept");
    assert!(translated > programs / 2 && accepted > translated / 4);
}

#[test]
fn filters_mean_the_same_wherever_the_frame_is_cut() {
    let Some(libpcap) = libpcap() else { return };
    let mut rng = Rng::with_seed(5);
    let frames = frames::frames(19, 60);
    for expression in expressions::all() {
        for optimise in [true, false] {
            let program = Program::new(compiled(&libpcap, &expression, optimise)).unwrap();
            for access in ACCESSES {
                let filter = match Translated::of(&program, access) {
                    Err(TranslateError::Unsupported(_)) if expression.contains("0xffff") => {
                        continue;
                    }
                    filter => filter.unwrap(),
                };
                // Each frame by one access or the other.
                for frame in &frames {
                    if rng.u8(..5) > 1 {
                        continue;
                    }
                    filter.check(frame, frame.len());
                    filter.check(frame, rng.usize(..=frame.len()));
                }
            }
        }
    }
}

#[test]
fn long_filters_are_translated() {
    let Some(libpcap) = libpcap() else { return };
    let frames = frames::frames(21, 20);
    for (name, expression) in expressions::long(200) {
        let program = Program::new(compiled(&libpcap, &expression, true)).unwrap();
        for access in ACCESSES {
            let filter = Translated::of(&program, access).unwrap();
            let (classic, length) = (program.instructions().len(), filter.code.len());
            println!("{name}: {classic} instructions of classic BPF, {length} of eBPF");
            for frame in &frames {
                filter.check(frame, frame.len());
                filter.check(frame, frame.len() / 2);
            }
        }
    }
}

#[test]
fn what_is_too_long_says_what_to_do() {
    // Twice a load that nothing can leave out.
    let load = |k| Instruction {
        code: 0x50,
        jt: 0,
        jf: 0,
        k,
    };
    let mut instructions: Vec<_> = (0..5_000).map(|k| load(k % 50)).collect();
    instructions.push(Instruction {
        code: 0x16,
        jt: 0,
        jf: 0,
        k: 0,
    });
    let program = Program::new(instructions).unwrap();
    let error = translate(&program, &FrameAccess::XDP, SCRATCH).unwrap_err();
    assert!(matches!(error, TranslateError::TooFar { .. }), "{error}");
    assert!(error.to_string().contains("use fewer terms"), "{error}");
}
