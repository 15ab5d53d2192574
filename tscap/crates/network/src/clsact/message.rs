//! The messages of rtnetlink about classifiers.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage,
    NlasIterator, parse_u32,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpfOption, TcHeader, TcMessage, TcOption, TcU32OptionFlags,
};

use super::{Filter, Side};
use crate::netlink;

/// Where clsact and ingress are: `TC_H_CLSACT` (`linux/pkt_sched.h`).
const CLSACT_PARENT: u32 = 0xffff_fff1;
/// Their handle, which a discipline on [`CLSACT_PARENT`] always has.
const CLSACT_HANDLE: u32 = 0xffff_0000;
/// `ETH_P_ALL` (`linux/if_ether.h`).
const ETH_P_ALL: u16 = libc::ETH_P_ALL as u16;
/// `TCA_INGRESS_BLOCK` and `TCA_EGRESS_BLOCK` (`linux/rtnetlink.h`).
const TCA_INGRESS_BLOCK: u16 = 13;
const TCA_EGRESS_BLOCK: u16 = 14;
/// `TCA_BPF_ID` (`linux/pkt_cls.h`).
const TCA_BPF_ID: u16 = 11;
/// Bytes of `struct tcmsg` (`linux/rtnetlink.h`), ahead of the attributes.
const HEADER_LEN: usize = 20;

/// The kind of the classifier.
pub(super) const BPF: &str = "bpf";

/// A message to the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request<'a> {
    ListQdiscs,
    MakeQdisc,
    RemoveQdisc,
    ListFilters(Side),
    Add {
        filter: &'a Filter,
        program: BorrowedFd<'a>,
        name: &'a str,
    },
    Remove(&'a Filter),
}

impl Request<'_> {
    /// Its bytes, about the interface with this number.
    pub fn bytes(self, ifindex: u32, sequence: u32) -> Vec<u8> {
        use RouteNetlinkMessage as Message;
        let kind = |kind: &str| TcAttribute::Kind(kind.into());
        let made = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let (message, flags, header, attributes) = match self {
            Self::ListQdiscs => {
                let get: fn(_) -> _ = Message::GetQueueDiscipline;
                (get, NLM_F_DUMP, TcHeader::default(), Vec::new())
            }
            Self::MakeQdisc => {
                let new: fn(_) -> _ = Message::NewQueueDiscipline;
                (new, made, qdisc(), vec![kind("clsact")])
            }
            Self::RemoveQdisc => {
                let del: fn(_) -> _ = Message::DelQueueDiscipline;
                (del, NLM_F_ACK, qdisc(), Vec::new())
            }
            Self::ListFilters(side) => {
                let get: fn(_) -> _ = Message::GetTrafficFilter;
                let header = TcHeader {
                    parent: side.parent().into(),
                    ..TcHeader::default()
                };
                (get, NLM_F_DUMP, header, Vec::new())
            }
            Self::Add {
                filter,
                program,
                name,
            } => {
                let new: fn(_) -> _ = Message::NewTrafficFilter;
                let options = vec![
                    TcFilterBpfOption::ProgFd(program.as_raw_fd().cast_unsigned()),
                    TcFilterBpfOption::ProgName(name.into()),
                    TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
                    // Not on the device, whose frames would never be seen here.
                    TcFilterBpfOption::FlagsGeneric(TcU32OptionFlags::SkipHw),
                ];
                let options = options.into_iter().map(TcOption::Bpf).collect();
                let attributes = vec![kind(BPF), TcAttribute::Options(options)];
                (new, made, filter.header(), attributes)
            }
            Self::Remove(filter) => {
                let del: fn(_) -> _ = Message::DelTrafficFilter;
                (del, NLM_F_ACK, filter.header(), vec![kind(BPF)])
            }
        };
        let mut tc = TcMessage::default();
        tc.header = TcHeader {
            index: ifindex.cast_signed(),
            ..header
        };
        tc.attributes = attributes;
        let mut request = NetlinkMessage::from(message(tc));
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = sequence;
        netlink::bytes(request)
    }
}

fn qdisc() -> TcHeader {
    TcHeader {
        handle: CLSACT_HANDLE.into(),
        parent: CLSACT_PARENT.into(),
        ..TcHeader::default()
    }
}

impl Side {
    /// `TC_H_MIN_INGRESS` and `TC_H_MIN_EGRESS` (`linux/pkt_sched.h`) of clsact.
    fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

impl Filter {
    fn header(&self) -> TcHeader {
        TcHeader {
            handle: self.handle.into(),
            parent: self.side.parent().into(),
            info: u32::from(self.priority) << 16 | u32::from(ETH_P_ALL.to_be()),
            ..TcHeader::default()
        }
    }
}

/// A queueing discipline, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Qdisc {
    pub kind: String,
    /// Filters of a side are in a block that several interfaces share.
    pub has_block: bool,
    ifindex: u32,
    parent: u32,
}

impl Qdisc {
    pub fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let header = TcHeader::parse(payload)?;
        let mut qdisc = Self {
            ifindex: header.index.cast_unsigned(),
            parent: header.parent.into(),
            ..Self::default()
        };
        for attribute in attributes(payload) {
            let attribute = attribute?;
            match attribute.kind() {
                libc::TCA_KIND => qdisc.kind = text(attribute.value()),
                TCA_INGRESS_BLOCK | TCA_EGRESS_BLOCK => qdisc.has_block = true,
                _ => {}
            }
        }
        Ok(qdisc)
    }

    /// Whether it is in the place of clsact on this interface.
    pub fn is_at(&self, ifindex: u32) -> bool {
        self.ifindex == ifindex && self.parent == CLSACT_PARENT
    }
}

/// A filter that is there, or with the handle 0 filters of one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub kind: String,
    pub priority: u16,
    pub is_for_all_protocols: bool,
    pub handle: u32,
    /// Id of its program, if it has one.
    pub program: Option<u32>,
}

impl Found {
    pub fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let header = TcHeader::parse(payload)?;
        let mut found = Self {
            priority: (header.info >> 16) as u16,
            is_for_all_protocols: header.info as u16 == ETH_P_ALL.to_be(),
            handle: header.handle.into(),
            ..Self::default()
        };
        let mut options = Vec::new();
        for attribute in attributes(payload) {
            let attribute = attribute?;
            match attribute.kind() {
                libc::TCA_KIND => found.kind = text(attribute.value()),
                libc::TCA_OPTIONS => options = attribute.value().to_vec(),
                _ => {}
            }
        }
        if found.kind == BPF {
            for option in NlasIterator::new(&options[..]) {
                let option = option?;
                if option.kind() == TCA_BPF_ID {
                    found.program = Some(parse_u32(option.value())?);
                }
            }
        }
        Ok(found)
    }
}

fn attributes(payload: &[u8]) -> NlasIterator<&[u8]> {
    NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default())
}

fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    const FILTER: Filter = Filter {
        side: Side::Egress,
        priority: 1,
        program: 77,
        handle: 0x8000_004d,
    };

    /// An attribute as it stands in a message, padded.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// `struct tcmsg` of interface 5.
    fn header(handle: u32, parent: u32, info: u32) -> Vec<u8> {
        [0, 5, handle, parent, info]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    fn info() -> u32 {
        1 << 16 | u32::from(3_u16.to_be())
    }

    #[test]
    fn a_filter_is_added_for_every_protocol_and_never_over_another() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let fd = file.as_raw_fd().to_ne_bytes();
        let add = Request::Add {
            filter: &FILTER,
            program: file.as_fd(),
            name: "tscap",
        };
        let bytes = add.bytes(5, 9);
        let options = [
            attribute(6, &fd),
            attribute(7, b"tscap\0"),
            attribute(8, &1_u32.to_ne_bytes()),
            attribute(9, &1_u32.to_ne_bytes()),
        ]
        .concat();
        let body = [
            header(0x8000_004d, 0xffff_fff3, info()),
            attribute(1, b"bpf\0"),
            attribute(2, &options),
        ]
        .concat();
        assert_eq!(bytes[16..], body);
        assert_eq!(bytes[4..6], libc::RTM_NEWTFILTER.to_ne_bytes());
        let flags = u16::from_ne_bytes(bytes[6..8].try_into().unwrap());
        let wanted = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        assert_eq!(i32::from(flags), wanted);
        assert_eq!(bytes[8..12], 9_u32.to_ne_bytes());
    }

    #[test]
    fn exactly_one_filter_is_removed() {
        let bytes = Request::Remove(&FILTER).bytes(5, 1);
        let body = [
            header(0x8000_004d, 0xffff_fff3, info()),
            attribute(1, b"bpf\0"),
        ];
        assert_eq!(bytes[4..6], libc::RTM_DELTFILTER.to_ne_bytes());
        assert_eq!(bytes[16..], body.concat());
    }

    #[test]
    fn filters_and_disciplines_are_read() {
        let options = attribute(11, &77_u32.to_ne_bytes());
        let mut filter = header(0x8000_004d, 0xffff_fff3, info());
        filter.extend(attribute(1, b"bpf\0"));
        filter.extend(attribute(2, &options));
        let found = Found::parse(&filter).unwrap();
        let expected = Found {
            kind: BPF.into(),
            priority: 1,
            is_for_all_protocols: true,
            handle: FILTER.handle,
            program: Some(77),
        };
        assert_eq!(found, expected);

        let mut other = header(1, 0xffff_fff3, 7 << 16 | 8);
        other.extend(attribute(1, b"u32\0"));
        // Its options are another kind's: 11 is no program.
        other.extend(attribute(2, &options));
        let found = Found::parse(&other).unwrap();
        assert_eq!((found.priority, found.program), (7, None));
        assert!(!found.is_for_all_protocols);

        let mut qdisc = header(0xffff_0000, 0xffff_fff1, 1);
        qdisc.extend(attribute(1, b"clsact\0"));
        let parsed = Qdisc::parse(&qdisc).unwrap();
        assert!(parsed.is_at(5) && !parsed.is_at(6) && !parsed.has_block);
        qdisc.extend(attribute(14, &1_u32.to_ne_bytes()));
        assert!(Qdisc::parse(&qdisc).unwrap().has_block);
        assert!(Qdisc::parse(&[0; 19]).is_err() && Found::parse(&[0; 19]).is_err());
    }
}
