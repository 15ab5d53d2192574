//! A reflector at work, in a thread of its own.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tscap_clock::RealNs;
use tscap_host::caps;
use tscap_protocol::{ErrorEstimate, SyncSource};

use super::socket::{AT_ONCE, Family, Request, Socket, send};
use super::{Arrival, ClockState, Outcome, Outcomes, Reflector};

/// Longest that a request to stop waits for, ms.
const LOOK_EACH_MS: u16 = 50;
/// Of a packet, bytes.
const LONGEST: usize = 1 << 16;

/// This host's clock, as another thread knows it.
#[derive(Debug, Default)]
pub struct Clock(AtomicU32);

/// Watches and stops a reflector that is at work in another thread.
#[derive(Debug)]
pub struct Watch {
    stop: AtomicBool,
    counts: [AtomicU64; Outcome::ALL.len()],
    overflowed: AtomicU64,
    sessions: AtomicU64,
}

/// A reflector at work. When it is dropped, it ends.
#[derive(Debug)]
pub struct Reflecting {
    shared: Arc<Watch>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Clock {
    /// Says how far off the clock is, and what it follows.
    pub fn set(&self, state: ClockState) {
        let source = state.source as u32;
        let bits = u32::from(state.error.to_bits());
        self.0.store(source << 16 | bits, Ordering::Relaxed);
    }

    /// What was said last; `None` before.
    pub fn get(&self) -> Option<ClockState> {
        let word = self.0.load(Ordering::Relaxed);
        Some(ClockState {
            error: ErrorEstimate::from_bits((word & 0xffff) as u16)?,
            source: match word >> 16 {
                1 => SyncSource::Ntp,
                2 => SyncSource::Ptp,
                _ => SyncSource::Local,
            },
        })
    }
}

impl Socket {
    /// Answers in a thread of its own, without capabilities, until it is stopped.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn reflect(self, reflector: Reflector, clock: Arc<Clock>) -> io::Result<Reflecting> {
        let shared = Arc::new(Watch::new());
        let mut work = Work {
            socket: self,
            reflector,
            clock,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name("tscap-reflector".into());
        let thread = thread.spawn(move || {
            caps::keep_only(&[])?;
            work.run()
        })?;
        Ok(Reflecting {
            shared,
            thread: Some(thread),
        })
    }
}

impl Watch {
    fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            overflowed: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
        }
    }

    /// What became of the requests so far.
    pub fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for outcome in Outcome::ALL {
            let count = self.counts[outcome as usize].load(Ordering::Relaxed);
            outcomes.add(outcome, count);
        }
        outcomes
    }

    /// Requests that the sockets had no room for.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Sessions that are remembered.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    fn count(&self, outcome: Outcome) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl Reflecting {
    /// What it does.
    pub fn watch(&self) -> &Watch {
        &self.shared
    }

    /// Whether it has ended by itself: [`Self::stop`] says why.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it.
    ///
    /// # Errors
    /// What its sockets failed with.
    pub fn stop(mut self) -> io::Result<Arc<Watch>> {
        self.end()?;
        Ok(Arc::clone(&self.shared))
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| {
            Err(io::Error::other(
                "the reflector panicked: please report this",
            ))
        })
    }
}

impl Drop for Reflecting {
    fn drop(&mut self) {
        // Whoever wants to know why it ended stops it.
        let _ = self.end();
    }
}

/// What the thread owns.
struct Work {
    socket: Socket,
    reflector: Reflector,
    clock: Arc<Clock>,
    shared: Arc<Watch>,
}

impl Work {
    fn run(&mut self) -> io::Result<()> {
        let mut buffers = (vec![0; LONGEST], vec![0; LONGEST]);
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.wait()?;
            for number in 0..self.socket.families.len() {
                self.turn(number, &mut buffers)?;
            }
            let sessions = self.reflector.sessions() as u64;
            self.shared.sessions.store(sessions, Ordering::Relaxed);
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let families = self.socket.families.iter();
        let watched = families.map(|it| PollFd::new(it.socket.as_fd(), PollFlags::POLLIN));
        let mut watched: Vec<_> = watched.collect();
        match poll(&mut watched, PollTimeout::from(LOOK_EACH_MS)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what a socket has, some at once.
    fn turn(&mut self, number: usize, buffers: &mut (Vec<u8>, Vec<u8>)) -> io::Result<()> {
        let Family { socket, stamps, .. } = &mut self.socket.families[number];
        stamps.take(socket, |answer, at| self.reflector.left(answer, at));
        for _ in 0..AT_ONCE {
            if !self.answer_one(number, buffers)? {
                break;
            }
        }
        let overflowed = self.socket.families[number].newly_overflowed();
        let all = &self.shared.overflowed;
        all.fetch_add(overflowed.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Answers the next request; says whether there was one.
    fn answer_one(
        &mut self,
        number: usize,
        (buffer, reply): &mut (Vec<u8>, Vec<u8>),
    ) -> io::Result<bool> {
        let family = &self.socket.families[number];
        let Some(Request { length, from, came }) = family.receive(buffer)? else {
            return Ok(false);
        };
        let outcome = match (from, came.to, came.at) {
            (Some(from), Some((to, local)), Some(at)) => {
                let arrival = Arrival {
                    packet: &buffer[..length],
                    from,
                    to,
                    local,
                    at,
                    ttl: came.ttl,
                };
                self.answer(number, &arrival, came.interface, reply)
            }
            _ => Outcome::NoStamp,
        };
        self.shared.count(outcome);
        Ok(true)
    }

    fn answer(
        &mut self,
        number: usize,
        arrival: &Arrival<'_>,
        interface: u32,
        reply: &mut [u8],
    ) -> Outcome {
        let Some(clock) = self.clock.get() else {
            return Outcome::NoStamp;
        };
        let answered = self
            .reflector
            .answer(arrival, clock, Instant::now(), RealNs::now, reply);
        let answer = match answered {
            Ok(answer) => answer,
            Err(outcome) => return outcome,
        };
        let Family { socket, stamps, .. } = &mut self.socket.families[number];
        if answer.asks_to_follow_up {
            stamps.turn_on(socket);
        }
        if send(socket, &reply[..answer.length], arrival, interface).is_err() {
            stamps.turn_off(socket);
            return Outcome::NotSent;
        }
        stamps.sent(answer);
        Outcome::Answered
    }
}
