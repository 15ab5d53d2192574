//! Sorts frames into streams and accounts for every one.

use std::collections::BTreeMap;

use tscap_common::stream::StreamHeader;

use super::delay::{Delays, Passage};
use super::frame::{Checksum, Content, Malformed, content};
use super::receive_clock::ReceiveClock;
use super::report::{Counts, InterfaceReport, StreamId, StreamReport, StreamSummary, VERSION};
use super::sequence::Sequence;
use tscap_file::pcapng::Packet;

/// How many frames of each flow were sent, where the caller knows.
pub type Sent = BTreeMap<StreamId, u64>;

/// An interface that frames come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Its name.
    pub name: Option<String>,
    /// Whether its frames are Ethernet; others are not looked into.
    pub is_ethernet: bool,
    /// Whether tscap stamped them.
    pub is_ours: bool,
    /// Step of its stamps, ns.
    pub resolution_ns: u64,
    /// The clock that stamped them.
    pub clock: ReceiveClock,
}

/// The streams of some interfaces so far. Memory, for each flow of a run on an
/// interface: about 1 kB to begin with; a bit a frame where its numbers are dense
/// and some 50 bytes where each stands alone; 24 bytes a gap, up to 0.4 MB; three
/// times 8 bytes a frame up to 4,096 frames, then about 0.2 MB in all with delays
/// under 1 ms, 1.3 MB at most. As many flows as the frames name.
#[derive(Debug)]
pub struct Streams {
    interfaces: Vec<Interface>,
}

#[derive(Debug)]
struct Interface {
    source: Source,
    counts: Counts,
    streams: BTreeMap<StreamId, Stream>,
}

#[derive(Debug)]
struct Stream {
    sequence: Sequence,
    delays: Delays,
}

impl Streams {
    /// Of these interfaces.
    pub fn new(sources: impl IntoIterator<Item = Source>) -> Self {
        let interfaces = sources.into_iter().map(|source| Interface {
            source,
            counts: Counts::default(),
            streams: BTreeMap::new(),
        });
        Self {
            interfaces: interfaces.collect(),
        }
    }

    /// Takes in a frame, in order of arrival.
    ///
    /// # Panics
    /// If it comes from an interface that was not given.
    pub fn add(&mut self, packet: &Packet) {
        self.interfaces[packet.interface as usize].add(packet);
    }

    /// The figures. A flow of which `sent` says the number, and of which nothing
    /// came, is reported for each interface that has frames of its run, or else
    /// for all.
    pub fn report(mut self, sent: &Sent) -> StreamReport {
        for id in sent.keys() {
            let has_run =
                |interface: &Interface| interface.streams.keys().any(|has| has.run == id.run);
            let is_nowhere = !self.interfaces.iter().any(has_run);
            for interface in &mut self.interfaces {
                if is_nowhere || has_run(interface) {
                    interface.streams.entry(*id).or_insert_with(Stream::new);
                }
            }
        }
        let interfaces = self.interfaces.into_iter();
        StreamReport {
            v: VERSION,
            interfaces: interfaces.map(|interface| interface.report(sent)).collect(),
            is_whole: true,
            warnings: Vec::new(),
        }
    }
}

impl Interface {
    fn add(&mut self, packet: &Packet) {
        self.counts.frames += 1;
        let content = if self.source.is_ethernet {
            content(&packet.data, packet.origlen)
        } else {
            Content::Other
        };
        match content {
            Content::Stream(header, checksum) => {
                self.counts.streams += 1;
                match checksum {
                    Checksum::Right => self.counts.checksum_right += 1,
                    Checksum::Absent => self.counts.checksum_absent += 1,
                    Checksum::Unknown => self.counts.checksum_unknown += 1,
                }
                self.add_to_stream(header, packet);
            }
            Content::Other => self.counts.others += 1,
            Content::Malformed(malformed) => {
                self.counts.malformed += 1;
                match malformed {
                    Malformed::Cut => self.counts.cut += 1,
                    Malformed::Length => self.counts.length_wrong += 1,
                    Malformed::Checksum => self.counts.checksum_wrong += 1,
                    Malformed::Port => self.counts.port_wrong += 1,
                }
            }
        }
    }

    fn add_to_stream(&mut self, header: StreamHeader, packet: &Packet) {
        let id = StreamId {
            run: header.run,
            flow: header.flow,
        };
        let stream = self.streams.entry(id).or_insert_with(Stream::new);
        if let Some(number) = stream.sequence.add(header.seq) {
            let passage = Passage {
                sent: header,
                received: packet.time,
                raw: packet.raw,
            };
            stream.delays.add(number, passage, &self.source.clock);
        }
    }

    fn report(self, sent: &Sent) -> InterfaceReport {
        let streams = self.streams.into_iter().map(|(id, stream)| {
            let (loss, reordering) = stream.sequence.report(sent.get(&id).copied());
            StreamSummary {
                id,
                loss,
                reordering,
                delay: stream.delays.report(&self.source.clock),
            }
        });
        InterfaceReport {
            name: self.source.name,
            counts: self.counts,
            stamp_resolution_ns: self.source.resolution_ns,
            delay_basis: self.source.clock.delay_basis(self.source.is_ours),
            streams: streams.collect(),
        }
    }
}

impl Stream {
    fn new() -> Self {
        Self {
            sequence: Sequence::new(),
            delays: Delays::new(),
        }
    }
}
