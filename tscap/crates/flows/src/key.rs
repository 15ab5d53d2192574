//! What a flow is told by.

use std::fmt;

pub use tscap_streams::Ends;

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Where its packets are stamped.
    pub place: u16,
    /// The two outer VLAN tags.
    pub vlans: [Option<u16>; 2],
    /// It came inside VXLAN or GRE.
    pub is_inner: bool,
    /// What it is called there.
    pub id: FlowId,
}

impl FlowKey {
    /// The other direction of a connection, stamped at this place; `None` of flows that have no
    /// ends.
    pub(super) fn other_direction(&self, place: u16) -> Option<Self> {
        let FlowId::FiveTuple(ends) = self.id else {
            return None;
        };
        let id = FlowId::FiveTuple(Ends {
            protocol: ends.protocol,
            source: ends.destination,
            source_port: ends.destination_port,
            destination: ends.source,
            destination_port: ends.source_port,
        });
        Some(Self { place, id, ..*self })
    }
}

/// What a flow is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowId {
    /// By protocol, addresses and ports.
    FiveTuple(Ends),
    /// By a synchronisation source of RTP.
    Rtp {
        /// Its ends.
        ends: Ends,
        /// The source.
        ssrc: u32,
    },
    /// By the class of service.
    Dscp(u8),
    /// By a stream of `tscap gen`.
    Gen {
        /// The run.
        run: u16,
        /// Its flow.
        flow: u16,
    },
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FiveTuple(ends) => ends.fmt(f),
            Self::Rtp { ends, ssrc } => write!(f, "{ends} ssrc {ssrc:#010x}"),
            Self::Dscp(dscp) => match class_of(*dscp) {
                Some(class) => write!(f, "dscp {dscp} ({class})"),
                None => write!(f, "dscp {dscp}"),
            },
            Self::Gen { run, flow } => write!(f, "run {run} flow {flow}"),
        }
    }
}

/// Names of RFC 2474, 2597, 3246, 5865 and 8622.
fn class_of(dscp: u8) -> Option<String> {
    Some(match dscp {
        1 => "LE".into(),
        44 => "VA".into(),
        46 => "EF".into(),
        0..64 if dscp.is_multiple_of(8) => format!("CS{}", dscp / 8),
        10..40 if dscp.is_multiple_of(2) && (1..=3).contains(&(dscp % 8 / 2)) => {
            format!("AF{}{}", dscp / 8, dscp % 8 / 2)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_names() {
        let ends = |protocol| Ends {
            protocol,
            source: "10.0.0.1".parse().unwrap(),
            source_port: 5,
            destination: "2001:db8::2".parse().unwrap(),
            destination_port: 6,
        };
        let udp = FlowId::FiveTuple(ends(17)).to_string();
        assert_eq!(udp, "10.0.0.1:5 → [2001:db8::2]:6 udp");
        let icmp = FlowId::FiveTuple(ends(58)).to_string();
        assert_eq!(icmp, "10.0.0.1 → 2001:db8::2 icmp6");
        let rtp = FlowId::Rtp {
            ends: ends(17),
            ssrc: 0x1234,
        };
        assert!(rtp.to_string().ends_with("udp ssrc 0x00001234"));
        let classes = [
            (0, "CS0"),
            (34, "AF41"),
            (38, "AF43"),
            (46, "EF"),
            (1, "LE"),
        ];
        for (dscp, class) in classes {
            let name = FlowId::Dscp(dscp).to_string();
            assert_eq!(name, format!("dscp {dscp} ({class})"));
        }
        for unnamed in [2, 9, 42, 45, 63] {
            assert_eq!(FlowId::Dscp(unnamed).to_string(), format!("dscp {unnamed}"));
        }
    }
}
