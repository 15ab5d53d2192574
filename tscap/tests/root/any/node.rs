//! A namespace with interfaces that are made and removed while a capture runs.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tscap::Summary;
use tscap_file::accounting::Direction;
use tscap_testkit::frame::Frame;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;

pub const PROGRAMS: [&str; 3] = ["ip", "ethtool", "capinfos"];
/// Bytes of each frame.
const SIZE: usize = 100;

/// Where captures are, and where the other ends of its veth pairs are.
pub struct Node {
    pub here: Arc<Netns>,
    pub there: Arc<Netns>,
}

/// A veth pair, one end here.
pub struct Cable {
    pub here: Port,
    pub there: Port,
}

impl Node {
    pub fn new(tag: &str) -> Self {
        Self {
            here: Arc::new(Netns::new(tag)),
            there: Arc::new(Netns::new(&format!("{tag}-there"))),
        }
    }

    /// A pair whose end here is `name` and down; the other one is up.
    pub fn plug(&self, name: &str) -> Cable {
        let other = format!("{name}x");
        let make = ["link", "add", name, "type", "veth", "peer", "name", &other];
        self.here
            .ip(&[&make[..], &["netns", self.there.name()]].concat());
        let cable = Cable {
            here: Port::find(&self.here, name),
            there: Port::find(&self.there, &other),
        };
        cable.there.set(&["up"]);
        cable
    }

    /// The same with both ends up.
    pub fn cable(&self, name: &str) -> Cable {
        let cable = self.plug(name);
        cable.here.set(&["up"]);
        cable.here.wait_up();
        cable.there.wait_up();
        cable
    }
}

impl Cable {
    /// Sends `numbers` from there, and as many from here, those counted on by a billion.
    pub fn exchange(&self, numbers: std::ops::Range<u64>) {
        let on = |by: u64| numbers.start + by..numbers.end + by;
        send(&self.there, &self.here, on(0));
        send(&self.here, &self.there, on(SENT));
    }

    /// Deletes both ends.
    pub fn unplug(self) {
        self.here.netns.ip(&["link", "delete", &self.here.name]);
    }
}

/// Frames from here have their numbers from this one on.
pub const SENT: u64 = 1_000_000_000;

pub fn send(from: &Port, to: &Port, numbers: std::ops::Range<u64>) {
    let frame = Frame::new(from, to, SIZE);
    let frames: Vec<_> = numbers.map(|number| frame.bytes(number)).collect();
    PacketSocket::open(from).send_all(&frames);
}

/// The numbers of the frames of interface `index`, in the file's order.
pub fn numbers(recording: &Recording, index: usize) -> Vec<u64> {
    let frame = Frame::between([0; 6], [0; 6], SIZE);
    let packets = recording.packets_of(index);
    packets.map(|packet| frame.number(&packet.data)).collect()
}

/// Reads the file of a capture, and checks it against its account: frames, directions,
/// descriptions and the last statistics of each interface.
#[track_caller]
pub fn read(path: &Path, summary: &Summary) -> Recording {
    assert_eq!(peers::capinfos_count(path), summary.written);
    let recording = Recording::read(path);
    assert_eq!(recording.interfaces.len(), summary.interfaces.len());
    for (index, said) in summary.interfaces.iter().enumerate() {
        assert_eq!(recording.interfaces[index].name, said.name);
        let written = recording.packets_of(index).count() as u64;
        assert_eq!(written, said.written, "{}", said.name);
        let last = recording.last_statistics(index);
        assert_eq!(last.received, Some(said.seen), "{}", said.name);
    }
    let sent =
        |packet: &&tscap_testkit::recording::Packet| packet.flags.map(|it| it & 3) == Some(2);
    let sent = recording.packets.iter().filter(sent).count() as u64;
    let said = |way: Direction| {
        let way = if way == Direction::In { "in" } else { "out" };
        let mut of_it = summary.directions.iter().filter(|it| it.direction == way);
        of_it.next().map_or(0, |it| it.totals.written)
    };
    assert_eq!(said(Direction::Out), sent);
    assert_eq!(said(Direction::In), summary.written - sent);
    recording
}

/// Names of the interfaces of a `ready` event.
pub fn names(ready: &Value) -> Vec<&str> {
    let interfaces = ready["interfaces"].as_array().expect("interfaces");
    let names = interfaces.iter().map(|it| it["name"].as_str());
    names.collect::<Option<_>>().expect("names")
}
