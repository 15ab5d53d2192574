//! What a copy without some of the packets says of them: they were filtered.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use tscap_clock::{MonoNs, RawStamp, RealNs, StampPath, StampSource, Tracker};
use tscap_file::accounting::{
    Counts, Directed, Direction, InterfaceCounts, Observed, Outcome, Outcomes, StampOrder, Totals,
    Written,
};
use tscap_file::pcapng::{
    FileWriter, Hooks, InterfaceInfo, InterfaceOption, SectionInfo, StampOption,
};
use tscap_filter::LinkType;
use tscap_testkit::recording::{Packet, Recording, Statistics};

use super::filter::byte_14_is;
use super::script::{LENGTH, MS, convert, file, packet, refuses_with, slewed, with_flags};

/// A capture of two interfaces at work. On the first one a filter of its own rejected 5
/// frames for each that it took, and the ring lost 2 in each direction.
struct Script {
    file: FileWriter,
    tracker: Tracker,
    bytes: Vec<u8>,
    written: [Directed<u64>; 2],
}

impl Script {
    fn new() -> Self {
        Self::with(&Hooks::default())
    }

    fn with(hooks: &Hooks) -> Self {
        let section = SectionInfo {
            hardware: "a script".into(),
            os: "Linux".into(),
            application: "tscap".into(),
            part: None,
        };
        let interfaces = [("lan", Some("not arp")), ("wan", None)].map(|(name, filter)| {
            let stamp = StampOption::new(StampPath::Ktime);
            InterfaceInfo {
                name: name.into(),
                description: None,
                link_type: LinkType::Ethernet,
                mac: None,
                speed: None,
                snaplen: 96,
                filter: filter.map(Into::into),
                os: "Linux".into(),
                tscap: InterfaceOption::new(hooks.clone(), stamp, Default::default()),
            }
        });
        let mut file = FileWriter::new(&section, &interfaces, RealNs(0)).unwrap();
        let cross = slewed().cross(0, [15, 35, 15]);
        let mut tracker = Tracker::new(StampSource::Ktime, &cross).unwrap();
        tracker.observe(&slewed().cross(10 * MS, [15, 35, 15]));
        Self {
            bytes: file.take(),
            file,
            tracker,
            written: Default::default(),
        }
    }

    /// Another file of the same capture.
    fn next_file(&mut self) {
        self.file = self.file.next(RealNs(1), self.counts()).unwrap();
        self.bytes.extend(self.file.take());
    }

    /// `frames` that an interface received, of which every third has 7 in byte 14. As in
    /// captures of early versions they have no flags.
    fn frames(&mut self, interface: u32, frames: u64) {
        self.packets(interface, Direction::In, frames, <[u8]>::to_vec);
    }

    /// The same that it sent.
    fn sent(&mut self, interface: u32, frames: u64) {
        let flags = Direction::Out.epb_flags();
        self.packets(interface, Direction::Out, frames, |it| {
            with_flags(it, flags)
        });
    }

    fn packets(
        &mut self,
        interface: u32,
        direction: Direction,
        frames: u64,
        made: impl Fn(&[u8]) -> Vec<u8>,
    ) {
        for _ in 0..frames {
            let number = &mut self.written[interface as usize][direction];
            let mut block = packet(RawStamp(*number), *number, true);
            block[8..12].copy_from_slice(&interface.to_ne_bytes());
            block[28 + 14] = 7 + (*number % 3) as u8;
            *number += 1;
            self.bytes.extend(made(&block));
        }
    }

    fn counts(&self) -> Counts {
        let losses = Directed::by(|direction| -> Outcomes {
            let filtered = 5 * self.written[0][direction];
            [(Outcome::Filtered, filtered), (Outcome::RingFull, 2)].into()
        });
        let interface = |losses| InterfaceCounts {
            losses,
            ifdrop: Some(1),
            own: None,
            is_gone: false,
        };
        Counts {
            written: self
                .written
                .map(|written| {
                    Directed::by(|direction| Written {
                        written: written[direction],
                        ..Written::default()
                    })
                })
                .into(),
            observed: Observed {
                interfaces: vec![interface(losses), interface(Directed::default())],
                ..Observed::default()
            },
            ..Counts::default()
        }
    }

    fn totals(&self) -> Directed<Totals> {
        let counts = self.counts();
        let losses = counts.observed.interfaces[0].losses;
        let seen = Directed::by(|direction| {
            let written = self.written.iter().map(|written| written[direction]);
            written.sum::<u64>() + losses[direction].total()
        });
        counts.totals(seen)
    }

    fn statistics(&mut self, totals: Option<Directed<Totals>>) {
        let (counts, order) = (self.counts(), StampOrder::default());
        let at = MonoNs(LENGTH);
        let blocks = self
            .file
            .statistics(&mut self.tracker, at, &counts, order, totals.as_ref());
        self.bytes.extend(blocks.unwrap());
    }
}

/// The statistics of the file and of its copy with the frames whose byte 14 is 7.
fn both(folder: &TempDir, bytes: &[u8]) -> [Recording; 2] {
    let filter = byte_14_is(folder, 7);
    let path = folder.path().join("out.pcapng");
    let more = ["--filter-bytecode", filter.to_str().unwrap()];
    let input = file(folder, bytes);
    let output = convert(&input, &path, &more);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    [&input, &path].map(|path| Recording::read(path))
}

fn sum(outcomes: &Value) -> u64 {
    let outcomes = outcomes.as_object().expect("an object");
    outcomes.values().map(|count| count.as_u64().unwrap()).sum()
}

/// Whether a block's numbers agree, with each other and with the packets before it.
#[track_caller]
fn is_true(recording: &Recording, it: &Statistics, before: usize) {
    let written = recording.packets[before..it.after].iter();
    let written = written
        .filter(|packet| packet.interface == it.interface)
        .count() as u64;
    assert_eq!(it.delivered, Some(written));
    let outcomes = &it.custom["outcomes"];
    assert_eq!(it.received, Some(written + sum(outcomes)));
    let filtered = outcomes["filtered"].as_u64().unwrap();
    assert_eq!(it.filter_accepted.map(|it| it + filtered), it.received);
}

#[test]
fn frames_left_out_are_counted_as_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::new();
    script.frames(0, 10);
    script.statistics(None);
    script.frames(1, 30);
    script.frames(0, 11);
    script.statistics(Some(script.totals()));
    let [input, copy] = both(&folder, &script.bytes);
    assert_eq!((input.packets.len(), copy.packets.len()), (51, 17));
    assert_eq!(copy.statistics.len(), 4);
    for (before, it) in input.statistics.iter().zip(&copy.statistics) {
        is_true(&copy, it, 0);
        assert_eq!(before.received, it.received);
        assert_eq!((before.os_drop, before.if_drop), (it.os_drop, it.if_drop));
        assert_eq!((before.nanos, before.end), (it.nanos, it.end));
        assert_eq!(before.custom["clock"], it.custom["clock"]);
        let ring_full = |it: &Statistics| it.custom["outcomes"]["ring_full"].clone();
        assert_eq!(ring_full(before), ring_full(it));
        let (old, new) = (&before.custom["totals"], &it.custom["totals"]);
        assert_eq!(old["seen"], new["seen"]);
        if it.after == 17 {
            assert_eq!((&old["written"], &new["written"]), (&51.into(), &17.into()));
            assert_eq!(17 + sum(&new["outcomes"]), new["seen"].as_u64().unwrap());
            assert_eq!(new["outcomes"]["filtered"], 5 * 21 + 34);
        }
    }
    let filters =
        |it: &Recording| -> Vec<_> { it.interfaces.iter().map(|it| it.filter.clone()).collect() };
    let filter = folder.path().join("filter.bpf");
    let filter = filter.display();
    assert_eq!(filters(&input), [Some("not arp".into()), None]);
    assert_eq!(
        filters(&copy),
        [
            Some(format!("(not arp) and ({filter})")),
            Some(filter.to_string())
        ]
    );
}

#[test]
fn frames_left_out_are_of_their_direction() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::with(&Hooks {
        received: Some("native XDP".into()),
        sent: Some("tcx egress".into()),
    });
    script.frames(0, 9);
    script.sent(0, 30);
    script.sent(1, 6);
    script.statistics(None);
    script.frames(1, 12);
    script.sent(0, 3);
    script.statistics(Some(script.totals()));
    let [input, copy] = both(&folder, &script.bytes);
    assert_eq!((input.packets.len(), copy.packets.len()), (60, 20));
    let adds_up = |totals: &Value, seen: &Value, written: usize| {
        assert_eq!(totals["written"], written);
        assert_eq!(totals["seen"], *seen);
        assert_eq!(*seen, written as u64 + sum(&totals["outcomes"]));
    };
    for (before, it) in input.statistics.iter().zip(&copy.statistics) {
        is_true(&copy, it, 0);
        let is_sent = |packet: &&Packet| packet.flags == Some(2);
        let sent = copy.packets[..it.after].iter().filter(is_sent);
        let of_it = sent
            .clone()
            .filter(|packet| packet.interface == it.interface);
        let seen = &before.custom["sent"]["seen"];
        adds_up(&it.custom["sent"], seen, of_it.count());
        if it.after == 20 {
            let (old, new) = (&before.custom, &it.custom);
            adds_up(&new["totals"], &old["totals"]["seen"], 20);
            adds_up(&new["totals_sent"], &old["totals_sent"]["seen"], 13);
            assert_eq!(new["totals_sent"]["outcomes"]["filtered"], 5 * 33 + 26);
        }
    }
}

#[test]
fn packets_of_other_programs_are_not_of_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::new();
    let block =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
    script.bytes.extend(block(&[1, 20, 1, 96, 20]));
    for _ in 0..9 {
        let mut foreign = packet(RawStamp(1), 1, false);
        foreign[8..12].copy_from_slice(&2u32.to_ne_bytes());
        script.bytes.extend(foreign);
    }
    // isb_usrdeliv is 9.
    let statistics = block(&[5, 40, 2, 0, 0, 8 | 8 << 16, 9, 0, 0, 40]);
    script.bytes.extend(&statistics);
    script.frames(0, 3);
    script.statistics(Some(script.totals()));
    let [_, copy] = both(&folder, &script.bytes);
    assert_eq!(copy.packets.len(), 1);
    assert_eq!(
        copy.statistics.last().unwrap().custom["totals"]["written"],
        1
    );
    let bytes = fs::read(folder.path().join("out.pcapng")).unwrap();
    assert!(bytes.windows(statistics.len()).any(|it| it == statistics));
}

/// The numbers stand in the JSON of an early version, and of a later one.
#[test]
fn the_rest_of_the_statistics_stays_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::new();
    script.frames(1, 3);
    script.statistics(Some(script.totals()));
    let edit = |bytes: &[u8], from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let mut bytes = bytes.to_vec();
        let places: Vec<_> = (0..bytes.len() - from.len())
            .filter(|at| bytes[*at..].starts_with(from.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "{from}");
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        bytes
    };
    // Two names that nobody knows, the one in the place of "filtered".
    let renamed = edit(&script.bytes, "\"filtered\"", "\"unheard1\"");
    let renamed = edit(&renamed, "\"segments_left_out\"", "\"segments_of_2030s\"");
    let [input, copy] = both(&folder, &renamed);
    for (before, it) in input.statistics.iter().zip(&copy.statistics) {
        let left_out = if it.interface == 1 { 2 } else { 0 };
        let mut wanted = before.custom.clone();
        wanted["outcomes"]["filtered"] = left_out.into();
        wanted["totals"]["outcomes"]["filtered"] = 2.into();
        wanted["totals"]["written"] = 1.into();
        assert_eq!(it.custom, wanted);
    }
    let text = fs::read(folder.path().join("out.pcapng")).unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains(r#""outcomes":{"filtered":2,"ring_full":0,"#),
        "{text}"
    );
}

/// Files of one capture share its account, captures do not.
#[test]
fn each_capture_of_a_joined_file_has_its_own_account() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Script::new();
    first.frames(0, 30);
    first.statistics(None);
    first.next_file();
    first.frames(1, 60);
    first.statistics(Some(first.totals()));
    let mut second = Script::new();
    second.frames(1, 90);
    second.statistics(Some(second.totals()));
    let bytes = [&first.bytes[..], &second.bytes].concat();
    let filter = byte_14_is(&folder, 7);
    let path = folder.path().join("out.pcapng");
    let more = ["--filter-bytecode", filter.to_str().unwrap()];
    let output = convert(&file(&folder, &bytes), &path, &more);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let copy = fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&copy);
    let written = text.split("\"written\":").skip(1).map(|rest| {
        let number = rest.split(',').next().unwrap();
        number.parse().unwrap()
    });
    // Of each interface's last block.
    assert_eq!(written.collect::<Vec<u64>>(), [30, 30, 30, 30]);
}

#[test]
fn an_account_that_can_not_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let filter = byte_14_is(&folder, 7);
    let more = ["--filter-bytecode", filter.to_str().unwrap()];
    let mut script = Script::new();
    script.frames(0, 10);
    script.written[0] = Directed::received(5);
    script.statistics(None);
    refuses_with(
        &folder,
        &script.bytes,
        &more,
        &[
            "cannot convert",
            "fewer packets written than",
            "hint: the file is damaged",
        ],
    );
    // Two accounts in one section, as in merged files.
    let mut script = Script::new();
    script.frames(0, 10);
    script.statistics(Some(script.totals()));
    script.frames(0, 10);
    script.statistics(Some(script.totals()));
    refuses_with(
        &folder,
        &script.bytes,
        &more,
        &["the accounts of several captures", "hint: convert each"],
    );
}
