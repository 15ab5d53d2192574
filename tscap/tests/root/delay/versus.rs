//! tcpdump on both interfaces of the same run, matched afterwards by gen's numbers.

use tscap_common::hook::Direction;
use tscap_testkit::between::Between;
use tscap_testkit::files;
use tscap_testkit::root::alone_with;
use tscap_testkit::tcpdump::{Seen, Tcpdump};

use super::{MEASURES, PROGRAMS, by_number, end, first, quantile, send, start};

const FRAMES: u64 = 5_000;
/// tcpdump's stamp at the entry is made behind XDP, where the socket buffer has been
/// made and handed to the stack: this much later at most, in the median, ns.
const ENTERED_LATER_NS: i64 = 5_000;

fn stamps(seen: &[Seen]) -> std::collections::BTreeMap<u32, u64> {
    by_number(seen.iter().map(|seen| (&seen.data[..], seen.nanos)))
}

#[test]
fn the_median_is_that_of_tcpdump() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-tcpdump");
    let folder = files::folder();
    let at = |port, name: &str, direction| {
        let path = folder.path().join(name);
        Tcpdump::watch(port, &path, direction)
    };
    let entry = at(&between.bench.rx, "in.pcap", Direction::In);
    let exit = at(&between.out, "out.pcap", Direction::Out);
    let running = start(&between, &["--match", "gen"]);
    send(&between, &["--rate", "5k"], FRAMES);
    let measurement = end(running);
    let [entered, left] = [entry, exit].map(|it| stamps(&it.stop_after(FRAMES)));
    let both = entered.iter().filter_map(|(number, entered)| {
        let left = left.get(number)?;
        Some(left.cast_signed() - entered.cast_signed())
    });
    let mut theirs: Vec<i64> = both.collect();
    theirs.sort_unstable();
    assert_eq!(theirs.len() as u64, FRAMES);
    let (exit, delays) = first(&measurement);
    assert_eq!((exit.point.as_str(), exit.account.matched), ("tap", FRAMES));
    let of = &delays.summary;
    let (ours, median) = (of.p50.expect("enough"), quantile(&theirs, 500));
    let bound = i64::try_from(delays.bound_ns.expect("a bound")).expect("a short one");
    // Steps of the quantile.
    let bound = bound + median / 2_000;
    // For docs/delay.md.
    println!(
        "median {ours} ns, tcpdump {median} ns; p99 {:?}, {}; max {}, {}; bound {bound} ns",
        of.p99,
        quantile(&theirs, 990),
        of.max,
        quantile(&theirs, 1_000)
    );
    let within = median - bound..=median + bound + ENTERED_LATER_NS;
    assert!(within.contains(&ours), "{ours} is not within {within:?}");
}
