//! Files that are written past the page cache.

use std::fs::File;
use std::path::Path;

use super::*;

const RING_BYTES: usize = 1 << 20;
/// Longer than bytes may wait, ns.
const LONG: u64 = 200_000_000;

/// What happens in a capture.
#[derive(Clone, Debug)]
enum Happening {
    /// So many frames of this length come in on a ring.
    Frames(usize, usize, usize),
    Drain,
    /// Nothing, for longer than bytes may wait.
    Pause,
    /// Statistics go into the file.
    Statistics,
    /// Frames pile up: the next write may go by way of the page cache.
    Behind,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let frames = (
        0usize..2,
        1usize..300,
        prop::sample::select(vec![14, 60, 61, 700, 1500, 9000]),
    );
    let happening = prop_oneof![
        4 => frames.prop_map(|(ring, count, length)| Happening::Frames(ring, count, length)),
        4 => Just(Happening::Drain),
        1 => Just(Happening::Pause),
        1 => Just(Happening::Statistics),
        1 => Just(Happening::Behind),
    ];
    prop::collection::vec(happening, 1..60)
}

struct Direct {
    bench: Bench,
    mono: u64,
    pushed: u64,
}

impl Direct {
    fn new(path: &Path, rings: u32, output: impl FnOnce(File) -> Output) -> Self {
        let file = File::options().append(true).create_new(true).open(path);
        let source = StampSource::Ktime;
        let bench = bench_with(source, (rings, RING_BYTES), None, |_| output(file.unwrap()));
        Self {
            bench,
            mono: 2_000_000,
            pushed: 0,
        }
    }

    fn push(&mut self, ring: usize, count: usize, length: usize) {
        let ring = ring % self.bench.producers.len();
        for _ in 0..count {
            // Of all rings in order, and in none too many.
            self.mono += 10;
            let frame = vec![self.pushed as u8; length];
            let stamp = RawStamp(self.mono);
            if !self.bench.producers[ring].push(SLOT, stamp, &frame) {
                self.drain();
                assert!(self.bench.producers[ring].push(SLOT, stamp, &frame));
            }
            self.pushed += 1;
        }
    }

    fn drain(&mut self) {
        self.mono += 1_000_000;
        self.bench.script.set(self.mono, EPOCH);
        self.bench.converter.drain();
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Frames(ring, count, length) => self.push(*ring, *count, *length),
            Happening::Drain => self.drain(),
            Happening::Pause => {
                self.drain();
                self.mono += LONG;
                self.drain();
            }
            Happening::Statistics => {
                self.bench.converter.files.statistics_every = std::time::Duration::ZERO;
                self.drain();
                self.bench.converter.files.statistics_every = STATISTICS_EVERY;
            }
            Happening::Behind => {
                self.bench.converter.writer.output.set_behind(true);
                self.bench.converter.rings.drain_all(
                    &self.bench.converter.tracker.conversion(),
                    &mut self.bench.converter.writer,
                );
            }
        }
    }

    /// Ends the capture, whose account must add up.
    fn end(mut self) -> Finished {
        self.mono += 1_000_000;
        self.bench.script.set(self.mono, EPOCH);
        while self.bench.converter.drain_all() {}
        assert_eq!(self.bench.events().len(), 0);
        let mut finished = self.bench.converter.into_finished();
        let totals = of_each(&finished, self.pushed);
        assert!(totals.sum().add_up(), "{totals:?}");
        assert_eq!(totals.sum().written, self.pushed);
        let observed = Observed::default();
        finished
            .write_last_statistics(MonoNs(self.mono), &observed, &totals)
            .unwrap();
        finished
    }
}

/// Time and bytes of each packet of a file.
fn packets(path: &Path) -> Vec<(u128, Vec<u8>)> {
    let blocks = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let packets = blocks.into_iter().filter_map(|block| match block.unwrap() {
        FileBlock::EnhancedPacket(packet) => {
            Some((packet.timestamp.as_nanos(), packet.data.into_owned()))
        }
        _ => None,
    });
    packets.collect()
}

fn run(path: &Path, rings: u32, happenings: &[Happening], direct: bool) {
    let mut capture = Direct::new(path, rings, |file| {
        if direct {
            Output::direct(file)
        } else {
            Output::regular(file, Io::Buffered).unwrap()
        }
    });
    for happening in happenings {
        capture.happen(happening);
    }
    let finished = capture.end();
    let length = finished.output.length();
    finished.output.close().unwrap();
    assert_eq!(path.metadata().unwrap().len(), length);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever happens, a file that is written direct holds what one does that is not.
    #[test]
    fn both_ways_write_the_same_packets(happenings in happenings(), rings in 1u32..3) {
        let folder = tempfile::tempdir().unwrap();
        let [direct, buffered] = ["direct", "buffered"].map(|name| folder.path().join(name));
        run(&direct, rings, &happenings, true);
        run(&buffered, rings, &happenings, false);
        prop_assert_eq!(packets(&direct), packets(&buffered));
    }
}

#[test]
fn frames_of_one_ring_are_written_from_where_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut capture = Direct::new(&path, 1, Output::direct);
    for _ in 0..50 {
        capture.push(0, 300, 1500);
        capture.drain();
        let output = &capture.bench.converter.writer.output;
        assert!(output.is_next_aligned(), "also where the ring begins anew");
        // Few frames wait after its end; else no more than a part of a disk's block.
        assert!(output.waiting() < 256 * 1024);
    }
    // Also behind statistics, whose length is padded.
    capture.happen(&Happening::Statistics);
    capture.push(0, 300, 1500);
    capture.drain();
    assert!(capture.bench.converter.writer.output.is_next_aligned());
    capture.end().output.close().unwrap();
    assert_eq!(packets(&path).len(), 51 * 300);
}

#[test]
fn what_waits_too_long_is_in_the_file_and_the_file_is_readable_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut capture = Direct::new(&path, 1, Output::direct);
    assert_eq!(packets(&path).len(), 0, "headers are there at once");
    for round in 1..20 {
        capture.push(0, round, 700);
        capture.drain();
        capture.mono += LONG;
        capture.drain();
        assert_eq!(packets(&path).len() as u64, capture.pushed);
    }
    capture.end();
}

#[test]
fn what_others_cut_off_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut capture = Direct::new(&path, 1, Output::direct);
    capture.push(0, 300, 1500);
    capture.drain();
    File::create(&path).unwrap();
    capture.push(0, 300, 1500);
    capture.drain();
    let error = capture.end().output.close().unwrap_err();
    assert!(
        matches!(error, CloseError::Changed { found: 0, .. }),
        "{error}"
    );
}
