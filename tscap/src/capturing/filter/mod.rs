//! Capture filters: an expression, compiled by libpcap to classic BPF, and this
//! translated to eBPF for the place in the capture program where frames are chosen.
//! Pure, but for [`Filter::from_expression`], which opens libpcap and lets it resolve
//! names.
//!
//! - `classic`: instructions and sound programs; `text` prints them, `parse` reads them;
//! - `interpret`: the verdict on a frame in memory;
//! - `translate`: the same program for the kernel; `flow`: its steps, without loops;
//!   `ebpf_text` prints it;
//! - `ancillary`: loads of what is not in the frame; `names`, `syntax`, `words`: what
//!   people are told of an expression.

mod ancillary;
mod classic;
mod ebpf_text;
mod flow;
mod interpret;
mod names;
mod parse;
mod syntax;
mod text;
pub mod translate;
mod words;

use std::ffi::CString;

pub use ancillary::{Ancillary, Unsupported};
pub use classic::{
    Alu, Fault, Instruction, MOST_INSTRUCTIONS, Operand, Operation, Program, ProgramError,
    SCRATCH_WORDS, Size, Test,
};
pub use ebpf_text::ebpf_listing;
pub use interpret::Frame;
pub use names::{HostName, host_names};
pub use parse::{BytecodeError, parse};

use crate::capturing::host::libpcap::{CompileError, Libpcap};
use crate::failure::{Context as _, Failure};

/// How often a loop of a program is repeated at most; a frame that would need more is
/// rejected. Only `protochain` makes loops: one repetition for each extension header.
pub const MOST_REPEATS: u32 = 8;

/// Longest expression, bytes: with its first byte it fills an option of pcapng.
const MOST_EXPRESSION: usize = u16::MAX as usize - 1;

/// What frames are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// As it was written; for bytecode, where that was read from.
    pub expression: String,
    /// Who compiled it: libpcap with its version, or "bytecode".
    pub compiler: String,
    /// What decides on a frame.
    pub program: Program,
    /// Whether any frame can match.
    pub can_match: bool,
}

impl Filter {
    /// Has libpcap compile an expression of pcap-filter(7) for Ethernet frames,
    /// optimised. An empty one accepts all. Names are resolved now, once, and that waits
    /// for the system's resolver.
    ///
    /// # Errors
    /// When the expression is longer than a file can tell, or libpcap is absent or refuses
    /// it.
    pub fn from_expression(expression: &str) -> Result<Self, Failure> {
        if expression.len() > MOST_EXPRESSION {
            let what = format!(
                "the filter has {} bytes, and the file can hold {MOST_EXPRESSION} of it",
                expression.len()
            );
            return Err(Failure::new(what).hint(
                "give fewer terms, or compile it by `tcpdump -y EN10MB -ddd -F FILE > BYTECODE` \
                 and give it by --filter-bytecode BYTECODE",
            ));
        }
        let c_string = CString::new(expression)
            .map_err(|_| Failure::new(format!("the filter {expression:?} has a NUL in it")))?;
        let libpcap = Libpcap::open().map_err(|error| {
            let what = format!("cannot compile the filter {expression:?}");
            Failure::from_error(error, what).hint(WITHOUT_LIBPCAP)
        })?;
        let program = match libpcap.compile(&c_string, true) {
            Ok(instructions) => sound(instructions, expression)?,
            Err(CompileError::RejectsAll) => Program::constant(0),
            Err(error) => return Err(refused(&libpcap, expression, error)),
        };
        Ok(Self {
            expression: expression.to_owned(),
            compiler: libpcap.version(),
            can_match: program.can_match(),
            program,
        })
    }

    /// Reads what another program compiled: the output of `tcpdump -ddd` or of iptables'
    /// `nfbpf_compile`, for Ethernet frames. `from` says where the text is from.
    ///
    /// # Errors
    /// When it is none, or loads what tscap does not know of a frame.
    pub fn from_bytecode(text: &str, from: &str) -> Result<Self, Failure> {
        let what = || format!("cannot use {from} as a filter");
        let program = parse(text).map_err(|error| {
            Failure::from_error(error, what())
                .hint("write such a file by `tcpdump -y EN10MB -ddd EXPRESSION > FILE`")
        })?;
        ancillary::check(&program).context(what())?;
        Ok(Self {
            expression: from.to_owned(),
            compiler: BYTECODE.to_owned(),
            can_match: program.can_match(),
            program,
        })
    }

    /// As [`host_names`] of its expression; none of bytecode.
    pub fn host_names(&self) -> Vec<HostName> {
        match self.is_bytecode() {
            true => Vec::new(),
            false => host_names(&self.expression),
        }
    }

    /// Whether its expression has the word `vlan`; no for bytecode.
    pub fn asks_for_vlan(&self) -> bool {
        let mut words = words::words(&self.expression).into_iter();
        !self.is_bytecode() && words.any(|word| word.text == "vlan")
    }

    fn is_bytecode(&self) -> bool {
        self.compiler == BYTECODE
    }
}

/// Stands for the compiler of a filter that came compiled.
const BYTECODE: &str = "bytecode";

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
fn refused(libpcap: &Libpcap, expression: &str, error: CompileError) -> Failure {
    let failure = |place: String| {
        let what = format!("cannot compile the filter {expression:?}{place}");
        Failure::from_error(error.clone(), what)
    };
    let message = error.to_string();
    if !is_syntax_error(&message) {
        return failure(String::new()).hint(match message.starts_with("unknown host") {
            true => {
                "names are resolved when the filter is compiled: give an address, or a name that \
                 getent ahosts knows"
            }
            false => "pcap-filter(7) describes the expressions",
        });
    }
    let parses = |text: &str| {
        let c_string = CString::new(text).expect("parts of a text without NUL");
        match libpcap.compile(&c_string, false) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_no_file_can_hold_is_refused() {
        let expression = "udp or ".repeat(10_000) + "tcp";
        let error = Filter::from_expression(&expression).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("70003 bytes") && said.contains("--filter-bytecode"),
            "{said}"
        );
    }

    #[test]
    fn the_name_of_a_bytecode_file_is_no_expression() {
        let filter = Filter::from_bytecode("1\n6 0 0 1\n", "vlan").unwrap();
        assert!(!filter.asks_for_vlan());
        assert_eq!(filter.host_names(), []);
        let expression = Filter {
            compiler: "libpcap".into(),
            expression: "udp and vlan 5".into(),
            ..filter
        };
        assert!(expression.asks_for_vlan());
    }
}
