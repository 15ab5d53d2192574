//! Lines of a program's output, collected while it runs.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    ended: bool,
}

/// A collector of lines, in a thread of its own.
#[derive(Debug)]
pub struct Lines {
    state: Arc<(Mutex<State>, Condvar)>,
    reader: thread::JoinHandle<()>,
}

impl Lines {
    /// Starts to collect.
    pub fn collect(source: impl Read + Send + 'static) -> Self {
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let theirs = Arc::clone(&state);
        let reader = thread::spawn(move || {
            let (state, changed) = &*theirs;
            for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                state.lock().expect("lines").lines.push(line);
                changed.notify_all();
            }
            state.lock().expect("lines").ended = true;
            changed.notify_all();
        });
        Self { state, reader }
    }

    /// Waits for the first line that `wanted` accepts. `None` when the output
    /// ends without one, or after `limit`.
    pub fn wait_for(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let (state, changed) = &*self.state;
        let deadline = Instant::now() + limit;
        let mut state = state.lock().expect("lines");
        loop {
            if let Some(line) = state.lines.iter().find(|line| wanted(line)) {
                return Some(line.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                return None;
            }
            state = changed.wait_timeout(state, left).expect("lines").0;
        }
    }

    /// Waits for line `number`, from 0. `None` when the output ends before it, or
    /// after `limit`.
    pub fn line(&self, number: usize, limit: Duration) -> Option<String> {
        let (state, changed) = &*self.state;
        let is_to_come = |state: &mut State| state.lines.len() <= number && !state.ended;
        let state = state.lock().expect("lines");
        let waited = changed.wait_timeout_while(state, limit, is_to_come);
        waited.expect("lines").0.lines.get(number).cloned()
    }

    /// What has come so far.
    pub fn so_far(&self) -> String {
        self.state.0.lock().expect("lines").lines.join("\n")
    }

    /// Waits for the end of the output; returns all of it.
    pub fn finish(self) -> String {
        self.reader.join().expect("line reader");
        self.state.0.lock().expect("lines").lines.join("\n")
    }
}
