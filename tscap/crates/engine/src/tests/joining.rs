//! Interfaces that join: their frames wait in the rings until they are described.

use super::*;

const JOINED: Slot = Slot::of(1, Direction::Out);

fn joined() -> InterfaceInfo {
    InterfaceInfo {
        name: "test1".into(),
        ..interface()
    }
}

impl Bench {
    fn push_of(&mut self, slot: Slot, ring: usize, mono: u64) {
        let pushed = self.producers[ring].push(slot, RawStamp(mono), &[0xa5; 60]);
        assert!(pushed, "the test's ring is large enough");
    }

    fn drain_at(&mut self, mono: u64) {
        self.script.set(mono, EPOCH);
        self.converter.drain();
    }

    /// The interfaces described and the interfaces of packets, in the file's order.
    fn order(&self) -> Vec<String> {
        let file = self.file();
        let blocks = PcapNgReader::new(&file[..]).unwrap();
        let reported = blocks.into_iter().filter_map(|block| match block.unwrap() {
            FileBlock::InterfaceDescription(_) => Some("described".into()),
            FileBlock::EnhancedPacket(packet) => Some(packet.interface_id.to_string()),
            _ => None,
        });
        reported.collect()
    }
}

#[test]
fn frames_wait_until_their_interface_is_described() {
    for rings in 1..=2 {
        let mut bench = unlimited(rings);
        let last = rings as usize - 1;
        bench.shared.announce(1);
        bench.push(0, 900_000, 60);
        bench.push_of(JOINED, last, 900_010);
        bench.push(0, 900_020, 60);
        bench.drain_at(2_000_000);
        assert_eq!(bench.order(), ["described", "0"]);
        // Nor are they taken later, or twice.
        bench.drain_at(3_000_000);
        assert_eq!(bench.order(), ["described", "0"]);
        bench.shared.describe(joined());
        bench.push_of(JOINED, last, 3_900_000);
        bench.drain_at(4_000_000);
        let expected = ["described", "0", "described", "1", "0", "1"];
        assert_eq!(bench.order(), expected, "{rings} rings");
        assert!(bench.events().is_empty());
        let finished = bench.finish();
        assert_eq!(finished.order(), StampOrder::default());
        let written = |index: usize| finished.finisher.counts[index].sum().written;
        assert_eq!([written(0), written(1)], [2, 2]);
    }
}

#[test]
fn a_frame_of_an_interface_that_nobody_announced_is_a_fault() {
    let next = Slot::of(2, Direction::In);
    for (announced, slot) in [(None, JOINED), (Some(1), next)] {
        let mut bench = unlimited(1);
        if let Some(number) = announced {
            bench.shared.announce(number);
        }
        bench.push_of(slot, 0, 900_000);
        bench.push(0, 900_010, 60);
        bench.drain_at(2_000_000);
        assert!(
            matches!(bench.events()[..], [Event::Corrupt(_)]),
            "{slot:?}"
        );
        assert_eq!(bench.order(), ["described"]);
    }
}

/// At the end all are described; a frame of one that is not is waited for no more.
#[test]
fn the_end_does_not_wait() {
    let mut bench = unlimited(1);
    bench.shared.announce(1);
    bench.push_of(JOINED, 0, 900_000);
    bench.drain_at(2_000_000);
    assert!(bench.events().is_empty());
    bench.shared.request_stop();
    bench.converter.drain_all();
    assert!(matches!(bench.events()[..], [Event::Corrupt(_)]));
    assert!(!bench.converter.drain_all(), "the rings are empty");
}

#[test]
fn a_broken_output_accounts_for_joined_frames_too() {
    let mut bench = bench(1, None, 10, io::ErrorKind::StorageFull);
    bench.push(0, 900_000, 60);
    bench.drain_at(2_000_000);
    bench.shared.announce(1);
    bench.shared.describe(joined());
    bench.push_of(JOINED, 0, 2_900_000);
    bench.drain_at(3_000_000);
    let totals = bench
        .finish()
        .totals(Directed::by(|_| 1), &Observed::default());
    for direction in Direction::ALL {
        assert!(totals[direction].add_up(), "{totals:?}");
        assert_eq!(totals[direction].outcomes[Outcome::WriteFailed], 1);
    }
}
