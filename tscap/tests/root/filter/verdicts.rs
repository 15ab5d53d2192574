//! Verdicts of the kernel against those of libpcap.

use std::ffi::CString;
use std::time::Instant;

use fastrand::Rng;
use tscap_filter::libpcap::{CompileError, Libpcap, LinkType};
use tscap_filter::translate::TranslateError;
use tscap_filter::{Frame, Instruction, Program};
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::root::root;

use tscap_testkit::filters::in_kernel::{InKernel, PLACES};
use tscap_testkit::filters::{expressions, frames};

/// What test runs say: the loopback interface of the namespace.
const LOOPBACK: u32 = 1;
/// `PACKET_OUTGOING` in include/uapi/linux/if_packet.h.
const PACKET_OUTGOING: u32 = 4;

/// Compiled and optimised; `None` if nothing can match.
pub fn compiled(libpcap: &Libpcap, expression: &str) -> Option<Vec<Instruction>> {
    match libpcap.compile(
        &CString::new(expression).unwrap(),
        LinkType::Ethernet,
        None,
        true,
    ) {
        Err(CompileError::RejectsAll) => None,
        compiled => Some(compiled.unwrap_or_else(|error| panic!("{expression}: {error}"))),
    }
}

/// Compares the verdicts of the kernel, the interpreter and libpcap on one frame; false if
/// the kernel takes no such frame.
fn check(
    libpcap: &Libpcap,
    loaded: &InKernel,
    program: &Program,
    frame: &[u8],
    linear: usize,
    name: &str,
) -> bool {
    let theirs = libpcap.verdict(program.instructions(), frame, frame.len() as u32);
    let interpreted = program.verdict(&Frame::received(frame));
    let Some(kernels) = loaded.verdict(frame, linear) else {
        return false;
    };
    let kernels = kernels
        .unwrap_or_else(|error| panic!("{name}, {loaded:?}, {linear} of {}: {error}", frame.len()));
    assert_eq!(
        (kernels, interpreted),
        (theirs, theirs),
        "{name}, {loaded:?}: {linear} of {} bytes linear: {frame:02x?}",
        frame.len()
    );
    true
}

/// Where a frame is cut: often nowhere, often in its headers.
fn cut(rng: &mut Rng, frame: &[u8]) -> usize {
    match rng.u8(..4) {
        // What the kernel's test run has room for in one piece.
        0 => frame.len().min(3_000),
        1 => rng.usize(14..=frame.len().min(3_000)),
        _ => rng.usize(14..=frame.len().min(80)),
    }
}

/// The number of frames for each expression.
const FRAMES: usize = 3_000;

/// The same, and more at night.
pub fn frames_each() -> usize {
    std::env::var("TSCAP_FILTER_FRAMES").map_or(FRAMES, |count| {
        count.parse().expect("TSCAP_FILTER_FRAMES is a number")
    })
}

#[test]
fn the_kernels_verdicts_are_libpcaps() {
    let Some(_lock) = root() else { return };
    let Some(libpcap) = libpcap() else { return };
    let began = Instant::now();
    let each = frames_each();
    let frames = frames::frames(23, each.max(10_000));
    let mut rng = Rng::with_seed(29);
    let mut compared = 0;
    for (number, expression) in expressions::all().iter().enumerate() {
        let Some(code) = compiled(&libpcap, expression) else {
            continue;
        };
        let program = Program::new(code).unwrap();
        let loaded = PLACES.map(|place| place.load(expression, &program));
        let [xdp, ..] = &loaded;
        if matches!(xdp, Err(TranslateError::Unsupported(_))) && expression.contains("0xffff") {
            continue;
        }
        let loaded = loaded.map(|it| it.unwrap_or_else(|error| panic!("{expression}: {error}")));
        let some = frames.iter().cycle().skip(number * each % frames.len());
        let places = loaded.iter().cycle().skip(number % PLACES.len());
        for (frame, loaded) in some.take(each).zip(places) {
            // libpcap's own loop goes astray at an authentication header.
            if program.loops().is_empty() || !frame[14..].contains(&51) {
                // Some are hardly longer than their header.
                let frame = match rng.u8(..16) {
                    0 => &frame[..frame.len().min(rng.usize(14..=20))],
                    _ => frame,
                };
                let linear = cut(&mut rng, frame);
                let done = check(&libpcap, loaded, &program, frame, linear, expression);
                compared += usize::from(done);
            }
        }
    }
    println!("{compared} verdicts compared in {:?}", began.elapsed());
    assert!(compared >= each * 290);
}

/// What is beside the frame: the direction is that of the hook, and the interface the one
/// that a test run takes.
#[test]
fn each_hook_has_its_direction() {
    let Some(_lock) = root() else { return };
    let Some(libpcap) = libpcap() else { return };
    let frame = [0; 60];
    for expression in ["inbound", "outbound", "ifindex 1", "ifindex 2"] {
        let program = Program::new(compiled(&libpcap, expression).unwrap()).unwrap();
        for place in PLACES {
            let loaded = place.load(expression, &program).unwrap();
            let expected = program.verdict(&Frame {
                packet_type: place.access.packet_type,
                interface: LOOPBACK,
                ..Frame::received(&frame)
            });
            let verdict = loaded.verdict(&frame, frame.len()).unwrap().unwrap();
            assert_eq!(verdict, expected, "{expression}, {place:?}");
            let is_out = place.access.packet_type == PACKET_OUTGOING;
            let wanted = match expression {
                "inbound" => !is_out,
                "outbound" => is_out,
                _ => expression == "ifindex 1",
            };
            assert_eq!(verdict != 0, wanted, "{expression}, {place:?}");
        }
    }
}

#[test]
fn the_verifier_takes_long_filters() {
    let Some(_lock) = root() else { return };
    let Some(libpcap) = libpcap() else { return };
    let frames = frames::frames(31, 300);
    let mut rng = Rng::with_seed(37);
    let hosts = if frames_each() > FRAMES { 800 } else { 200 };
    for (name, expression) in expressions::long(hosts) {
        let program = Program::new(compiled(&libpcap, &expression).unwrap()).unwrap();
        let classic = program.instructions().len();
        let began = Instant::now();
        let loaded = PLACES.map(|place| place.load(name, &program).unwrap());
        let took = began.elapsed() / PLACES.len() as u32;
        println!("{name}: {classic} instructions of classic BPF, loaded in {took:?} each");
        for (frame, loaded) in frames.iter().zip(loaded.iter().cycle()) {
            let linear = cut(&mut rng, frame);
            check(&libpcap, loaded, &program, frame, linear, name);
        }
    }
}

/// As long as what 800 hosts make, and longer, without the 20 s that libpcap takes for them.
#[test]
fn the_verifier_takes_more_than_classic_sockets_do() {
    let Some(_lock) = root() else { return };
    let Some(libpcap) = libpcap() else { return };
    let it = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let hosts = 2_200;
    // ld [26], and a test for each host, with a way out behind it; the same for [30].
    let mut instructions = Vec::new();
    for from in [26, 30] {
        instructions.push(it(0x20, 0, 0, from));
        for host in 0..hosts {
            instructions.push(it(0x15, 0, 1, 0x0a00_0001 + 3 * host));
            instructions.push(it(0x06, 0, 0, 262_144));
        }
    }
    instructions.push(it(0x06, 0, 0, 0));
    let program = Program::new(instructions).unwrap();
    let loaded = PLACES.map(|place| place.load("many hosts", &program).unwrap());
    let mut rng = Rng::with_seed(41);
    for (frame, loaded) in frames::frames(43, 300).iter().zip(loaded.iter().cycle()) {
        let linear = cut(&mut rng, frame);
        check(&libpcap, loaded, &program, frame, linear, "many hosts");
    }
}
