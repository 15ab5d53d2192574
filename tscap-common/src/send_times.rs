//! What the programs that write send times and user space share: which packets they are for,
//! where a time stands in them, and how it is written.
//!
//! They are test packets of STAMP (RFC 8762) and of TWAMP Light (RFC 5357, appendix I) without
//! authentication, of either end. Both ends have the time at which they send at the same place,
//! with the Error Estimate of their clock behind it.

use crate::counts::counts;
use crate::hook::ClockDomain;
use crate::stamping::Published;

/// `[u32; MOST_PORTS]`: the [`entry`] of each port, 0 behind the last one.
pub const PORTS: &str = "PORTS";
/// Per-CPU array map of one [`SendCounts`].
pub const SEND_COUNTS: &str = "SEND_COUNTS";
/// Most ports.
pub const MOST_PORTS: usize = 16;

/// Name of the program at tcx egress that stamps by `clock`.
pub const fn send_program(clock: ClockDomain) -> &'static str {
    match clock {
        ClockDomain::Monotonic => "tscap_send_ktime",
        ClockDomain::Tai => "tscap_send_tai",
        ClockDomain::Tsc => "tscap_send_kfunc",
        ClockDomain::CpuTsc => "tscap_send_perf",
    }
}

/// [`entry`]: packets from this port, as a session-reflector sends them.
pub const FROM: u32 = 1 << 16;
/// [`entry`]: packets to this port, as a session-sender sends them.
pub const TO: u32 = 1 << 17;

/// A port and its packets: [`FROM`], [`TO`] or both.
pub const fn entry(port: u16, ends: u32) -> u32 {
    port as u32 | ends
}

/// Whether packets between these ports are those of an entry.
#[inline(always)]
pub const fn has(entry: u32, source: u16, destination: u16) -> bool {
    let port = entry as u16;
    (entry & FROM != 0 && port == source) || (entry & TO != 0 && port == destination)
}

/// From the UDP header to its checksum, octets.
pub const CHECKSUM_AT: u32 = 6;
/// Octets of a UDP header.
const UDP_BYTES: u32 = 8;
/// From the UDP header to [`Stamped`], octets.
pub const STAMPED_AT: u32 = UDP_BYTES + 2;
/// Words of [`Stamped`].
pub const STAMPED_WORDS: usize = 3;
/// Least octets of a payload with a time and an Error Estimate.
const LEAST_PAYLOAD: u32 = 14;
/// Octets of an authenticated test packet (RFC 8762, section 4.2.2).
const AUTHENTICATED_PAYLOAD: u32 = 112;

/// The bytes of a packet from its Ethernet header on.
pub trait Bytes: Copy {
    /// Words from `at` on, each with its first byte highest; `None` if it ends before.
    fn words<const N: usize>(self, at: u32) -> Option<[u32; N]>;
}

/// What the octets 2 to 14 of an unauthenticated test packet's payload are: whole words, so that
/// a checksum can be told of the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamped {
    /// Lower half of the sequence number.
    pub sequence: u16,
    /// When the packet was sent.
    pub time: u64,
    /// The Error Estimate of the sender's clock.
    pub error_estimate: u16,
}

impl Stamped {
    /// From words with their first byte highest.
    #[inline(always)]
    pub const fn of([first, second, third]: [u32; STAMPED_WORDS]) -> Self {
        let upper = (first as u64 & 0xffff) << 48;
        Self {
            sequence: (first >> 16) as u16,
            time: upper | (second as u64) << 16 | third as u64 >> 16,
            error_estimate: third as u16,
        }
    }

    /// As words with their first byte highest.
    #[inline(always)]
    pub const fn words(self) -> [u32; STAMPED_WORDS] {
        [
            (self.sequence as u32) << 16 | (self.time >> 48) as u32,
            (self.time >> 16) as u32,
            (self.time as u32) << 16 | self.error_estimate as u32,
        ]
    }
}

/// A packet that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Packet<B> {
    /// Its bytes.
    pub bytes: B,
    /// How many they are.
    pub length: u32,
    /// Whether it was received by an interface of this machine, and is forwarded.
    pub is_forwarded: bool,
    /// Whether it becomes several packets later (GSO).
    pub is_aggregate: bool,
}

/// The UDP header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Where it is.
    pub at: u32,
    /// The port that the packet is from.
    pub source: u16,
    /// The port that it is to.
    pub destination: u16,
    /// Octets of header and payload.
    length: u32,
    /// Whether the rest of the payload is in other packets.
    is_fragment: bool,
}

/// The place of a UDP header.
#[derive(Clone, Copy)]
struct Place {
    at: u32,
    is_fragment: bool,
}

const ETHERTYPE: u32 = 12;
const VLAN: u32 = 0x8100;
const PROVIDER_VLAN: u32 = 0x88a8;
const MOST_TAGS: u32 = 2;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const UDP: u32 = 17;
/// More fragments follow, and where this one begins (RFC 791).
const V4_FRAGMENT: u32 = 0x3fff;
const V4_BEGIN: u32 = 0x1fff;
/// Where a fragment begins (RFC 8200, section 4.5).
const V6_BEGIN: u32 = 0xfff8;
/// Extension headers of IPv6 (RFC 8200). One of authentication (51) is not passed over: it is
/// over the payload too.
const HOP_BY_HOP: u32 = 0;
const ROUTING: u32 = 43;
const FRAGMENT: u32 = 44;
const DESTINATION_OPTIONS: u32 = 60;
/// Each may be there once, the last one twice (RFC 8200, section 4.1).
const MOST_HEADERS: u32 = 5;

/// The UDP header of a packet; `None` if it has none, or a later fragment of one.
#[inline(always)]
pub fn udp(bytes: impl Bytes) -> Option<Udp> {
    let Place { at, is_fragment } = place_of_udp(bytes)?;
    let [ports, length] = bytes.words(at)?;
    Some(Udp {
        at,
        source: (ports >> 16) as u16,
        destination: ports as u16,
        length: length >> 16,
        is_fragment,
    })
}

/// Time and Error Estimate of a test packet with that header, as its program has written them.
///
/// # Errors
/// What a packet counts as that gets no time.
#[inline(always)]
pub fn stamped(packet: Packet<impl Bytes>, udp: Udp) -> Result<Stamped, SendCount> {
    let bytes = packet.bytes;
    if packet.is_forwarded {
        return Err(SendCount::Forwarded);
    }
    if udp.is_fragment {
        return Err(SendCount::Fragment);
    }
    if packet.is_aggregate {
        return Err(SendCount::Aggregate);
    }
    if udp.length < UDP_BYTES + LEAST_PAYLOAD || udp.at + udp.length > packet.length {
        return Err(SendCount::Short);
    }
    let at = udp.at + STAMPED_AT;
    let Some(words) = bytes.words(at) else {
        return Err(SendCount::Short);
    };
    let stamped = Stamped::of(words);
    // An authenticated packet has twelve octets of zero where others have a time, an Error
    // Estimate, whose multiplier is never 0, and an SSID (RFC 8762, sections 4.2.2 and 4.3.2).
    let is_zero = stamped.time == 0 && stamped.error_estimate == 0;
    if is_zero && udp.length >= UDP_BYTES + AUTHENTICATED_PAYLOAD {
        match bytes.words(at + 4 * STAMPED_WORDS as u32) {
            Some([behind]) if behind >> 16 != 0 => {}
            _ => return Err(SendCount::Authenticated),
        }
    }
    Ok(stamped)
}

#[inline(always)]
fn place_of_udp(bytes: impl Bytes) -> Option<Place> {
    let mut at = ETHERTYPE;
    let [mut kind] = bytes.words(at)?;
    let mut tags = 0;
    while tags < MOST_TAGS && matches!(kind >> 16, VLAN | PROVIDER_VLAN) {
        at += 4;
        [kind] = bytes.words(at)?;
        tags += 1;
    }
    match kind >> 16 {
        IPV4 => place_in_v4(bytes, at + 2),
        IPV6 => place_in_v6(bytes, at + 2),
        _ => None,
    }
}

#[inline(always)]
fn place_in_v4(bytes: impl Bytes, ip: u32) -> Option<Place> {
    let [first, fragment, third] = bytes.words(ip)?;
    let length = (first >> 24 & 0xf) * 4;
    let fragment = fragment & V4_FRAGMENT;
    // What follows a fragment's beginning has no ports.
    let has_header = length >= 20 && fragment & V4_BEGIN == 0;
    (third >> 16 & 0xff == UDP && has_header).then_some(Place {
        at: ip + length,
        is_fragment: fragment != 0,
    })
}

#[inline(always)]
fn place_in_v6(bytes: impl Bytes, ip: u32) -> Option<Place> {
    let [_, second] = bytes.words(ip)?;
    let mut next = second >> 8 & 0xff;
    let mut udp = Place {
        at: ip + 40,
        is_fragment: false,
    };
    let mut headers = 0;
    while next != UDP {
        let is_known = matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS);
        if !is_known || headers == MOST_HEADERS {
            return None;
        }
        let [header] = bytes.words(udp.at)?;
        if next == FRAGMENT {
            if header & V6_BEGIN != 0 {
                return None;
            }
            udp.is_fragment = true;
            udp.at += 8;
        } else {
            udp.at += ((header >> 16 & 0xff) + 1) * 8;
        }
        next = header >> 24;
        headers += 1;
    }
    Some(udp)
}

const NS_PER_S: u64 = 1_000_000_000;
/// From 1900 to 1970, s (RFC 5905, figure 4).
const UNIX_EPOCH_S: u64 = 2_208_988_800;
/// Z of an Error Estimate: the time is in PTP's format (RFC 8186, section 2.3).
const PTP: u16 = 1 << 14;

impl Stamped {
    /// The same of a packet that is sent at `real_ns`, ns since 1970. In the format that its
    /// program says in its Error Estimate: that of PTP on the program's own time scale, TAI or
    /// UTC, whichever its time is nearer to. The times that it writes elsewhere in the packet are
    /// on the same one.
    #[inline(always)]
    pub const fn at(self, real_ns: u64, published: &Published) -> Self {
        let format = self.error_estimate & PTP;
        Self {
            sequence: self.sequence,
            time: if format == 0 {
                ntp(real_ns)
            } else {
                let theirs_s = (self.time >> 32) as u32;
                ptp(real_ns, theirs_s, published.tai_offset_s)
            },
            error_estimate: published.error_estimate | format,
        }
    }
}

/// A time in NTP's format of 64 bits (RFC 5905, section 6), rounded up: by less than 1.1 units
/// of 2^-32 s, so that who rounds it down to ns has the same ns again.
#[inline(always)]
pub const fn ntp(real_ns: u64) -> u64 {
    let (seconds, ns) = (real_ns / NS_PER_S, real_ns % NS_PER_S);
    seconds.wrapping_add(UNIX_EPOCH_S) << 32 | fraction(ns)
}

/// Units of 2^-32 s in less than a second, without a division: ns · 2^63/10^9 / 2^31. The
/// factor is rounded up by 0.15, which makes 0.07 units at most.
#[inline(always)]
const fn fraction(ns: u64) -> u64 {
    const SHIFT: u32 = 31;
    const FACTOR: u64 = (1 << (32 + SHIFT)) / NS_PER_S + 1;
    (ns * FACTOR + (1 << SHIFT) - 1) >> SHIFT
}

/// A time in the truncated format of PTP (IEEE 1588): seconds and ns.
#[inline(always)]
const fn ptp(real_ns: u64, theirs_s: u32, tai_offset_s: i32) -> u64 {
    let (seconds, ns) = (real_ns / NS_PER_S, real_ns % NS_PER_S);
    let ahead = theirs_s.wrapping_sub(seconds as u32).cast_signed() as i64;
    let by_utc = ahead.unsigned_abs();
    let by_tai = (ahead - tai_offset_s as i64).unsigned_abs();
    let scale = if by_tai < by_utc { tai_offset_s } else { 0 };
    seconds.wrapping_add_signed(scale as i64) << 32 | ns
}

counts! {
    /// What the program at tcx egress counts.
    SendCount
    Seen          "seen"          "Packets at tcx egress."
    Written       "written"       "Their send time and Error Estimate were written."
    Other         "other"         "They are not UDP from or to these ports, or a later fragment."
    Forwarded     "forwarded"     "They come from elsewhere: the time is that of the machine that sent them."
    Fragment      "fragment"      "First fragments: the checksum is over all of them."
    Aggregate     "aggregate"     "They become several packets later (GSO)."
    Short         "short"         "The payload has no room for a time and an Error Estimate, 14 octets."
    Authenticated "authenticated" "Authenticated: a hash is over the time."
    NoStamp       "no_stamp"      "The clock of their CPU could not be read."
    Stale         "stale"         "There was no fresh conversion."
    Overtaken     "overtaken"     "The conversion changed each time while it was read."
    Refused       "refused"       "The kernel did not let the packet be written to: it has no memory."
}

impl SendCount {
    /// What becomes of a packet at tcx egress.
    pub const OUTCOMES: [Self; 11] = [
        Self::Written,
        Self::Other,
        Self::Forwarded,
        Self::Fragment,
        Self::Aggregate,
        Self::Short,
        Self::Authenticated,
        Self::NoStamp,
        Self::Stale,
        Self::Overtaken,
        Self::Refused,
    ];
}

/// What one CPU counted, by [`SendCount`].
pub type SendCounts = [u64; SendCount::ALL.len()];

#[cfg(test)]
mod tests;
