//! Expressions to programs, by libpcap.

use std::ffi::CString;

use super::{Instruction, Program, ancillary, syntax};
use crate::capturing::host::libpcap::{CompileError, Libpcap, LinkType};
use crate::failure::{Context as _, Failure};

/// The program of an expression for frames of a link type, and who compiled it.
pub(super) fn compile(expression: &str, link_type: LinkType) -> Result<(Program, String), Failure> {
    let c_string = CString::new(expression)
        .map_err(|_| Failure::new(format!("the filter {expression:?} has a NUL in it")))?;
    let libpcap = Libpcap::open().map_err(|error| {
        let what = format!("cannot compile the filter {expression:?}");
        Failure::from_error(error, what).hint(WITHOUT_LIBPCAP)
    })?;
    let program = match libpcap.compile(&c_string, link_type, true) {
        Ok(instructions) => sound(instructions, expression)?,
        Err(CompileError::RejectsAll) => Program::constant(0),
        Err(error) => return Err(refused(&libpcap, expression, link_type, error)),
    };
    Ok((program, libpcap.version()))
}

/// Which frames a filter is for, where they are not those of most interfaces.
pub(super) fn for_frames(link_type: LinkType) -> &'static str {
    match link_type {
        LinkType::Ethernet => "",
        LinkType::RawIp => " for interfaces without an Ethernet header (link type RAW)",
    }
}

/// What to do where libpcap is absent.
const WITHOUT_LIBPCAP: &str = "install it (Debian's package libpcap0.8), or compile the filter \
     elsewhere by `tcpdump -y EN10MB -ddd EXPRESSION > FILE` and give it by --filter-bytecode FILE";

fn sound(instructions: Vec<Instruction>, expression: &str) -> Result<Program, Failure> {
    let what = || format!("cannot use what libpcap made of the filter {expression:?}");
    let program = Program::new(instructions).context(what())?;
    ancillary::check(&program).context(what())?;
    Ok(program)
}

/// Says what libpcap refuses, and where that is.
fn refused(
    libpcap: &Libpcap,
    expression: &str,
    link_type: LinkType,
    error: CompileError,
) -> Failure {
    let frames = for_frames(link_type);
    let failure = |place: String| {
        let what = format!("cannot compile the filter {expression:?}{frames}{place}");
        Failure::from_error(error.clone(), what)
    };
    let message = error.to_string();
    if !is_syntax_error(&message) {
        let is_unknown = message.starts_with("unknown host");
        return failure(String::new()).hint(match link_type {
            _ if is_unknown => {
                "names are resolved when the filter is compiled: give an address, or a name that \
                 getent ahosts knows"
            }
            LinkType::Ethernet => "pcap-filter(7) describes the expressions",
            LinkType::RawIp => {
                "give a filter that tests nothing before the IP header, or leave such interfaces out"
            }
        });
    }
    let parses = |text: &str| {
        let c_string = CString::new(text).expect("parts of a text without NUL");
        match libpcap.compile(&c_string, link_type, false) {
            Err(CompileError::Refused(message)) => !is_syntax_error(&message),
            _ => true,
        }
    };
    let at = syntax::place(expression, parses);
    let rest = &expression[at..];
    failure(if rest.trim().is_empty() {
        ": it is not complete".to_owned()
    } else {
        let column = expression[..at].chars().count() + 1;
        format!(": wrong from character {column}, {rest:?}")
    })
    .hint("pcap-filter(7) describes the expressions; quote the whole of it in a shell")
}

/// Other errors name the word that is wrong.
fn is_syntax_error(message: &str) -> bool {
    message.contains("syntax error")
}
