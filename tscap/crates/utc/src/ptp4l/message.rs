//! Management messages: requests, and the answers that are used.

use crate::bytes::Fields;

/// Of a request: both headers and a TLV without data.
pub(crate) const LENGTH: usize = 54;
const MANAGEMENT: u8 = 0xd;
const VERSION: u8 = 2;
/// `MANAGEMENT` as the type of a TLV.
const TLV: u16 = 1;
/// The action of an answer.
const RESPONSE: u8 = 2;
/// Where its data begin.
const DATA: usize = 54;
/// UNCALIBRATED and SLAVE (table 20). linuxptp stays in the first while it only measures.
const SLAVE: [u8; 2] = [8, 9];
/// `TS_SOFTWARE` of linuxptp.
const SOFTWARE: u8 = 0;

/// What is asked for: its number (15.5.2.3), those of 0xc000 and more are linuxptp's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Id {
    Current = 0x2001,
    Parent = 0x2002,
    TimeProperties = 0x2003,
    Time = 0xc000,
    Port = 0xc004,
}

impl Id {
    pub const ALL: [Self; 5] = [
        Self::Time,
        Self::Current,
        Self::Parent,
        Self::TimeProperties,
        Self::Port,
    ];
}

/// TIME_STATUS_NP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeStatus {
    /// The clock less the grandmaster's, ns.
    pub offset_ns: i64,
    /// When the latest Sync came, by the clock, ns.
    pub ingress_ns: u64,
    pub has_grandmaster: bool,
}

/// CURRENT_DATA_SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    pub steps_removed: u16,
    /// Rounded up.
    pub path_delay_ns: u64,
}

/// PARENT_DATA_SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    /// clockAccuracy.
    pub accuracy: u8,
    pub grandmaster: String,
}

/// TIME_PROPERTIES_DATA_SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeProperties {
    pub is_traceable: bool,
}

/// PORT_PROPERTIES_NP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub number: u16,
    pub state: u8,
    pub is_by_hardware: bool,
    pub interface: String,
}

impl Port {
    /// It follows a master.
    pub fn is_slave(&self) -> bool {
        SLAVE.contains(&self.state)
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Time(TimeStatus),
    Current(Current),
    Parent(Parent),
    TimeProperties(TimeProperties),
    Port(Port),
}

/// Whom ptp4l takes messages from: those of its domain and profile (`port_ignore` of linuxptp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    pub number: u8,
    /// majorSdoId: 1 for gPTP (IEEE Std 802.1AS).
    pub sdo: u8,
}

/// A request, whose number the answer has.
pub(crate) fn request(id: Id, domain: Domain, sequence: u16) -> [u8; LENGTH] {
    let mut octets = [0; LENGTH];
    octets[0] = domain.sdo << 4 | MANAGEMENT;
    octets[1] = VERSION;
    octets[2..4].copy_from_slice(&(LENGTH as u16).to_be_bytes());
    octets[4] = domain.number;
    // Any identity but that of a port of ptp4l.
    octets[20..30].copy_from_slice(b"tscap-utc\x01");
    octets[30..32].copy_from_slice(&sequence.to_be_bytes());
    octets[32] = 4;
    octets[33] = 0x7f;
    // All ports.
    octets[34..44].fill(0xff);
    octets[48..50].copy_from_slice(&TLV.to_be_bytes());
    octets[50..52].copy_from_slice(&2_u16.to_be_bytes());
    octets[52..54].copy_from_slice(&(id as u16).to_be_bytes());
    octets
}

/// The number of the request that a message answers, its domain, and what it says; `None` if it is
/// no answer that is used.
pub(crate) fn parse(octets: &[u8]) -> Option<(u16, Domain, Data)> {
    let fields = Fields(octets);
    let is_answer = fields.u8(0)? & 0xf == MANAGEMENT
        && fields.u8(1)? & 0xf == VERSION
        && fields.u8(46)? & 0xf == RESPONSE
        && fields.be16(48)? == TLV;
    if !is_answer {
        return None;
    }
    let domain = Domain {
        number: fields.u8(4)?,
        sdo: fields.u8(0)? >> 4,
    };
    // An error has another type of TLV; what is cut has no data.
    let length = usize::from(fields.be16(50)?).checked_sub(2)?;
    let data = Fields(octets.get(DATA..DATA + length)?);
    let id = fields.be16(52)?;
    let id = Id::ALL.into_iter().find(|it| *it as u16 == id)?;
    let data = match id {
        Id::Time => Data::Time(TimeStatus {
            offset_ns: data.be64(0)?.cast_signed(),
            ingress_ns: data.be64(8)?,
            has_grandmaster: data.be32(38)? != 0,
        }),
        Id::Current => Data::Current(Current {
            steps_removed: data.be16(0)?,
            // In units of 2^-16 ns; below 0 it is noise of a short way.
            path_delay_ns: data
                .be64(10)?
                .cast_signed()
                .unsigned_abs()
                .div_ceil(1 << 16),
        }),
        Id::Parent => Data::Parent(Parent {
            accuracy: data.u8(20)?,
            grandmaster: identity(data.at(24)?),
        }),
        Id::TimeProperties => Data::TimeProperties(TimeProperties {
            is_traceable: data.u8(2)? & 1 << 4 != 0,
        }),
        Id::Port => {
            let length = usize::from(data.u8(12)?);
            let name = data.0.get(13..13 + length)?;
            Data::Port(Port {
                number: data.be16(8)?,
                state: data.u8(10)?,
                is_by_hardware: data.u8(11)? != SOFTWARE,
                interface: String::from_utf8_lossy(name).into_owned(),
            })
        }
    };
    Some((fields.be16(30)?, domain, data))
}

/// As ptp4l writes it: "aabbcc.fffe.ddeeff".
fn identity(octets: [u8; 8]) -> String {
    let [a, b, c, d, e, f, g, h] = octets;
    format!("{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{f:02x}{g:02x}{h:02x}")
}

/// Greatest error of a grandmaster with this clockAccuracy (IEEE Std 1588-2019, table 5), ns,
/// rounded up; `None` if it says none.
pub(crate) fn accuracy_ns(accuracy: u8) -> Option<u64> {
    // From 1 ps on, each decade has three: 1, 2.5 and 10 come 0x17, 0x18 and 0x19.
    const PS: [u64; 26] = [
        1,
        3,
        10,
        25,
        100,
        250,
        1_000,
        2_500,
        10_000,
        25_000,
        100_000,
        250_000,
        1_000_000,
        2_500_000,
        10_000_000,
        25_000_000,
        100_000_000,
        250_000_000,
        1_000_000_000,
        2_500_000_000,
        10_000_000_000,
        25_000_000_000,
        100_000_000_000,
        250_000_000_000,
        1_000_000_000_000,
        10_000_000_000_000,
    ];
    let index = usize::from(accuracy).checked_sub(0x17)?;
    PS.get(index).map(|ps| ps.div_ceil(1_000))
}
