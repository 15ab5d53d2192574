//! An output that fails anywhere.

use super::*;
use crate::output;

proptest! {
    /// Wherever the output fails: what is in the file are whole frames from the
    /// start, and every other frame is counted.
    #[test]
    fn a_failing_output_loses_nothing_silently(
        lengths in prop::collection::vec(14usize..1500, 1..60),
        rings in 1u32..=3,
        room in 0usize..60_000,
        drains in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut bench = bench(rings, None, room, io::ErrorKind::StorageFull);
        // Later than the window of several rings, whose blocks go by way of a buffer.
        bench.script.set(2_000_000, EPOCH);
        let frames = lengths.len() as u64;
        for (number, (length, drain)) in lengths.iter().zip(drains).enumerate() {
            bench.push(number % rings as usize, 900_000 + number as u64, *length);
            if drain {
                bench.converter.drain();
            }
        }
        bench.converter.drain();
        let failed = bench.events().iter().filter(|event| matches!(event, Event::WriteFailed { .. })).count();
        let file = bench.file();
        let headers = bench.headers;
        let finished = bench.finish();
        let whole = usize::try_from(finished.output.length()).unwrap();
        prop_assert!((headers..=file.len()).contains(&whole));

        let (mut rest, mut parser) = PcapNgParser::new(&file[..whole]).unwrap();
        let mut written = 0;
        while !rest.is_empty() {
            let (next, block) = parser.next_block(rest).unwrap();
            written += u64::from(matches!(block, FileBlock::EnhancedPacket(_)));
            rest = next;
        }
        let totals = totals(&finished, frames);
        prop_assert!(totals.add_up(), "{totals:?}");
        prop_assert_eq!(totals.written, written);
        prop_assert_eq!(totals.outcomes[Outcome::WriteFailed], frames - written);
        prop_assert_eq!(failed, usize::from(written < frames));
    }
}

/// The disk fails behind the page cache, while the capture goes on: the writing ends, and the file has the
/// error until it is closed.
#[test]
fn a_disk_that_fails_behind_the_page_cache_ends_the_writing() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    let output = Output::regular(file, Io::Buffered).unwrap();
    let output = output
        .with_disk(output::ScriptedDisk::failing_at(1))
        .written_out();
    let mut output = output.unwrap();
    output.write(&vec![0; 9 << 20]).unwrap();
    let failed = loop {
        match output.flush_overdue(MonoNs(0)) {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert_eq!(failed.source.raw_os_error(), Some(libc::EIO));
    assert_eq!(failed.lost, [], "they were handed to the page cache");
    assert!(output.flush_overdue(MonoNs(0)).is_ok(), "it is told once");
    let error = output.close().unwrap_err();
    assert!(matches!(error, CloseError::NotOnDisk(_)), "{error}");
}
