//! Filters in this kernel: its verifier takes them, and its verdicts are those of the
//! interpreter, which other tests hold to libpcap's.

use std::ffi::CString;

use tscap_file::accounting::Outcome;
use tscap_filter::libpcap::{Libpcap, LinkType};
use tscap_filter::translate::{FrameAccess, SCRATCH_BYTES, translate};
use tscap_filter::{Filter, Frame, Program, parse};

use crate::agent;
use crate::machine::Rig;
use crate::nic::Kind;
use tscap_testkit::filters::in_kernel::PLACES;
use tscap_testkit::filters::{expressions, frames};

/// Frames for each filter: the machine is emulated.
const FRAMES: usize = 60;

pub fn in_the_kernel(rig: &Rig) {
    let libpcap = Libpcap::open().unwrap_or_else(|error| panic!("{error}"));
    let all = expressions::all().into_iter().step_by(2);
    let long = expressions::long(200).into_iter().map(|(_, it)| it);
    let compiled = all.chain(long).filter_map(|expression| {
        let code = libpcap
            .compile(
                &CString::new(expression).ok()?,
                LinkType::Ethernet,
                None,
                true,
            )
            .ok()?;
        let program = Program::new(code).expect("a sound program");
        // What loads from behind every frame is no filter for the kernel.
        translate(&program, &FrameAccess::XDP, -(SCRATCH_BYTES as i16)).ok()?;
        Some(program.decimal().trim_end().replace('\n', ","))
    });
    let compiled: Vec<_> = compiled.collect();
    let line = [agent::PROGRAM, agent::FILTERS];
    let line = line.into_iter().chain(compiled.iter().map(String::as_str));
    let machine = rig.boot(&[Kind::Virtio]);
    let output = machine.guest.must(&line.collect::<Vec<_>>());
    println!("{output}");
    assert!(
        output.starts_with(&format!("{} filters", compiled.len())),
        "{output}"
    );
}

/// The capture's program with a filter in it, also a long one, is taken, and counts what the
/// filter rejects. The guest has no libpcap, and says what to do.
pub fn of_a_capture(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let refused = guest.run(&[agent::TSCAP, "-d", "udp"]);
    assert!(refused.stderr.contains("libpcap0.8"), "{}", refused.stderr);

    let every_fourth = "ether[37] & 3 = 0".to_owned();
    let hosts = (1..=100).map(|host| format!(" or host 10.0.{host}.1"));
    let long = hosts.fold(every_fourth.clone(), |all, host| all + &host);
    for (clock, expression) in [
        ("ktime", &every_fourth),
        ("tai", &every_fourth),
        ("ktime", &long),
    ] {
        let filter = Filter::from_expression(expression).expect("an expression");
        let code = filter.program.decimal().trim_end().replace('\n', ",");
        let write = format!("echo '{code}' > /tmp/filter");
        guest.must(&["/bin/busybox", "sh", "-c", &write]);
        let arguments = [
            "-i",
            &nic.name,
            "--clock",
            clock,
            "--filter-bytecode",
            "/tmp/filter",
        ];
        let capture = guest.capture(&arguments).ready();
        // The last one matches: when it is recorded all have been seen.
        nic.send(&nic.frame(100), 0..297);
        guest.wait_recorded(75);
        let summary = capture.stop().success();
        assert_eq!((summary.seen, summary.written), (297, 75), "{clock} {code}");
        assert_eq!(summary.outcomes, [(Outcome::Filtered, 222)].into());
    }
}

/// The guest's side: runs filters, each in the form of [`parse`].
pub fn run(filters: impl Iterator<Item = String>) {
    let frames = frames::frames(47, 1_000);
    let (mut count, mut accepted) = (0, 0);
    for text in filters {
        let program = parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let name = &text[..text.len().min(200)];
        // By XDP, and by one of the others.
        let [xdp, others @ ..] = PLACES;
        let loaded = [xdp, others[count % others.len()]].map(|place| {
            let loaded = place.load(name, &program);
            loaded.unwrap_or_else(|error| panic!("{text}: {error}"))
        });
        let some = frames.iter().cycle().skip(count * FRAMES % frames.len());
        for (frame, loaded) in some.take(FRAMES).zip(loaded.iter().cycle()) {
            let expected = program.verdict(&Frame::received(frame));
            let Some(verdict) = loaded.verdict(frame, frame.len()) else {
                continue;
            };
            let verdict = verdict.unwrap_or_else(|error| panic!("{} bytes: {error}", frame.len()));
            let listing = program.listing();
            assert_eq!(verdict, expected, "{loaded:?}: {frame:02x?}\n{listing}");
            accepted += u32::from(verdict != 0);
        }
        count += 1;
    }
    println!("{count} filters, {accepted} frames accepted");
}
