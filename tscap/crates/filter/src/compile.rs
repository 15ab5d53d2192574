//! Expressions to programs, by libpcap.

use std::ffi::CString;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use super::{Instruction, Program, ancillary, syntax};
use crate::libpcap::{CompileError, Libpcap, LinkType};
use tscap_base::failure::{Context as _, Failure};

/// What libpcap made of an expression.
pub(super) struct Compiled {
    pub program: Program,
    /// libpcap with its version.
    pub compiler: String,
    /// Whether the program depends on the netmask.
    pub asks_for_netmask: bool,
}

/// Where libpcap's netmask is asked for and none is given: as tcpdump does, only 0.0.0.0 and
/// 255.255.255.255 are broadcast addresses.
const NO_NETWORK: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// Compiles an expression for frames of a link type, on a network with that netmask.
pub(super) fn compile(
    expression: &str,
    link_type: LinkType,
    netmask: Option<Ipv4Addr>,
) -> Result<Compiled, Failure> {
    let c_string = CString::new(expression)
        .map_err(|_| Failure::new(format!("the filter {expression:?} has a NUL in it")))?;
    let libpcap = Libpcap::open().map_err(|error| {
        let what = format!("cannot compile the filter {expression:?}");
        Failure::from_error(error, what).hint(WITHOUT_LIBPCAP)
    })?;
    let compiled = |netmask| libpcap.compile(&c_string, link_type, netmask, true);
    let (result, asks_for_netmask) = match compiled(None) {
        Err(CompileError::NeedsNetmask) => (compiled(Some(netmask.unwrap_or(NO_NETWORK))), true),
        result => (result, false),
    };
    let program = match result {
        Ok(instructions) => sound(instructions, expression)?,
        Err(CompileError::RejectsAll) => Program::constant(0),
        Err(error) => return Err(refused(&libpcap, expression, link_type, error)),
    };
    Ok(Compiled {
        program,
        compiler: libpcap.version(),
        asks_for_netmask,
    })
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
        match libpcap.compile(&c_string, link_type, Some(NO_NETWORK), false) {
            Err(CompileError::Refused(message)) => !is_syntax_error(&message),
            _ => true,
        }
    };
    failure(said(expression, syntax::place(expression, parses, SEARCH)))
        .hint("pcap-filter(7) describes the expressions; quote the whole of it in a shell")
}

/// Longest search for the place of an error: longer expressions than some hundred hosts are
/// told less exactly.
const SEARCH: Duration = Duration::from_secs(1);
/// So much of the wrong part is shown, characters.
const SHOWN: usize = 60;

/// The place of an error, which is between two places of the expression.
fn said(expression: &str, Range { start, end }: Range<usize>) -> String {
    let column = |at: usize| expression[..at].chars().count() + 1;
    let rest = &expression[start..];
    let shown: String = rest.chars().take(SHOWN).collect();
    let dots = if shown.len() < rest.len() { "…" } else { "" };
    if rest.trim().is_empty() {
        ": it is not complete".to_owned()
    } else if start == end {
        format!(": wrong from character {}, {shown:?}{dots}", column(start))
    } else {
        format!(
            ": wrong between characters {} and {}, {shown:?}{dots}",
            column(start),
            column(end)
        )
    }
}

/// Other errors name the word that is wrong.
fn is_syntax_error(message: &str) -> bool {
    message.contains("syntax error")
}
