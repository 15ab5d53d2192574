//! Lines to a stream that nobody may be reading: written by a thread of its own,
//! so that a full pipe holds up neither signals nor the capture.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tscap_host::caps;

/// Lines that may wait before those that can be spared are left out.
pub(super) const MOST_WAITING: usize = 64;

/// What the thread is to do.
enum Job {
    Write(Vec<u8>),
    GiveUpCapabilities,
}

#[derive(Debug)]
pub(super) struct Lines {
    /// None after the end.
    queue: Option<Sender<Job>>,
    /// Handed over and not written yet.
    waiting: Arc<AtomicUsize>,
    /// Closed by the thread when it has written everything.
    done: Receiver<()>,
}

impl Lines {
    pub fn to(mut stream: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, jobs) = channel();
        let (end, done) = channel::<()>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let thread = std::thread::Builder::new().name("tscap-console".into());
        thread.spawn(move || {
            for job in jobs {
                match job {
                    // That it can't be written is no reason to end.
                    Job::Write(line) => {
                        let _ = stream.write_all(&line).and_then(|()| stream.flush());
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                    // With more of them it does the same.
                    Job::GiveUpCapabilities => drop(caps::keep_only(&[])),
                }
            }
            drop(end);
        })?;
        Ok(Self {
            queue: Some(queue),
            waiting,
            done,
        })
    }

    /// Writes `line` as soon as those before it have been taken.
    pub fn put(&self, line: impl Into<Vec<u8>>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The thread takes lines as long as there is a queue.
        let queue = self.queue.as_ref();
        let _ = queue.map(|queue| queue.send(Job::Write(line.into())));
    }

    /// Has the thread go on without capabilities: the stream is open.
    pub fn give_up_capabilities(&self) {
        let queue = self.queue.as_ref();
        let _ = queue.map(|queue| queue.send(Job::GiveUpCapabilities));
    }

    /// The same for a line that can be spared: not if too many wait already.
    /// Says whether it was taken.
    pub fn offer(&self, line: impl Into<Vec<u8>>) -> bool {
        let has_room = self.waiting.load(Ordering::Relaxed) < MOST_WAITING;
        if has_room {
            self.put(line);
        }
        has_room
    }

    /// Waits until everything is written, for `within` at most. Gives the lines
    /// that were not.
    pub fn finish(&mut self, within: Duration) -> usize {
        self.queue = None;
        match self.done.recv_timeout(within) {
            Err(RecvTimeoutError::Timeout) => self.waiting.load(Ordering::Relaxed),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn every_line_comes_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut lines = Lines::to(writer).unwrap();
        for number in 0..10 {
            lines.put(format!("{number}\n"));
        }
        assert_eq!(lines.finish(LONG), 0);
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read() {
        let (reader, writer) = io::pipe().unwrap();
        let mut lines = Lines::to(writer).unwrap();
        // More than a pipe holds.
        lines.put(vec![b'x'; 1 << 20]);
        let taken = (0..2 * MOST_WAITING).filter(|_| lines.offer("progress\n"));
        assert_eq!(taken.count(), MOST_WAITING - 1);
        lines.put("summary\n");
        assert_eq!(lines.finish(Duration::from_millis(1)), MOST_WAITING + 1);
        drop(reader);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_fault() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut lines = Lines::to(writer).unwrap();
        lines.put("one\n");
        lines.put("two\n");
        assert_eq!(lines.finish(LONG), 0);
    }
}
