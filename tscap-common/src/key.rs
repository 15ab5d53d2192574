//! What tells a packet from others at two places between which it may be changed: 64 bits of
//! what stays the same there. The programs compute keys of live frames, user space those of
//! captured ones, by the same code.
//!
//! Two packets with the same bytes in what a key is of have the same key; of other packets two
//! have it by a chance of 2^-64. Keys mean something within one run only.

use crate::stream::MAGIC;

/// What a key is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KeyOf {
    /// Run, flow and sequence number of `tscap gen` ([`crate::stream`]).
    Gen = 0,
    /// The frame, up to [`MOST_BYTES`], and its whole length.
    Bridge = 1,
    /// The IP packet without TTL or hop limit, the bits for ECN, and the checksums of IP, TCP
    /// and UDP; without what pads its frame.
    Route = 2,
    /// Protocol, IP id, length and payload of an IP packet; of TCP the sequence and
    /// acknowledgement numbers and flags too, of ICMP type and sequence number.
    Nat = 3,
    /// Of UDP and ICMP echo: both addresses and both ports, whichever way round, and the
    /// payload; so a reply that echoes a request has its key.
    Reply = 4,
}

/// Most bytes of a frame that a key is of.
pub const MOST_BYTES: u32 = 9216;
/// Reads reach at most so far behind the end of a frame.
pub const READ_AHEAD: u32 = 128;

/// The bytes of a frame. Behind its end, up to [`READ_AHEAD`], anything may be read: it goes
/// into no key.
pub trait Octets: Copy {
    /// The byte at `at`.
    fn byte(self, at: u32) -> u64;
    /// The eight bytes from `at` on, the first one lowest.
    fn word(self, at: u32) -> u64;
    /// A number that the kernel's verifier knows nothing of, and does not tell apart by the way
    /// that led to it: it would go through what follows once for each.
    #[inline(always)]
    fn opaque(self, number: u32) -> u32 {
        number
    }
    /// [`digest`] of these bytes.
    #[inline(always)]
    fn digest(self, seed: u64, from: u32, to: u32) -> u64 {
        digest(self, seed, from, to)
    }
}

/// Chunks that are digested at once.
const CHUNK: u32 = 32;

const ETHERTYPE: u32 = 12;
const IPV4: u64 = 0x0800;
const IPV6: u64 = 0x86dd;
const VLAN: u64 = 0x8100;
const PROVIDER_VLAN: u64 = 0x88a8;

const ICMP: u64 = 1;
const TCP: u64 = 6;
const UDP: u64 = 17;
const FRAGMENT: u64 = 44;
const ICMPV6: u64 = 58;

/// Odd, with bits all over: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of the Ethernet frame of `len` bytes, of which the first `there` can be read; `None`
/// if it has nothing that the key is of.
#[inline(always)]
pub fn key(of: KeyOf, frame: impl Octets, there: u32, len: u32) -> Option<u64> {
    if of as u32 == KeyOf::Bridge as u32 {
        let mut digest = Digest::new(of, u64::from(len));
        digest.range(frame, 0, there.min(MOST_BYTES));
        return Some(digest.key());
    }
    let packet = Packet::of(frame, there.min(MOST_BYTES), len)?;
    if of as u32 == KeyOf::Gen as u32 {
        return stream_key(frame, &packet);
    }
    let mut digest = Digest::new(of, packet.protocol);
    if of as u32 == KeyOf::Route as u32 {
        routed(&mut digest, frame, &packet);
    } else if of as u32 == KeyOf::Nat as u32 {
        translated(&mut digest, frame, &packet);
    } else {
        echoed(&mut digest, frame, &packet)?;
    }
    Some(digest.key())
}

/// Where the parts of an IP packet are in its frame.
#[derive(Clone, Copy)]
struct Packet {
    /// The IP header.
    ip: u32,
    is_v6: bool,
    /// What comes behind the IP header.
    body: u32,
    /// Where the packet ends, or what can be read of it.
    end: u32,
    /// Bytes of the whole packet behind the IP header.
    behind: u32,
    /// What is behind the IP header: in a fragment that is not the first one, its middle.
    protocol: u64,
    /// Of a fragment its place and whether more follow; 0 of a whole packet.
    fragment: u64,
    id: u64,
}

impl Packet {
    #[inline(always)]
    fn of(frame: impl Octets, there: u32, len: u32) -> Option<Self> {
        let mut ip = ETHERTYPE + 2;
        let mut ethertype = half(frame, ETHERTYPE);
        let mut tags = 0;
        while tags < 2 && (ethertype == VLAN || ethertype == PROVIDER_VLAN) {
            ethertype = half(frame, ip + 2);
            ip += 4;
            tags += 1;
        }
        let ip = frame.opaque(ip);
        let packet = match ethertype {
            IPV4 => Self::v4(frame, ip, there, len),
            IPV6 => Self::v6(frame, ip, there, len),
            _ => None,
        }?;
        Some(Self {
            body: frame.opaque(packet.body),
            end: frame.opaque(packet.end.min(there)),
            behind: packet.end - packet.body,
            ..packet
        })
    }

    #[inline(always)]
    fn v4(frame: impl Octets, ip: u32, there: u32, len: u32) -> Option<Self> {
        let header = (frame.byte(ip) as u32 & 0xf) * 4;
        let body = ip + header;
        if header < 20 || body > there {
            return None;
        }
        // 0 of an aggregate that is longer than the field can say.
        let end = match half(frame, ip + 2) as u32 {
            0 => len,
            total => len.min(ip + total),
        };
        if end < body {
            return None;
        }
        Some(Self {
            ip,
            is_v6: false,
            body,
            end,
            behind: 0,
            protocol: frame.byte(ip + 9),
            // Without the bit that forbids fragments.
            fragment: half(frame, ip + 6) & 0x3fff,
            id: half(frame, ip + 4),
        })
    }

    #[inline(always)]
    fn v6(frame: impl Octets, ip: u32, there: u32, len: u32) -> Option<Self> {
        let body = ip + 40;
        if body > there {
            return None;
        }
        let end = match half(frame, ip + 4) as u32 {
            0 => len,
            payload => len.min(body + payload),
        };
        let whole = Self {
            ip,
            is_v6: true,
            body,
            end,
            behind: 0,
            protocol: frame.byte(ip + 6),
            fragment: 0,
            id: 0,
        };
        if whole.protocol != FRAGMENT {
            return Some(whole);
        }
        let behind = body + 8;
        (behind <= end.min(there)).then(|| Self {
            body: behind,
            protocol: frame.byte(body),
            fragment: half(frame, body + 2),
            id: frame.word(body) >> 32,
            ..whole
        })
    }

    /// Whether the header of the protocol is there.
    #[inline(always)]
    fn has_header(&self) -> bool {
        let place = if self.is_v6 {
            self.fragment & !7
        } else {
            self.fragment & 0x1fff
        };
        place == 0
    }

    /// Whether it is `protocol`, with at least `length` bytes of its header.
    #[inline(always)]
    fn is(&self, protocol: u64, length: u32) -> bool {
        self.protocol == protocol && self.has_header() && self.body + length <= self.end
    }

    #[inline(always)]
    fn is_icmp(&self) -> bool {
        let protocol = if self.is_v6 { ICMPV6 } else { ICMP };
        self.is(protocol, 8)
    }
}

#[inline(always)]
fn stream_key(frame: impl Octets, packet: &Packet) -> Option<u64> {
    let payload = packet.body + 8;
    if !packet.is(UDP, 8 + 10) || half(frame, payload) != u64::from(MAGIC) {
        return None;
    }
    let mut digest = Digest::new(KeyOf::Gen, 0);
    digest.part(frame, payload + 2, payload + 10);
    Some(digest.key())
}

#[inline(always)]
fn routed(digest: &mut Digest, frame: impl Octets, packet: &Packet) {
    let Packet { ip, body, end, .. } = *packet;
    if packet.is_v6 {
        // Without the bits for ECN and the hop limit.
        digest.mix(frame.word(ip) & 0x00ff_ffff_ffff_cfff);
        digest.part(frame, ip + 8, ip + 16);
        digest.part(frame, ip + 16, ip + 24);
        digest.part(frame, ip + 24, ip + 32);
        digest.part(frame, ip + 32, ip + 40);
        digest.mix(packet.fragment | packet.id << 16);
    } else {
        // Without the bits for ECN, TTL and checksum.
        digest.mix(frame.word(ip) & 0xffff_ffff_ffff_fcff);
        digest.part(frame, ip + 12, ip + 20);
        digest.range(frame, ip + 20, body);
    }
    if packet.is(UDP, 8) {
        digest.part(frame, body, body + 6);
        digest.range(frame, body + 8, end);
    } else if packet.is(TCP, 20) {
        digest.part(frame, body, body + 8);
        digest.part(frame, body + 8, body + 16);
        digest.part(frame, body + 18, body + 20);
        digest.range(frame, body + 20, end);
    } else {
        digest.range(frame, body, end);
    }
}

#[inline(always)]
fn translated(digest: &mut Digest, frame: impl Octets, packet: &Packet) {
    let Packet { body, end, .. } = *packet;
    digest.mix(packet.id | packet.fragment << 32);
    digest.mix(u64::from(packet.behind));
    let payload = if packet.is(UDP, 8) {
        body + 8
    } else if packet.is(TCP, 20) {
        digest.part(frame, body + 4, body + 12);
        digest.mix(frame.byte(body + 13));
        let header = (frame.byte(body + 12) as u32 >> 4) * 4;
        if header < 20 {
            body + 20
        } else {
            body + header
        }
    } else if packet.is_icmp() {
        digest.mix(half(frame, body));
        digest.mix(half(frame, body + 6));
        body + 8
    } else {
        body
    };
    digest.range(frame, payload, end);
}

#[inline(always)]
fn echoed(digest: &mut Digest, frame: impl Octets, packet: &Packet) -> Option<()> {
    let Packet { ip, body, end, .. } = *packet;
    if packet.fragment != 0 {
        return None;
    }
    // Each end with its port: who talks to whom, whichever way round.
    let (mut one, mut other) = (Digest(1), Digest(1));
    if packet.is_v6 {
        one.mix(frame.word(ip + 8));
        one.mix(frame.word(ip + 16));
        other.mix(frame.word(ip + 24));
        other.mix(frame.word(ip + 32));
    } else {
        let both = frame.word(ip + 12);
        one.mix(both & 0xffff_ffff);
        other.mix(both >> 32);
    }
    if packet.is(UDP, 8) {
        one.mix(half(frame, body));
        other.mix(half(frame, body + 2));
    } else if packet.is_icmp() && is_echo(frame.byte(body), packet.is_v6) {
        digest.part(frame, body + 4, body + 8);
    } else {
        return None;
    }
    digest.either_way(one.0, other.0);
    digest.mix(u64::from(packet.behind));
    digest.range(frame, body + 8, end);
    Some(())
}

/// Echo and echo reply (RFC 792, RFC 4443).
#[inline(always)]
fn is_echo(kind: u64, is_v6: bool) -> bool {
    if is_v6 {
        kind == 128 || kind == 129
    } else {
        kind == 0 || kind == 8
    }
}

/// Two bytes in network byte order.
#[inline(always)]
fn half(frame: impl Octets, at: u32) -> u64 {
    frame.byte(at) << 8 | frame.byte(at + 1)
}

/// A digest of words. Not against somebody who looks for two packets with one key.
struct Digest(u64);

impl Digest {
    #[inline(always)]
    fn new(of: KeyOf, first: u64) -> Self {
        let mut digest = Self(FACTOR.wrapping_mul(of as u64 + 1));
        digest.mix(first);
        digest
    }

    #[inline(always)]
    fn mix(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(FACTOR);
        self.0 = product ^ product >> 32;
    }

    /// The same for both orders of two words.
    #[inline(always)]
    fn either_way(&mut self, one: u64, other: u64) {
        self.mix(one.min(other));
        self.mix(one.max(other));
    }

    /// Up to eight bytes, from `from` to `to`; nothing if there are none.
    #[inline(always)]
    fn part(&mut self, frame: impl Octets, from: u32, to: u32) {
        if from >= to {
            return;
        }
        let bytes = to - from;
        let word = frame.word(from);
        self.mix(if bytes >= 8 {
            word
        } else {
            word & ((1 << (8 * bytes)) - 1)
        });
    }

    /// All bytes from `from` to `to`.
    #[inline(always)]
    fn range(&mut self, frame: impl Octets, from: u32, to: u32) {
        self.0 = frame.digest(self.0, from, to);
    }

    /// Spreads what went in over all bits (the finaliser of MurmurHash3).
    #[inline(always)]
    fn key(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ mixed >> 33
    }
}

/// A digest of what has the digest `seed` and of the bytes from `from` to `to`, and of how many
/// these are.
#[inline(always)]
pub fn digest(frame: impl Octets, seed: u64, from: u32, to: u32) -> u64 {
    let mut lanes = [Digest(seed), Digest(!seed), Digest(1), Digest(2)];
    let mut at = frame.opaque(from);
    let end = frame.opaque(to);
    let mut chunk = 0;
    // Counted by a constant, so that the verifier knows that it ends.
    while chunk < MOST_BYTES / CHUNK && at + CHUNK <= end {
        lanes[0].mix(frame.word(at));
        lanes[1].mix(frame.word(at + 8));
        lanes[2].mix(frame.word(at + 16));
        lanes[3].mix(frame.word(at + 24));
        at += CHUNK;
        chunk += 1;
    }
    let (at, end) = (frame.opaque(at), frame.opaque(end));
    let mut all = Digest(seed);
    let [first, second, third, fourth] = lanes;
    all.mix(first.0);
    all.mix(second.0);
    all.mix(third.0);
    all.mix(fourth.0);
    let mut word = 0;
    while word < CHUNK / 8 {
        all.part(frame, at + 8 * word, end);
        word += 1;
    }
    all.mix(u64::from(to.wrapping_sub(from)));
    all.0
}

/// The bytes of a slice, with zeros behind its end.
impl Octets for &[u8] {
    #[inline]
    fn byte(self, at: u32) -> u64 {
        self.get(at as usize).map_or(0, |byte| u64::from(*byte))
    }

    #[inline]
    fn word(self, at: u32) -> u64 {
        let rest = self.get(at as usize..).unwrap_or_default();
        match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }
}

#[cfg(test)]
mod tests;
