//! What a file has of the clock.

use super::*;

#[test]
fn a_clock_set_all_the_time_still_fits_an_option() {
    let mut writer = writer(&[interface("eth0")]);
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(0, EPOCH)).unwrap();
    for step in 1..5_000u64 {
        tracker.observe(&cross(step * 1_000_000, EPOCH + step * 1_000_000));
    }
    let counts = counts(Written::default(), Observed::default());
    let at = MonoNs(1);
    let (mut sizes, mut all) = (Vec::new(), writer.take());
    for _ in 0..2 {
        let order = StampOrder::default();
        let bytes = writer.statistics(&mut tracker, at, &counts, order, None);
        let bytes = bytes.unwrap();
        sizes.push(bytes.len());
        all.extend(bytes);
    }
    assert!(sizes[0] < 65_536, "{sizes:?}");
    assert!(
        sizes[1] < 1_500,
        "settled segments are not written again: {sizes:?}"
    );
    let segments = records(&all[..])
        .unwrap()
        .filter_map(|record| match record.unwrap() {
            Record::Statistics(_, ours) => {
                Some((ours.clock.segments.len(), ours.clock.segments_left_out))
            }
            _ => None,
        });
    // None goes missing without a count.
    assert_eq!(segments.collect::<Vec<_>>(), [(100, 4_900), (1, 0)]);
    let mut gatherer = Gatherer::default();
    for record in records(&all[..]).unwrap() {
        if let Record::Statistics(interface, ours) = record.unwrap() {
            gatherer.take(interface, &ours.clock).unwrap();
        }
    }
    assert_eq!(gatherer.history().unwrap().unwrap().left_out, 4_900);
}

/// As often as it is looked at, somebody has set it.
#[test]
fn the_last_statistics_of_a_restless_clock_fit_the_room_kept_for_them() {
    const INTERFACES: usize = 200;
    let interfaces = vec![interface("eth0"); INTERFACES];
    let mut writer = writer(&interfaces);
    writer.take();
    let at = |read: u64| CrossTimestamp {
        tsc: Some([TscCycles(EPOCH + read), TscCycles(EPOCH + read + 40)]),
        ..cross(EPOCH + read * 10_000_000, read % 2 * 5_000_000_000)
    };
    let mut tracker = Tracker::new(StampSource::Ktime, &at(0)).unwrap();
    let mut counts = counted(u64::MAX / 16);
    counts.written = vec![counts.written[0]; INTERFACES];
    counts.observed.interfaces = vec![counts.observed.interfaces[0]; INTERFACES];
    let order = StampOrder::default();
    for read in 1..=3_000 {
        tracker.observe(&at(read));
    }
    let now = MonoNs(EPOCH + 30_000_000_000);
    let length = [(); 2].map(|()| {
        let bytes = writer.statistics(&mut tracker, now, &counts, order, None);
        bytes.unwrap().len() as u64
    });
    assert!(length[0] > 2 * 16 * 1024, "{length:?}");
    let most = most_final_bytes(INTERFACES);
    assert!(length[0] + length[1] <= most, "{length:?} of {most}");
    assert_eq!((most_final_bytes(0), most_final_bytes(1)), (0, 73_728));
}

#[test]
fn the_next_file_counts_from_its_own_start_and_has_a_clock() {
    let filtered = InterfaceInfo {
        filter: Some("udp".into()),
        ..interface("eth0")
    };
    let mut first = writer(&[filtered]);
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(0, EPOCH)).unwrap();
    let order = StampOrder::default();
    let statistics = |file: &mut FileWriter, tracker: &mut Tracker, counts: &Counts| {
        let headers = file.take();
        let bytes = file.statistics(tracker, MonoNs(7), counts, order, None);
        let all = blocks(&[headers, bytes.unwrap()].concat());
        assert!(matches!(all[0], Block::InterfaceDescription(_)), "{all:?}");
        let Block::InterfaceStatistics(statistics) = &all[1] else {
            panic!("{all:?}");
        };
        let Isb::Common(custom) = statistics.options.last().unwrap() else {
            panic!("a custom option");
        };
        (statistics.options.clone(), json::<StatisticsOption>(custom))
    };
    let (_, clock) = statistics(&mut first, &mut tracker, &counted(5));
    let mut next = first.next(RealNs(EPOCH + 7), counted(5)).unwrap();
    // No clock has been read since.
    let (options, ours) = statistics(&mut next, &mut tracker, &counted(12));
    let kinds = Outcome::ALL.len() as u64;
    assert_eq!(
        options[..7],
        [
            Isb::IsbStartTime(RealNs(EPOCH + 7).since_epoch()),
            options[1].clone(),
            Isb::IsbIfRecv(7 * (kinds + 1)),
            Isb::IsbIfDrop(7),
            Isb::IsbFilterAccept(7 * kinds),
            Isb::IsbOsDrop(7 * 6),
            Isb::IsbUsrDeliv(7),
        ]
    );
    assert_eq!(ours.outcomes.total(), 7 * kinds);
    assert_eq!(ours.off_cpu, Some(7));
    assert_eq!(ours.clock.segments, clock.clock.segments);
    assert_eq!(ours.clock.samples, clock.clock.samples);
    assert_eq!(ours.clock.samples.len(), 1);
}

#[test]
fn a_history_is_of_segments_or_samples() {
    for (segments, left_out, samples, has_one) in [
        (0, 0, 0, false),
        (1, 0, 0, true),
        (0, 3, 0, true),
        (0, 0, 1, true),
        (1, 0, 1, true),
    ] {
        let clock = clock_with(segments, left_out, samples);
        let taken = Gatherer::default().take(0, &clock);
        assert_eq!(taken.is_ok(), has_one, "{segments} {left_out} {samples}");
    }
}
