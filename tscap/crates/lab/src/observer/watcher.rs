//! Who captures while traffic passes.

use serde::{Deserialize, Serialize};

use tscap_clock::StampSource;
use tscap_programs::hook::HookChoice;
use tscap_traffic::load::Tool;

/// One of those that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watcher {
    /// No capture: what the others are held against.
    Nobody,
    /// tscap at native XDP.
    Tscap(StampSource),
    /// The same with a filter that lets nothing through: frames are stamped and passed on.
    Filtered,
    /// tscap at tcx ingress, in the network stack.
    Stack,
    /// Another program.
    Other(Tool),
}

/// An expression that none of the frames matches.
pub(super) const NONE_MATCH: &str = "udp port 9";

impl Watcher {
    /// Those that there may be, nobody first. A port that only listens (`--tap`) passes nothing
    /// on, so there is no traffic that it could change.
    pub const ALL: [Self; 9] = [
        Self::Nobody,
        Self::Tscap(StampSource::Ktime),
        Self::Tscap(StampSource::Tai),
        Self::Tscap(StampSource::Tsc),
        Self::Filtered,
        Self::Stack,
        Self::Other(Tool::Tcpdump),
        Self::Other(Tool::Dumpcap),
        Self::Other(Tool::NetsniffNg),
    ];

    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Nobody => "no capture".to_owned(),
            Self::Tscap(clock) => format!("tscap, {}", clock.name()),
            Self::Filtered => "tscap, filter".to_owned(),
            Self::Stack => "tscap, tcx".to_owned(),
            Self::Other(tool) => tool.name().to_owned(),
        }
    }

    /// The program, if any.
    pub(super) fn tool(self) -> Option<Tool> {
        match self {
            Self::Nobody => None,
            Self::Tscap(_) | Self::Filtered | Self::Stack => Some(Tool::Tscap),
            Self::Other(tool) => Some(tool),
        }
    }

    /// What tscap stamps with.
    pub(super) fn clock(self) -> StampSource {
        match self {
            Self::Tscap(clock) => clock,
            _ => StampSource::Ktime,
        }
    }

    /// Where tscap takes frames.
    pub(super) fn hook(self) -> HookChoice {
        match self {
            Self::Stack => HookChoice::Tcx,
            _ => HookChoice::Auto,
        }
    }
}
