use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;

use super::*;
use tscap_clock::scripted::Host;
use tscap_clock::{CrossTimestamp, Observation, RawStamp, StampSource, Tracker};

const GAPS: [u64; 3] = [20, 40, 20];
const EVERY: u64 = 10_000_000;

/// A host whose clocks nobody touches.
struct Script {
    host: Host,
    next: u64,
}

impl Reference for Script {
    fn read(&mut self) -> CrossTimestamp {
        self.next += EVERY;
        self.host.cross(self.next, GAPS)
    }
}

/// A page that says nothing but that the counter was disrupted so often.
fn page(marker: u64) -> Vec<u8> {
    let mut octets = vec![0; 4096];
    octets[..4].copy_from_slice(b"VCLK");
    octets[8] = 1;
    octets[16..24].copy_from_slice(&marker.to_le_bytes());
    octets
}

/// The counter shows no jump: without the hypervisor's word nobody would know.
#[test]
fn stamps_of_a_disruption_are_ambiguous_whatever_the_clocks_show() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vmclock0");
    fs::write(&path, page(1)).unwrap();
    let device = OpenOptions::new().write(true).open(&path).unwrap();
    for source in [StampSource::Ktime, StampSource::Tsc] {
        for is_disrupted in [false, true] {
            let host = Host {
                hertz: 2_000_000_000,
                slews: vec![],
            };
            let mut tracker = Tracker::new(source, &host.cross(0, GAPS)).unwrap();
            let script = Script { host, next: 0 };
            let mut clocks = Watched::new(script, DisruptionWatch::open(&path));
            for _ in 0..100 {
                assert_eq!(tracker.look(&mut clocks).1, Observation::Agrees);
            }
            let (before, _) = tracker.look(&mut clocks);
            let marker = 1 + u64::from(is_disrupted);
            device.write_all_at(&marker.to_le_bytes(), 16).unwrap();
            let (after, seen) = tracker.look(&mut clocks);
            assert_eq!(seen, Observation::Agrees);
            let stamp = |at: &CrossTimestamp| match source {
                StampSource::Tsc => at.tsc.unwrap()[1].0,
                _ => at.mono[1].0,
            };
            let between = RawStamp(stamp(&before).midpoint(stamp(&after)));
            let conversion = tracker.convert();
            assert_eq!(conversion.is_ambiguous(between), is_disrupted, "{source:?}");
            // It is told once.
            for _ in 0..10 {
                tracker.look(&mut clocks);
            }
            let (last, _) = tracker.look(&mut clocks);
            assert!(!tracker.convert().is_ambiguous(RawStamp(stamp(&last) - 100)));
            device.write_all_at(&1_u64.to_le_bytes(), 16).unwrap();
        }
    }
}
