//! Programs as text, against tcpdump.

use std::process::Command;

use tscap_filter::{Program, parse};
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::root::skip;

use super::libpcap::compiled;
use tscap_testkit::filters::expressions;

/// What tcpdump prints; `None` where it is absent.
fn tcpdump(form: &str, expression: &str) -> Option<String> {
    let output = Command::new("tcpdump")
        .args(["-y", "EN10MB", form, "--", expression])
        .output();
    let Ok(output) = output else {
        skip("needs `tcpdump`");
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn programs_are_printed_as_by_tcpdump() {
    let Some(libpcap) = libpcap() else { return };
    // Of every kind of instruction: each process takes its time.
    let mut expressions = expressions::all();
    expressions.retain(|it| it.len() % 7 == 0 || it.contains("protochain"));
    expressions.extend(["inbound".into(), "ifindex 3".into(), "-ip[8] > len".into()]);
    for expression in &expressions {
        let Ok(program) = Program::new(compiled(&libpcap, expression, true)) else {
            panic!("{expression}");
        };
        if program == Program::constant(0) {
            continue;
        }
        for (form, ours) in [
            ("-d", program.listing()),
            ("-dd", program.c_code()),
            ("-ddd", program.decimal()),
        ] {
            let Some(theirs) = tcpdump(form, expression) else {
                return;
            };
            assert_eq!(ours, theirs, "{form} {expression}");
        }
        assert_eq!(parse(&program.decimal()).unwrap(), program, "{expression}");
    }
}
