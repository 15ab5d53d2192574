//! Capture filters: an expression, compiled by libpcap to classic BPF, and this
//! translated to eBPF for the place in the capture program where frames are chosen.
//! Pure, but for `compile`, which opens libpcap and lets it resolve names.
//!
//! - `compile`: expressions for a link type;
//! - `classic`: instructions and sound programs; `text` prints them, `parse` reads them;
//! - `interpret`: the verdict on a frame in memory;
//! - `translate`: the same program for the kernel; `flow`: its steps, without loops;
//!   `ebpf` has its instructions, `ebpf_text` prints them;
//! - `ancillary`: loads of what is not in the frame; `names`, `syntax`, `words`: what
//!   people are told of an expression.

mod ancillary;
mod classic;
mod compile;
pub mod ebpf;
mod ebpf_text;
mod flow;
mod interpret;
#[allow(unsafe_code, reason = "calls a C library that is opened when needed")]
pub mod libpcap;
mod names;
mod parse;
mod syntax;
mod text;
pub mod translate;
mod words;

use std::net::Ipv4Addr;
use std::sync::OnceLock;

pub use ancillary::{Ancillary, Unsupported, packet_type};
pub use classic::{
    Alu, Fault, Instruction, MOST_INSTRUCTIONS, Operand, Operation, Program, ProgramError,
    SCRATCH_WORDS, Size, Test,
};
pub use ebpf_text::ebpf_listing;
pub use interpret::Frame;
pub use names::{HostName, host_names};
pub use parse::{BytecodeError, parse};

use self::compile::{Compiled, compile, for_frames};
pub use crate::libpcap::LinkType;
use tscap_base::failure::{Context as _, Failure};

/// How often a loop of a program is repeated at most; a frame that would need more is
/// rejected. Only `protochain` makes loops: one repetition for each extension header.
pub(crate) const MOST_REPEATS: u32 = 8;

/// Longest expression, bytes: with its first byte it fills an option of pcapng.
const MOST_EXPRESSION: usize = u16::MAX as usize - 1;

/// What frames are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// As it was written; for bytecode, where that was read from.
    pub expression: String,
    /// Who compiled it: libpcap with its version, or "bytecode".
    pub compiler: String,
    /// What decides on an Ethernet frame.
    pub program: Program,
    /// Whether any Ethernet frame can match.
    pub can_match: bool,
    /// Whether what matches depends on the netmask of an interface: `ip broadcast`.
    pub asks_for_netmask: bool,
    /// What decides on frames of other interfaces.
    others: OnceLock<Box<Other>>,
}

/// The program for interfaces of one kind; those of others follow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    link_type: LinkType,
    netmask: Option<Ipv4Addr>,
    program: Program,
    next: OnceLock<Box<Self>>,
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
        let Compiled {
            program,
            compiler,
            asks_for_netmask,
        } = compile(expression, LinkType::Ethernet, None)?;
        Ok(Self {
            expression: expression.to_owned(),
            compiler,
            can_match: program.can_match(),
            program,
            asks_for_netmask,
            others: OnceLock::new(),
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
            asks_for_netmask: false,
            others: OnceLock::new(),
        })
    }

    /// What decides on frames of a link type, on an interface whose IPv4 network has
    /// `netmask`, which matters only where [`Filter::asks_for_netmask`]. For other than
    /// Ethernet without one libpcap is asked the first time, with what
    /// [`Filter::from_expression`] says of names.
    ///
    /// # Errors
    /// When the expression has no meaning for that link type, or is none: bytecode is for
    /// Ethernet frames.
    pub fn program_for(
        &self,
        link_type: LinkType,
        netmask: Option<Ipv4Addr>,
    ) -> Result<&Program, Failure> {
        let netmask = netmask.filter(|_| self.asks_for_netmask);
        if link_type == LinkType::Ethernet && netmask.is_none() {
            return Ok(&self.program);
        }
        if self.is_bytecode() {
            return Err(Failure::new(format!(
                "cannot use {} as a filter{}: it was compiled for Ethernet frames",
                self.expression,
                for_frames(link_type)
            ))
            .hint("give the filter as an expression, or leave such interfaces out"));
        }
        let mut place = &self.others;
        loop {
            let Some(other) = place.get() else {
                let Compiled { program, .. } = compile(&self.expression, link_type, netmask)?;
                // Another thread may have been faster, also with another program.
                let _ = place.set(Box::new(Other {
                    link_type,
                    netmask,
                    program,
                    next: OnceLock::new(),
                }));
                continue;
            };
            if (other.link_type, other.netmask) == (link_type, netmask) {
                return Ok(&other.program);
            }
            place = &other.next;
        }
    }

    /// As [`host_names`] of its expression; none of bytecode.
    pub fn host_names(&self) -> Vec<HostName> {
        if self.is_bytecode() {
            Vec::new()
        } else {
            host_names(&self.expression)
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

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

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
    fn bytecode_is_for_ethernet() {
        let filter = Filter::from_bytecode("1\n6 0 0 1\n", "f.txt").unwrap();
        assert_eq!(
            filter.program_for(LinkType::Ethernet, None).unwrap(),
            &filter.program
        );
        let error = filter.program_for(LinkType::RawIp, None).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("f.txt") && said.contains("RAW"), "{said}");
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
