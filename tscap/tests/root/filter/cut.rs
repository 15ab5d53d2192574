//! Frames on their way out of an interface of which only the first bytes are in one piece:
//! test runs of tc have none such. A program drops what its filter rejects, and the sender
//! is told.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use aya_obj::generated::bpf_insn;
use fastrand::Rng;
use tscap_filter::Program;
use tscap_filter::translate::TranslateError;
use tscap_network::bpf::program::Kind;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_testkit::bench::Bench;
use tscap_testkit::cut_frames::{CutFrames, LEAST_CUT};
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::root::{root, skip};

use super::verdicts::{compiled, frames_each};
use tscap_testkit::filters::in_kernel::{InKernel, PLACES, Place, it};
use tscap_testkit::filters::{expressions, frames};

/// r0 = r0 is 0 ? TC_ACT_SHOT : TC_ACT_OK
const DROP_REJECTED: [bpf_insn; 5] = [
    it(0x15, 0, 0, 2, 0),
    it(0xb7, 0, 0, 0, 0),
    it(0x95, 0, 0, 0, 0),
    it(0xb7, 0, 0, 0, 2),
    it(0x95, 0, 0, 0, 0),
];

/// The interface whose frames are filtered.
struct Outgoing {
    bench: Bench,
    socket: CutFrames,
    link: Option<InterfaceLink>,
}

impl Outgoing {
    fn new() -> Self {
        let bench = Bench::with_mtu("cut", 12_000);
        Self {
            socket: CutFrames::open(&bench.tx),
            bench,
            link: None,
        }
    }

    /// Puts the program in the place of the one before. False where there is no tcx.
    fn attach(&mut self, program: &OwnedFd) -> bool {
        let program = program.as_fd();
        if let Some(link) = &self.link {
            link.replace(program).expect("replace the program");
            return true;
        }
        let port = &self.bench.tx;
        let attach = || InterfaceLink::attach(program, port.index, LinkPoint::TcxEgress);
        match port.netns.enter(attach) {
            Ok(link) => self.link = Some(link),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                skip("no tcx before Linux 6.6");
                return false;
            }
            Err(error) => panic!("attach to {}: {error}", port.name),
        }
        true
    }

    /// Whether a frame is accepted, with its tag beside it where that is so.
    fn accepts(&self, place: Place, frame: &[u8], linear: usize) -> Option<bool> {
        let (bytes, tag) = place.split(frame)?;
        Some(self.socket.send(&bytes, linear.min(bytes.len()), tag))
    }
}

fn dropping(place: Place, name: &str, program: &Program) -> Result<InKernel, TranslateError> {
    place.load_with(name, program, &DROP_REJECTED)
}

#[test]
fn verdicts_on_cut_frames_are_libpcaps() {
    let Some(_lock) = root() else { return };
    let Some(libpcap) = libpcap() else { return };
    let began = Instant::now();
    let mut outgoing = Outgoing::new();
    let each = frames_each() / 40;
    let frames = frames::frames(59, each.max(5_000));
    let mut rng = Rng::with_seed(61);
    let (mut compared, mut cut) = (0, 0);
    for (number, expression) in expressions::all().iter().enumerate() {
        let Some(code) = compiled(&libpcap, expression) else {
            continue;
        };
        let program = Program::new(code).unwrap();
        for (shift, place) in PLACES
            .into_iter()
            .filter(|it| it.kind == Kind::Tc)
            .enumerate()
        {
            let loaded = match dropping(place, expression, &program) {
                Err(TranslateError::Unsupported(_)) if expression.contains("0xffff") => continue,
                loaded => loaded.unwrap_or_else(|error| panic!("{expression}: {error}")),
            };
            if !outgoing.attach(&loaded.program) {
                return;
            }
            let some = frames.iter().cycle();
            for frame in some.skip((number + shift) * each % frames.len()).take(each) {
                if !program.loops().is_empty() && frame[14..].contains(&51) {
                    continue;
                }
                let mut frame = frame.clone();
                if rng.u8(..4) > 0 {
                    let longer = frame.len().max(LEAST_CUT + 4);
                    frame.resize(longer, 0);
                    cut += 1;
                }
                let most = if rng.bool() { 80 } else { frame.len() };
                let linear = rng.usize(14..=frame.len().min(most));
                let theirs = libpcap.verdict(program.instructions(), &frame, frame.len() as u32);
                let Some(accepted) = outgoing.accepts(place, &frame, linear) else {
                    continue;
                };
                assert_eq!(
                    accepted,
                    theirs != 0,
                    "{expression}, {place:?}: {linear} of {} bytes linear: {:02x?}",
                    frame.len(),
                    &frame[..frame.len().min(200)]
                );
                compared += 1;
            }
        }
    }
    println!(
        "{compared} verdicts, {cut} on cut frames, in {:?}",
        began.elapsed()
    );
    assert!(cut >= each * 600);
}

/// What the other test is worth: the frames are in pieces.
#[test]
fn a_cut_frame_has_so_many_bytes_in_one_piece() {
    let Some(_lock) = root() else { return };
    // r2 = data + 81; r3 = data_end; r0 = r2 > r3 ? TC_ACT_OK : TC_ACT_SHOT
    let passes_cut = [
        it(0x61, 2, 1, 76, 0),
        it(0x61, 3, 1, 80, 0),
        it(0x07, 2, 0, 0, 81),
        it(0xb7, 0, 0, 0, 0),
        it(0x2d, 2, 3, 1, 0),
        it(0xb7, 0, 0, 0, 2),
        it(0x95, 0, 0, 0, 0),
    ];
    let place = PLACES.into_iter().find(|it| it.kind == Kind::Tc).unwrap();
    let loaded = place.load_with("cut", &Program::constant(1), &passes_cut);
    let mut outgoing = Outgoing::new();
    if !outgoing.attach(&loaded.unwrap().program) {
        return;
    }
    let frame = [0; LEAST_CUT];
    for (linear, is_cut) in [(14, true), (80, true), (81, false), (LEAST_CUT, false)] {
        assert_eq!(
            outgoing.accepts(place, &frame, linear),
            Some(is_cut),
            "{linear}"
        );
    }
}
