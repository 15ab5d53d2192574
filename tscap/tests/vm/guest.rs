//! The guest as the host sees it: programs and files, by the agent.

use std::cell::RefCell;
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use tscap_testkit::command::Done;
use tscap_testkit::finished::Finished;

use crate::agent;
use crate::protocol::{self, Answer, HELLO, Reply, Request};

/// More than any one step takes in an emulated machine on a loaded one.
const LIMIT: Duration = Duration::from_secs(240);
/// Over the time that the agent was given.
const MARGIN: Duration = Duration::from_secs(20);
/// Where captures go.
const OUTPUT: &str = "/tmp/out.pcapng";
/// Every capture's command line, without its interfaces.
const CAPTURE: [&str; 8] = [
    "capture",
    "--json",
    "-Q",
    "in",
    "--ring-size",
    "1M",
    "-w",
    OUTPUT,
];

/// The agent's other end.
#[derive(Debug)]
pub struct Guest {
    agent: RefCell<BufReader<UnixStream>>,
}

/// A program in the guest.
#[derive(Debug)]
pub struct Program<'a> {
    guest: &'a Guest,
    pid: u32,
}

impl Guest {
    /// Waits until the guest has booted.
    ///
    /// # Errors
    /// Why not: it ended before, or hangs.
    pub fn greet(stream: UnixStream, limit: Duration) -> Result<Self, String> {
        stream.set_read_timeout(Some(limit)).expect("a timeout");
        let mut agent = BufReader::new(stream);
        let hello: Option<String> = protocol::receive(&mut agent)
            .map_err(|error| format!("the guest does not boot in {limit:?}: {error}"))?;
        let hello = hello.ok_or("the guest ended before it had booted")?;
        assert_eq!(hello, HELLO);
        Ok(Self {
            agent: RefCell::new(agent),
        })
    }

    #[track_caller]
    fn ask(&self, request: &Request, limit: Duration) -> Answer {
        let mut agent = self.agent.borrow_mut();
        let stream = agent.get_mut();
        stream
            .set_read_timeout(Some(limit + MARGIN))
            .expect("a timeout");
        protocol::send(stream, request).expect("ask the agent");
        let reply: Option<Reply> = protocol::receive(&mut *agent)
            .unwrap_or_else(|error| panic!("no answer to {request:?}: {error}"));
        let reply = reply.unwrap_or_else(|| panic!("the guest ended at {request:?}"));
        reply.unwrap_or_else(|error| panic!("in the guest: {error}"))
    }

    #[track_caller]
    fn tell(&self, request: &Request) {
        self.ask(request, LIMIT);
    }

    /// Starts a program.
    #[track_caller]
    pub fn start(&self, line: &[&str]) -> Program<'_> {
        let line = line.iter().map(ToString::to_string).collect();
        match self.ask(&Request::Start(line), LIMIT) {
            Answer::Pid(pid) => Program { guest: self, pid },
            other => panic!("{other:?}"),
        }
    }

    /// Runs a program to its end.
    #[track_caller]
    pub fn run(&self, line: &[&str]) -> Done {
        self.start(line).end()
    }

    /// Runs one that must succeed; returns its output, without the last line's end.
    #[track_caller]
    pub fn must(&self, line: &[&str]) -> String {
        let done = self.run(line);
        assert!(done.status.success(), "{line:?}: {}", done.stderr);
        done.stdout
    }

    /// Starts `tscap capture` with these arguments.
    #[track_caller]
    pub fn capture(&self, arguments: &[&str]) -> Program<'_> {
        self.start(&[&[agent::TSCAP], &CAPTURE[..], arguments].concat())
    }

    /// The same into another file.
    #[track_caller]
    pub fn capture_to(&self, file: &str, arguments: &[&str]) -> Program<'_> {
        let [others @ .., _] = CAPTURE;
        self.start(&[&[agent::TSCAP], &others[..], &[file], arguments].concat())
    }

    /// The same with a test-only XDP program.
    #[track_caller]
    pub fn capture_by(&self, program: &str, arguments: &[&str]) -> Program<'_> {
        let program = [agent::PROGRAM, agent::PROBE, program];
        self.start(&[&program, &CAPTURE[..], arguments].concat())
    }

    /// Brings the captured file into a folder of the host's.
    #[track_caller]
    pub fn bring(&self, folder: &Path) -> PathBuf {
        let path = folder.join("out.pcapng");
        let written = std::fs::write(&path, self.read(OUTPUT));
        written.unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
        path
    }

    /// A file's content.
    #[track_caller]
    pub fn read(&self, path: &str) -> Vec<u8> {
        match self.ask(&Request::Read(path.into()), LIMIT) {
            Answer::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    /// Sets the system clock by `ns`.
    #[track_caller]
    pub fn step_clock(&self, ns: i64) {
        self.tell(&Request::Step(ns));
    }

    /// Frames that the running capture has recorded, by CPU.
    #[track_caller]
    pub fn recorded(&self) -> Vec<u64> {
        match self.ask(&Request::Recorded, LIMIT) {
            Answer::Counts(counts) => counts,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the running capture has seen so many received frames.
    #[track_caller]
    pub fn wait_received(&self, frames: u64) {
        tscap_testkit::wait::until("frames to be seen", LIMIT, || {
            match self.ask(&Request::Received, LIMIT) {
                Answer::Counts(counts) => (counts.iter().sum::<u64>() >= frames).then_some(()),
                other => panic!("{other:?}"),
            }
        });
    }

    /// Waits until the running capture has recorded `frames` frames.
    #[track_caller]
    pub fn wait_recorded(&self, frames: u64) -> Vec<u64> {
        tscap_testkit::wait::until("frames to be recorded", LIMIT, || {
            let recorded = self.recorded();
            (recorded.iter().sum::<u64>() >= frames).then_some(recorded)
        })
    }
}

impl Program<'_> {
    /// Waits until a capture is ready.
    #[track_caller]
    pub fn ready(self) -> Self {
        self.wait_line("ready: ");
        self
    }

    /// Waits for a line on standard error that starts so.
    #[track_caller]
    pub fn wait_line(&self, start: &str) -> String {
        let request = Request::WaitLine {
            pid: self.pid,
            start: start.into(),
            limit_ms: millis(LIMIT),
        };
        match self.guest.ask(&request, LIMIT) {
            Answer::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let (pid, signal) = (self.pid, signal as i32);
        self.guest.tell(&Request::Signal { pid, signal });
    }

    /// Sends it a signal and waits for its end. SIGKILL ends the process too that keeps its
    /// settings.
    #[track_caller]
    pub fn stop_with(self, signal: Signal) -> Finished {
        if signal == Signal::SIGKILL {
            // There need not be one.
            self.guest.run(&["killall", "-9", "tscap-keeper"]);
        }
        self.signal(signal);
        self.wait()
    }

    /// Stops it as Ctrl-C does.
    #[track_caller]
    pub fn stop(self) -> Finished {
        self.stop_with(Signal::SIGINT)
    }

    /// Waits until a tscap ends.
    #[track_caller]
    pub fn wait(self) -> Finished {
        let done = self.end();
        Finished::new(done.status, Some(done.stdout), done.stderr)
    }

    #[track_caller]
    fn end(self) -> Done {
        let request = Request::Wait {
            pid: self.pid,
            limit_ms: millis(LIMIT),
        };
        match self.guest.ask(&request, LIMIT) {
            Answer::Ended {
                status,
                stdout,
                stderr,
            } => Done {
                status: ExitStatus::from_raw(status),
                stdout,
                stderr,
            },
            other => panic!("{other:?}"),
        }
    }
}

fn millis(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).expect("a short time")
}
