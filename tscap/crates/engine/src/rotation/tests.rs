use std::io::Write;
use std::sync::mpsc::{Receiver, channel};

use jiff::tz::TimeZone;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

const SECOND: u64 = 1_000_000_000;

/// The files of a capture in a folder of their own.
struct Files {
    folder: TempDir,
    rotation: Rotation,
    output: Output,
    reported: UnboundedReceiver<Event>,
}

impl Files {
    /// Named after `template`; the first one, which lies there already, is `output`.
    fn begin(template: &str, naming: Naming, output: Output) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = RotationPlan {
            limits: Limits::default(),
            naming,
            periods: None,
            command: None,
        };
        let mut names = Names::new(&folder.path().join(template), naming, TimeZone::UTC);
        let first = names.first(RealNs(0)).unwrap();
        std::fs::write(&first, b"first").unwrap();
        let (tell, reported) = unbounded_channel();
        let rotation = Rotation::new(&plan, names, first, RealNs(0), tell).unwrap();
        Self {
            folder,
            rotation,
            output,
            reported,
        }
    }

    /// Begins the next one at a time, the start of a period, behind so many frames.
    fn next(&mut self, second: u64, frames_before: u64) {
        let start = RealNs(second * SECOND);
        let path = self.rotation.next_name(start, true).unwrap();
        let next = self.rotation.open_next(
            path,
            start,
            frames_before,
            b"headers".to_vec(),
            &mut self.output,
        );
        self.rotation.switch(&mut self.output, next.unwrap());
    }

    /// Removes one, as somebody else would.
    fn take_away(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join(name)).unwrap();
    }

    /// Ends the last one, behind so many frames, and gives what was told of all.
    fn end(mut self, frames: u64) -> Vec<String> {
        let end = RealNs(u64::MAX);
        let closing = self.rotation.close_last(self.output, frames, end);
        closing.join().unwrap();
        let mut reported = Vec::new();
        while let Ok(event) = self.reported.try_recv() {
            reported.push(match event {
                Event::FileClosed { file, error: None } => format!("closed {}", file.frames),
                Event::FileRemoved { frames, .. } => format!("removed {frames:?}"),
                event => format!("{event:?}"),
            });
        }
        reported
    }
}

/// What takes long to close: until the test ends it.
struct Slow(Receiver<()>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

fn quick() -> Output {
    Output::stream(io::sink())
}

fn tcpdump(has_time: bool, ring: Option<u64>) -> Naming {
    Naming::Tcpdump {
        has_time,
        has_number: true,
        ring,
    }
}

#[test]
fn what_takes_long_to_close_or_free_holds_nothing_up() {
    let (end, ended) = channel();
    let output = Output::stream(Slow(ended));
    let mut files = Files::begin("out", tcpdump(false, Some(2)), output);
    // The second of these takes over the name of the first file.
    files.next(1, 1);
    files.next(2, 2);
    let reported = files.reported.try_recv();
    assert!(reported.is_err(), "the first one is not closed yet");
    let current = files.rotation.current_path();
    assert_eq!(std::fs::read(current).unwrap(), b"headers");
    end.send(()).unwrap();
    let reported = ["closed 1", "closed 1", "removed Some(1)", "closed 0"];
    assert_eq!(files.end(2), reported);
}

#[test]
fn only_what_somebody_else_has_removed_is_told_as_removed() {
    let (end, ended) = channel();
    let output = Output::stream(Slow(ended));
    let mut files = Files::begin("out", tcpdump(false, Some(2)), output);
    // The third one takes the name of the first, which waits to be closed.
    for number in 1..=3 {
        files.next(number, number);
    }
    let current = files.rotation.current_path().to_owned();
    std::fs::remove_file(current).unwrap();
    // Nor does the fourth one hide what became of the one before.
    files.next(4, 4);
    files.next(5, 5);
    end.send(()).unwrap();
    let reported = files.end(5);
    let removed: Vec<_> = reported
        .iter()
        .filter(|it| it.contains("Removed)"))
        .collect();
    assert_eq!(removed.len(), 1, "{reported:?}");
    assert!(removed[0].contains("RealNs(3000000000)"), "{removed:?}");
}

/// A minute later, with other names in between, more of them than a ring has numbers.
#[test]
fn files_are_known_again_when_their_time_comes_again() {
    let mut files = Files::begin("out-%S-", tcpdump(true, Some(2)), quick());
    for (second, frames_before) in [(1, 10), (2, 30), (3, 60), (60, 100)] {
        files.next(second, frames_before);
    }
    let reported = [
        "closed 10",
        "closed 20",
        "closed 30",
        "closed 40",
        "removed Some(10)",
        "closed 0",
    ];
    assert_eq!(files.end(100), reported);
}

#[test]
fn what_somebody_else_has_removed_is_not_told_as_removed() {
    let dumpcap = Naming::Dumpcap { ring: Some(1) };
    for (naming, first) in [
        (dumpcap, "out_00001_19700101000000"),
        (tcpdump(false, Some(1)), "out"),
    ] {
        let mut files = Files::begin("out", naming, quick());
        files.take_away(first);
        files.next(1, 1);
        files.next(2, 3);
        let reported = ["closed 1", "closed 2", "removed Some(2)", "closed 3"];
        assert_eq!(files.end(6), reported, "{naming:?}");
    }
}
