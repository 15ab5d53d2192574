//! Verdicts of the kernel against those of libpcap.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use fastrand::Rng;
use tscap::capturing::filter::translate::TranslateError;
use tscap::capturing::filter::{Frame, Instruction, Program};
use tscap::capturing::host::bpf::program::returned;
use tscap::capturing::host::libpcap::{CompileError, Libpcap};
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::root::root;

use crate::corpus::{expressions, frames};
use crate::in_kernel::{loaded, translated};

/// Compiled and optimised; `None` if nothing can match.
fn compiled(libpcap: &Libpcap, expression: &str) -> Option<Vec<Instruction>> {
    match libpcap.compile(&CString::new(expression).unwrap(), true) {
        Err(CompileError::RejectsAll) => None,
        compiled => Some(compiled.unwrap_or_else(|error| panic!("{expression}: {error}"))),
    }
}

/// Compares the verdicts of the kernel, the interpreter and libpcap on one frame.
fn check(
    libpcap: &Libpcap,
    loaded: &OwnedFd,
    program: &Program,
    frame: &[u8],
    linear: usize,
    name: &str,
) {
    let theirs = libpcap.verdict(program.instructions(), frame, frame.len() as u32);
    let interpreted = program.verdict(&Frame::received(frame));
    let kernels = returned(loaded.as_fd(), frame, linear)
        .unwrap_or_else(|error| panic!("{name}, {linear} of {}: {error}", frame.len()));
    assert_eq!(
        (kernels, interpreted),
        (theirs, theirs),
        "{name}: {linear} of {} bytes linear: {frame:02x?}",
        frame.len()
    );
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
fn frames_each() -> usize {
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
        let code = match translated(&program) {
            Err(TranslateError::Unsupported(_)) if expression.contains("0xffff") => continue,
            code => code.unwrap_or_else(|error| panic!("{expression}: {error}")),
        };
        let loaded = loaded(expression, code);
        let some = frames.iter().cycle().skip(number * each % frames.len());
        for frame in some.take(each) {
            // libpcap's own loop goes astray at an authentication header.
            if program.loops().is_empty() || !frame[14..].contains(&51) {
                let linear = cut(&mut rng, frame);
                check(&libpcap, &loaded, &program, frame, linear, expression);
                compared += 1;
            }
        }
    }
    println!("{compared} verdicts compared in {:?}", began.elapsed());
    assert!(compared >= each * 300);
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
        let code = translated(&program).unwrap();
        let (classic, length) = (program.instructions().len(), code.len());
        let began = Instant::now();
        let loaded = loaded(name, code);
        println!(
            "{name}: {classic} instructions of classic BPF, {length} of eBPF, loaded in {:?}",
            began.elapsed()
        );
        for frame in &frames {
            let linear = cut(&mut rng, frame);
            check(&libpcap, &loaded, &program, frame, linear, name);
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
    let code = translated(&program).unwrap();
    let length = code.len();
    let loaded = loaded("many hosts", code);
    println!("{} and {length} instructions", program.instructions().len());
    let mut rng = Rng::with_seed(41);
    for frame in frames::frames(43, 300) {
        let linear = cut(&mut rng, &frame);
        check(&libpcap, &loaded, &program, &frame, linear, "many hosts");
    }
}
