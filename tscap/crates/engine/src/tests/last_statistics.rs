//! What follows the last frame.

use super::*;

/// Ends a capture whose last statistics go to `output`. Gives their length, bytes.
fn last_statistics_bytes(mut bench: Bench, output: Output) -> u64 {
    for mono in 0..8 {
        bench.push(0, 900_000 + mono, 60);
    }
    bench.converter.drain();
    let mut finished = bench.finish();
    let observed = Observed::default();
    let totals = finished.totals(Directed::received(8), &observed);
    finished.output = output;
    finished
        .write_last_statistics(MonoNs(2_000_000), &observed, &totals)
        .unwrap();
    finished.output.length()
}

#[test]
fn they_follow_whole_blocks_that_somebody_reads() {
    let failing = |failure| bench(1, None, 200, failure);
    let stream = || Output::stream(io::sink());
    let file = || Output::regular(tempfile::tempfile().unwrap(), Io::Auto).unwrap();
    let full = io::ErrorKind::StorageFull;
    assert!(last_statistics_bytes(unlimited(1), stream()) > 0);
    let gone = last_statistics_bytes(failing(io::ErrorKind::BrokenPipe), stream());
    assert_eq!(gone, 0, "nobody reads them");
    let torn = last_statistics_bytes(failing(full), stream());
    assert_eq!(torn, 0, "a stream ends with half a block");
    assert!(last_statistics_bytes(failing(full), file()) > 0);
}
