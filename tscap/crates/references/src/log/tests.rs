use std::fs::{self, OpenOptions};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};

use super::*;
use crate::{PhcBase, PhcSighting, PhcStatus};
use tscap_clock::scripted::Host;
use tscap_clock::{Counts, Observation, RealNs, StampSource, Tracker};
use tscap_time::PhcNs;

const MS: u64 = 1_000_000;
const GAPS: [u64; 3] = [15, 35, 15];

/// Its clock's rate changes every 10 s.
fn host() -> Host {
    let ppb = [20_000, -30_000, 0];
    let slews = (0..30).map(|turn| (turn * 10_000 * MS, ppb[turn as usize % 3]));
    Host {
        hertz: 2_596_130_000,
        slews: slews.collect(),
    }
}

/// Entries of so many seconds, each of 10 s, of a process that begins at `start`.
fn entries(start: u64, seconds: u64, recorder: &mut Recorder) -> (Vec<Entry>, Tracker) {
    entries_of(&host(), start, seconds, recorder)
}

fn entries_of(
    host: &Host,
    start: u64,
    seconds: u64,
    recorder: &mut Recorder,
) -> (Vec<Entry>, Tracker) {
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(start, GAPS)).unwrap();
    let mut entries = Vec::new();
    for turn in 1..=seconds * 100 {
        let t = start + turn * 10 * MS;
        let cross = host.cross(t, GAPS);
        let seen = tracker.observe(&cross);
        recorder.observe(&cross, seen, &tracker);
        if turn % 1000 == 0 {
            let tsc = host.cycles(t);
            entries.push(recorder.entry(&mut tracker, tsc, None).unwrap());
        }
    }
    (entries, tracker)
}

fn log(folder: &Path, boot_id: &str, entries: &[Entry]) -> PathBuf {
    let path = folder.join("clock.log");
    let mut log = LogWriter::open(&path, boot_id).unwrap();
    for entry in entries {
        log.write(entry).unwrap();
    }
    path
}

/// All lines, and whether the last one is torn.
fn read(path: &Path) -> Result<(Vec<Line>, bool), ReadLogError> {
    let mut reader = LogReader::new(BufReader::new(fs::File::open(path)?))?;
    let mut lines = vec![Line::Header(reader.header().clone())];
    while let Some(line) = reader.next_line()? {
        lines.push(line);
    }
    Ok((lines, reader.is_torn()))
}

fn refusal(error: WriteLogError) -> String {
    tscap_base::text::causes::chain(&error)
}

#[test]
fn what_was_written_is_read_back_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (entries, tracker) = entries(0, 30, &mut Recorder::default());
    let path = log(folder.path(), "boot-1", &entries);
    log(folder.path(), "boot-1", &entries[..1]);
    let header = || Line::Header(Header::new("boot-1"));
    let entry = |entry: &Entry| Line::Entry(Box::new(entry.clone()));
    let mut expected = vec![header()];
    expected.extend(entries.iter().map(entry));
    expected.extend([header(), entry(&entries[0])]);
    assert_eq!(read(&path).unwrap(), (expected, false));
    // Every second has its narrowest sample.
    let samples = entries.iter().map(|entry| entry.samples.len());
    assert!(samples.clone().all(|count| count >= 10), "{samples:?}");
    assert_eq!(entries[2].segments, [*tracker.current()]);
    // A log has no stamps.
    let samples = entries.iter().flat_map(|entry| &entry.samples);
    let stated = samples.filter(|sample| sample.live_bound_ns.is_some());
    assert_eq!(stated.count(), 0);
    // By 20 ppm in 10 s, and then by 30 ppm less.
    let gone = entries
        .iter()
        .map(|entry| entry.status.absolute_less_difference_ns);
    let gone: Vec<_> = gone.collect();
    assert!(gone[0] == 0 && gone[1] < -100_000, "{gone:?}");
}

/// A process killed within a line leaves what came before; the next one cuts it off.
#[test]
fn a_torn_last_line_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (entries, _) = entries(0, 20, &mut Recorder::default());
    let path = log(folder.path(), "boot-1", &entries);
    let whole = fs::read(&path).unwrap();
    for missing in [1, 40, 3000] {
        fs::write(&path, &whole[..whole.len() - missing]).unwrap();
        let (lines, is_torn) = read(&path).unwrap();
        assert_eq!((lines.len(), is_torn), (2, true), "{missing}");
    }
    let torn = fs::metadata(&path).unwrap().len();
    let log = LogWriter::open(&path, "boot-1").unwrap();
    let header = serde_json::to_string(&Header::new("boot-1")).unwrap().len() as u64 + 1;
    let length = fs::metadata(&path).unwrap().len();
    assert_eq!(log.cut(), torn + header - length);
    drop(log);
    assert_eq!(read(&path).unwrap().0.len(), 3);
}

/// Longer than what is read at once.
#[test]
fn a_torn_line_of_any_length_is_cut_off() {
    const LENGTH: usize = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let path = log(folder.path(), "boot-1", &[]);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&[b'x'; LENGTH]).unwrap();
    let log = LogWriter::open(&path, "boot-1").unwrap();
    assert_eq!(log.cut(), LENGTH as u64);
    drop(log);
    let header = || Line::Header(Header::new("boot-1"));
    assert_eq!(read(&path).unwrap(), (vec![header(), header()], false));
}

/// It would be read without end.
#[test]
fn a_line_longer_than_any_is_damage() {
    let header = serde_json::to_string(&Header::new("boot-1")).unwrap() + "\n";
    for (length, is_torn) in [(16 << 20, true), ((16 << 20) + 1, false)] {
        let bytes = [header.as_bytes(), &vec![b'x'; length]].concat();
        let mut reader = LogReader::new(&bytes[..]).unwrap();
        assert_eq!(reader.next_line().is_ok(), is_torn);
        assert_eq!(reader.is_torn(), is_torn);
    }
}

#[test]
fn what_is_no_log_of_this_boot_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = log(folder.path(), "boot-1", &[]);
    let open = |boot_id| LogWriter::open(&path, boot_id);
    let error = open("boot-2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "it is of another boot of the machine (boot-1)"
    );
    let first = open("boot-1").unwrap();
    assert!(matches!(open("boot-1"), Err(WriteLogError::InUse)));
    drop(first);
    let later = r#"{"kind":"clock","v":2,"moon":"full"}"#;
    for (content, reason) in [
        ("hello\n", "not a clock log"),
        ("{\"kind\":\"loss\",\"v\":1}\n", "not a clock log"),
        (
            &format!("{later}\n"),
            "a clock log of version 2; this tscap reads version 1",
        ),
    ] {
        fs::write(&path, content).unwrap();
        let text = refusal(open("boot-1").unwrap_err());
        assert!(text.ends_with(reason), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let folder = LogWriter::open(folder.path(), "boot-1");
    assert!(matches!(folder, Err(WriteLogError::NotAFile)));
    // An empty file is a new one.
    fs::write(&path, "").unwrap();
    assert!(open("boot-1").is_ok());
}

#[test]
fn damage_is_located() {
    let folder = tempfile::tempdir().unwrap();
    let path = log(folder.path(), "boot-1", &[]);
    let add = |text: &str| {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    add("{\"status\":{}}\n");
    let error = read(&path).unwrap_err();
    assert_eq!(error.to_string(), "line 2 of the clock log is damaged");
    let path = log(folder.path(), "boot-1", &[]);
    let text = fs::read_to_string(&path).unwrap();
    let first = text.lines().next().unwrap();
    let other = serde_json::to_string(&Header::new("boot-2")).unwrap();
    for (second, what) in [
        (&other[..], "of another boot"),
        (r#"{"kind":"clock","v":1}"#, "damaged"),
    ] {
        fs::write(&path, format!("{first}\n{second}\n")).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert_eq!(error, format!("line 2 of the clock log is {what}"));
    }
}

/// Arithmetic with it would have no result.
#[test]
fn a_rate_that_no_counter_has_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (mut entries, _) = entries(0, 20, &mut Recorder::default());
    entries[1].status.counter.ns_per_cycle_2_58.0 = 0;
    let path = log(folder.path(), "boot-1", &entries);
    let error = read(&path).unwrap_err().to_string();
    assert_eq!(error, "line 3 of the clock log is damaged");
}

#[test]
fn its_size_is_as_stated() {
    let folder = tempfile::tempdir().unwrap();
    let (entries, _) = entries(0, 120, &mut Recorder::default());
    let path = log(folder.path(), "boot-1", &entries);
    let an_hour = fs::metadata(&path).unwrap().len() * 30;
    assert!((1_000_000..1_300_000).contains(&an_hour), "{an_hour}");
    // The rate changes 20 times a second.
    let restless = Host {
        hertz: 2_596_130_000,
        slews: (0..2400)
            .map(|turn| (turn * 50 * MS, if turn % 2 == 0 { 90_000 } else { -90_000 }))
            .collect(),
    };
    let (entries, _) = entries_of(&restless, 0, 120, &mut Recorder::default());
    let folder = tempfile::tempdir().unwrap();
    let path = log(folder.path(), "boot-1", &entries);
    let an_hour = fs::metadata(&path).unwrap().len() * 30;
    assert!((8_000_000..13_000_000).contains(&an_hour), "{an_hour}");
}

/// The phase of each bin, against what the host's clock really did.
#[test]
fn phases_are_the_clock_against_the_counter() {
    let (entries, _) = entries(0, 60, &mut Recorder::default());
    let all: Vec<&Phases> = entries.iter().flat_map(|entry| &entry.phases).collect();
    assert!(all.windows(2).all(|pair| pair[0].end() == pair[1].from));
    let every = all[0].every;
    let phases: Vec<i64> = all
        .iter()
        .flat_map(|phases| phases.ns.iter().map(|ns| ns.expect("no bin is empty")))
        .collect();
    assert!((598..=600).contains(&phases.len()), "{}", phases.len());
    // 20 ppm for 10 s, −30 for 10 s, then 0: changes over a second, ns.
    let host = host();
    let seconds = |cycles: u64| {
        u64::try_from(i128::from(cycles) * 1_000_000_000 / i128::from(host.hertz)).unwrap()
    };
    for (index, pair) in phases.windows(11).enumerate() {
        let start = seconds(all[0].from.0 - host.cycles(0).0 + index as u64 * every + every / 2);
        let end = start + 10 * seconds(every);
        // The first p̂ is that of the first 100 ms: 20 ppm.
        let truth = |t: u64| host.real(t).cast_signed() - i64::try_from(t + t / 50_000).unwrap();
        let change = truth(end) - truth(start);
        let seen = pair[10] - pair[0];
        // Not where the rate changes within the bin.
        let since_change = (start + 100 * MS) % (10_000 * MS);
        if since_change > 200 * MS && since_change < 8_800 * MS {
            assert!((seen - change).abs() <= 150, "{index}: {seen} {change}");
        }
    }
}

/// A device that counts TAI, 37 s ahead; the clock is set between its looks.
#[test]
fn another_reference_is_binned_without_whole_seconds_until_a_step() {
    let host = Host {
        hertz: 1_000_000_000,
        slews: vec![],
    };
    let mut recorder = Recorder::default();
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, GAPS)).unwrap();
    let status = PhcStatus {
        phc: PhcNs(0),
        base: PhcBase::Tai,
        host_ahead_ns: 400,
        bound_ns: 100,
        host_rate_ppb: 0,
        rate_bound_ppb: 0,
        least_width_ns: 100,
        age_ns: 0,
        readings: Counts::default(),
        stood: 0,
        torn: 0,
        failed: 0,
    };
    let look = |t: u64, ahead_ns: i64| PhcSighting {
        at: host.cycles(t),
        ahead_ns: ahead_ns - 37_000_000_000,
        bound_ns: 60,
    };
    // Before the clock has settled it is of no use.
    recorder.observe_reference("/dev/ptp0", look(0, 1), &status, &tracker);
    let step_ns = 5_000_000_000;
    for turn in 1..=60u64 {
        let t = turn * 10 * MS;
        let mut cross = host.cross(t, GAPS);
        if turn > 35 {
            cross.real = cross.real.map(|real| RealNs(real.0 + step_ns));
            cross.tai.0 += step_ns;
        }
        let seen = tracker.observe(&cross);
        recorder.observe(&cross, seen, &tracker);
        let ahead_ns = match turn {
            ..=35 => 390,
            // Just more than half a second from what is known of the device.
            _ => -499_999_601,
        };
        if turn > 10 {
            recorder.observe_reference("/dev/ptp0", look(t, ahead_ns), &status, &tracker);
        }
    }
    let tsc = host.cycles(600 * MS);
    let entry = recorder.entry(&mut tracker, tsc, None).unwrap();
    let reference = entry.reference.unwrap();
    let series = reference.phases.iter().map(|series| &series.ns[..]);
    let expected = [&[Some(390); 3][..], &[Some(500_000_399); 2]];
    assert_eq!(series.collect::<Vec<_>>(), expected);
    assert_eq!(
        (reference.device.as_str(), reference.bound_ns),
        ("/dev/ptp0", 60)
    );
}

/// Of interrupted readings alone nothing is known.
#[test]
fn a_bin_of_wide_readings_is_empty() {
    let host = Host {
        hertz: 1_000_000_000,
        slews: vec![],
    };
    let mut recorder = Recorder::default();
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, GAPS)).unwrap();
    for turn in 1..=60u64 {
        let gaps = match turn {
            // Longer than a bin.
            25..45 => [9_000, 35, 15],
            _ => GAPS,
        };
        let cross = host.cross(turn * 10 * MS, gaps);
        let seen = tracker.observe(&cross);
        assert_eq!(seen, Observation::Agrees);
        recorder.observe(&cross, seen, &tracker);
    }
    let entry = recorder
        .entry(&mut tracker, host.cycles(600 * MS), None)
        .unwrap();
    let phases = entry.phases.iter().flat_map(|phases| &phases.ns);
    let empty = phases.filter(|ns| ns.is_none()).count();
    assert_eq!(empty, 1, "{:?}", entry.phases);
}

#[test]
fn a_step_begins_a_series_of_phases() {
    let host = Host {
        hertz: 2_000_000_000,
        slews: vec![],
    };
    let mut recorder = Recorder::default();
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, GAPS)).unwrap();
    for turn in 1..=400u64 {
        let mut cross = host.cross(turn * 10 * MS, GAPS);
        if turn > 200 {
            for real in &mut cross.real {
                real.0 += 5_000_000_000;
            }
            cross.tai.0 += 5_000_000_000;
        }
        let seen = tracker.observe(&cross);
        recorder.observe(&cross, seen, &tracker);
    }
    let tsc = host.cycles(4_000 * MS);
    let entry = recorder.entry(&mut tracker, tsc, Some(9)).unwrap();
    let [first, second] = &entry.phases[..] else {
        panic!("{:?}", entry.phases);
    };
    assert_ne!(first.end(), second.from);
    let phases = first.ns.iter().chain(&second.ns).flatten();
    let farthest = phases.map(|ns| ns.abs()).max().unwrap();
    assert!(farthest < 200, "{farthest}");
    assert_eq!((entry.segments.len(), entry.status.steps), (2, 1));
    assert_eq!(entry.status.utc_bound_ns, Some(9));
}
