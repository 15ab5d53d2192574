//! `tscap gen --read`: what came through.

use std::fs::File;
use std::path::Path;

use super::measuring::layout;
use super::print::{json_line, print};
use super::{Context, Exit, Failure, Hint as _};
use tscap_base::text::numbers::counted;
use tscap_report::streams_document;
use tscap_streams::{CaptureError, Sent, StreamReport, read};

/// Reads a capture and prints what came through of the streams in it; with
/// [`Exit::Fault`] if only a part of the file can be read.
pub(super) fn run(path: &Path, is_whole: bool, json: bool) -> Result<Exit, Failure> {
    let report = report(path)?;
    print(&if json {
        json_line(&report)
    } else {
        streams_document(&report).text(layout(is_whole))
    })?;
    Ok(if report.is_whole {
        Exit::Success
    } else {
        Exit::Fault
    })
}

fn report(path: &Path) -> Result<StreamReport, Failure> {
    let name = path.display();
    let mut file = File::open(path).context(format!("cannot open {name}"))?;
    let report = match read(&mut file, &Sent::new()) {
        Err(error) => {
            let hint = match error {
                CaptureError::NotPcapng(_) => {
                    "tscap reads pcapng: `editcap -F pcapng IN OUT` makes it of other formats"
                }
                CaptureError::Seek(_) => "give a regular file, not a pipe: it is read twice",
            };
            return Err(error).context(format!("cannot read {name}")).hint(hint);
        }
        Ok(report) => report,
    };
    if !report.has_streams() {
        let cut: u64 = report
            .interfaces
            .iter()
            .map(|interface| interface.counts.cut)
            .sum();
        let frames: u64 = report
            .interfaces
            .iter()
            .map(|interface| interface.counts.frames)
            .sum();
        let mut what = format!(
            "no stream of `tscap gen` in {name}, of {}",
            counted(frames, "frame")
        );
        if !report.warnings.is_empty() {
            what = format!("{what}: {}", report.warnings.join("; "));
        }
        return Err(Failure::new(what).hint(match cut {
            _ if !report.is_whole => "`capinfos` or `tshark -r` may tell more of the file".into(),
            0 => "capture on the interface that the frames come to while `tscap gen` runs".into(),
            cut => format!(
                "cut before a stream header could be seen: {}; capture with a snaplen of 96 or more",
                counted(cut, "frame")
            ),
        }));
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn failure_of(content: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let failure = run(file.path(), false, false).unwrap_err().to_string();
        failure.replace(&file.path().display().to_string(), "FILE")
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let failure = run(Path::new("/nowhere/in.pcapng"), false, true).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "cannot open /nowhere/in.pcapng: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_file_that_is_no_pcapng_is_refused() {
        // The magic number of pcap with nanoseconds.
        let pcap = [&0xa1b2_3c4d_u32.to_le_bytes()[..], &[0; 60]].concat();
        for content in [&b"hello"[..], b"", &pcap] {
            let failure = failure_of(content);
            assert!(
                failure.starts_with("cannot read FILE: not a pcapng file"),
                "{failure}"
            );
            assert!(
                failure.contains("hint: tscap reads pcapng: `editcap"),
                "{failure}"
            );
        }
    }

    /// By its interface description, which no frame follows.
    #[test]
    fn a_file_of_which_no_block_can_be_read_says_why() {
        use pcap_file::pcapng::PcapNgWriter;
        let head = PcapNgWriter::new(Vec::new()).unwrap().into_inner();
        let at = head.len();
        let block = |words: &[u32]| {
            let words = words.iter().flat_map(|word| word.to_ne_bytes());
            [&head[..], &words.collect::<Vec<_>>()].concat()
        };
        for (broken, why) in [
            (
                block(&[1, 20, 1, 0, 24]),
                "its length is 20 bytes at its start and 24 at its end",
            ),
            (block(&[1, 21, 1, 0, 21]), "no block is 21 bytes long"),
            (
                block(&[1, 1 << 30, 1]),
                "it is 1073741824 bytes long, and tscap reads blocks of up to 256 MiB",
            ),
            (
                block(&[1, 24, 1, 0, 0x00ff_0002, 24]),
                "an option is longer than the block",
            ),
            (
                block(&[6, 32, 0, 0, 0, 0, 0, 32]),
                "it is of interface 0, which is not described before it",
            ),
        ] {
            let failure = failure_of(&broken);
            let start =
                "no stream of `tscap gen` in FILE, of 0 frames: left out: 1 part that can't";
            assert!(failure.starts_with(start), "{failure}");
            let bytes = broken.len() - at;
            let part = format!("at byte {at}, {bytes} bytes: {why}\n");
            assert!(failure.contains(&part), "{failure}");
        }
        let failure = failure_of(&block(&[1, 20, 1]));
        assert!(
            failure.contains("the file ends in the middle of a block"),
            "{failure}"
        );
    }

    #[test]
    fn a_file_without_a_stream_says_what_to_do() {
        use pcap_file::pcapng::PcapNgWriter;
        let empty = PcapNgWriter::new(Vec::new()).unwrap().into_inner();
        assert_eq!(
            failure_of(&empty),
            "no stream of `tscap gen` in FILE, of 0 frames\n\
             hint: capture on the interface that the frames come to while `tscap gen` runs"
        );
    }
}
