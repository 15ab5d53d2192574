//! `tscap clock --log` beside the capture, with a PTP hardware clock where there is one.

use tscap_clock::{History, StampSource, TscCycles};
use tscap_references::log::Recorder;

use super::capture::first_brackets;
use super::device::{Device, Look};
use super::events::Class;
use super::host::Host;
use super::reader::Reader;
use super::scenario::{MS, S, Scenario};

const READ_EVERY: u64 = 10 * MS;
/// Between two looks at a device.
const LOOK_EVERY: u64 = 100 * MS;

/// What it knew in the end; what each look at the device said.
#[derive(Debug)]
pub struct Logged {
    pub history: History,
    pub looks: Vec<Look>,
}

/// Runs it; `None` if its clock did not settle.
pub fn log(scenario: &Scenario, host: &Host) -> Option<Logged> {
    let mut random = scenario.random.clone();
    let seed = random.u64(..) ^ 0x5bd1;
    let mut reader = Reader::new(
        host,
        StampSource::Tsc,
        scenario.noise,
        seed,
        &scenario.storms,
        scenario.reads_offset,
    );
    reader.sleep_until(31 * MS);
    let mut tracker = first_brackets(StampSource::Tsc, &mut reader)?;
    let mut recorder = Recorder::default();
    let mut history = History::new(scenario.source);
    let is_set = scenario.class == Class::PtpSet;
    let is_steered = scenario.class == Class::PtpSteered || is_set && random.bool();
    let steered_until = is_steered.then_some(scenario.machine.length_ns);
    let set = is_set.then_some((S, scenario.end()));
    let mut device = scenario
        .has_device
        .then(|| Device::new(host, &mut random, steered_until, set));
    let mut looks = Vec::new();
    let started = reader.now_ns;
    let (mut entry_at, mut look_at) = (started, started);
    while reader.now_ns < scenario.end() {
        let wake = reader.now_ns + READ_EVERY + random.u64(0..100_000);
        reader.sleep_until(wake);
        let cross = tracker.read(&mut reader);
        let seen = tracker.observe(&cross);
        recorder.observe(&cross, seen, &tracker);
        let is_last = reader.now_ns >= scenario.end();
        if reader.now_ns >= entry_at || is_last {
            entry_at = reader.now_ns + ((reader.now_ns - started) / 10).clamp(S, 10 * S);
            let tsc = TscCycles(reader.next(0).tsc());
            if let Some(entry) = recorder.entry(&mut tracker, tsc, None) {
                let rate = entry.status.counter.ns_per_cycle_2_58;
                history.left_out += entry.segments_left_out;
                let taken = history.take(Some(rate), &entry.segments, entry.samples);
                taken.expect("a log has no impossible history");
            }
        }
        if let Some(device) = device.as_mut().filter(|_| reader.now_ns >= look_at) {
            look_at = reader.now_ns + LOOK_EVERY;
            looks.extend(device.look(&mut reader, &tracker));
        }
    }
    Some(Logged { history, looks })
}
