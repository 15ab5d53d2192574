//! A capture in a process of its own, as a user would run it.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tempfile::NamedTempFile;

use super::arguments::Setup;
use super::count::{self, CountError};
use super::pair::Pair;
use super::stop::Stop;
use super::tool::{Program, Tool};
use super::tool_report::ToolReport;
use tscap_base::kernel_files::KernelFiles;
use tscap_file::accounting::Direction;
use tscap_host::process::{self, cpu_time};
use tscap_host::{affinity, system};

/// Longest wait for its beginning, and for its end.
const LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for the beginning of one that compiles a filter: libpcap takes half a
/// minute of CPU time for 800 hosts.
const COMPILED: Duration = Duration::from_secs(240);
/// How often it is looked whether it has come to rest, and whether it has ended.
const LOOK_EACH: Duration = Duration::from_millis(5);
/// A program at rest takes no more CPU time than this meanwhile.
const REST: Duration = Duration::from_millis(2);

/// Why a capture gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The executable.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has no way to be given the expression.
    #[error("{} is not given filters here: ask for all frames", tool.name())]
    NoFilter {
        /// Which.
        tool: Tool,
    },
    /// It does not tell sent frames from received ones.
    #[error("{} does not capture what is sent alone", tool.name())]
    NotSent {
        /// Which.
        tool: Tool,
    },
    /// It ended too early.
    #[error("{} ended before it was told to: {why}", tool.name())]
    Early {
        /// Which.
        tool: Tool,
        /// What it said.
        why: String,
    },
    /// It did not begin, or not end.
    #[error("{} did not {what} in {} s", tool.name(), limit.as_secs_f64())]
    Late {
        /// Which.
        tool: Tool,
        /// What was waited for.
        what: &'static str,
        /// For so long.
        limit: Duration,
    },
    /// It ended with an error, or without an account of its frames.
    #[error("{} failed, {}: {why}", tool.name(), ended(*status))]
    Failed {
        /// Which.
        tool: Tool,
        /// How it ended.
        status: WaitStatus,
        /// What it said.
        why: String,
    },
    /// What it wrote can't be read.
    #[error(transparent)]
    Count(#[from] CountError),
    /// Another step failed.
    #[error(transparent)]
    Step(#[from] io::Error),
}

/// How long something is waited for.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    what: &'static str,
    limit: Duration,
    end: Instant,
}

impl Deadline {
    fn after(limit: Duration, what: &'static str) -> Self {
        let end = Instant::now() + limit;
        Self { what, limit, end }
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    fn missed_by(&self, tool: Tool) -> LoadError {
        let Self { what, limit, .. } = *self;
        LoadError::Late { tool, what, limit }
    }
}

/// How a program ended.
fn ended(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("exit code {code}"),
        WaitStatus::Signaled(_, signal, _) => format!("ended by {signal}"),
        // It was waited for until it had ended.
        other => format!("{other:?}"),
    }
}

/// As an [`io::Error`], for what has no other.
impl From<LoadError> for io::Error {
    fn from(error: LoadError) -> Self {
        Self::other(error)
    }
}

/// What a capture gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Frames in its file, counted by us; `None` if that is no file.
    pub in_file: Option<u64>,
    /// What it said itself.
    pub said: ToolReport,
    /// Whether it was given a filter.
    pub filters: bool,
    /// Length of the file, bytes.
    pub file_bytes: u64,
    /// Of these, bytes that the page cache held when it had ended; `None` if that is no file.
    pub cached_bytes: Option<u64>,
    /// CPU time of all its threads, user and system, from the time it was ready.
    pub cpu: Duration,
}

/// A capture that has begun. Killed on drop.
#[derive(Debug)]
pub struct Capture {
    tool: Tool,
    child: Child,
    stop: Arc<Stop>,
    lines: Receiver<Line>,
    said: Vec<String>,
    complaints: Vec<String>,
    cpu_before: Duration,
    output: PathBuf,
    filters: bool,
    /// Read by netsniff-ng as it starts.
    _filter: Option<NamedTempFile>,
}

/// A line of its output.
#[derive(Debug)]
struct Line {
    is_error: bool,
    text: io::Result<String>,
}

impl Capture {
    /// Captures at the end that `setup` says, and waits until it is ready.
    pub fn start(
        program: &Program,
        pair: &Pair,
        setup: &Setup,
        stop: &Arc<Stop>,
    ) -> Result<Self, LoadError> {
        let rings = system::online_cpus().map_err(io::Error::other)?.len();
        let tool = program.tool;
        if setup.expression.is_some() && !tool.takes_expression() {
            return Err(LoadError::NoFilter { tool });
        }
        let (netns, link) = match setup.direction {
            Direction::In => (&pair.rx_netns, &pair.rx),
            Direction::Out if tool.takes_sent() => (&pair.tx_netns, &pair.tx),
            Direction::Out => return Err(LoadError::NotSent { tool }),
        };
        let mut command = Command::new(&program.path);
        command.args(setup.arguments(tool, &link.name, rings));
        let filter = match setup.filter() {
            Some(filter) if tool == Tool::NetsniffNg => {
                let mut file = NamedTempFile::new()?;
                file.write_all(filter.as_bytes())?;
                command.arg("--filter").arg(file.path());
                Some(file)
            }
            _ => None,
        };
        // It inherits the CPUs of the thread that starts it, and the signals that
        // this one waits for.
        let spawn = || {
            affinity::allow(&setup.cpus)?;
            SigSet::all().thread_unblock()?;
            Ok(Self::spawn(tool, &mut command, stop))
        };
        let mut capture = netns.within(spawn)??;
        setup.output.clone_into(&mut capture.output);
        capture.filters = setup.expression.is_some();
        capture._filter = filter;
        capture.wait_until_ready(if capture.filters { COMPILED } else { LIMIT })?;
        capture.cpu_before = cpu_time(capture.pid())?;
        Ok(capture)
    }

    /// Out of reach of a terminal's Ctrl-C, which is for us: we end it.
    fn spawn(tool: Tool, command: &mut Command, stop: &Arc<Stop>) -> Result<Self, LoadError> {
        command.process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|source| LoadError::Start {
            program: command.get_program().into(),
            source,
        })?;
        stop.set_child(Some(Pid::from_raw(child.id().cast_signed())));
        let (line, lines) = channel();
        let mut capture = Self {
            tool,
            child,
            stop: Arc::clone(stop),
            lines,
            said: Vec::new(),
            complaints: Vec::new(),
            cpu_before: Duration::ZERO,
            output: PathBuf::new(),
            filters: false,
            _filter: None,
        };
        let stdout = capture.child.stdout.take();
        let stdout = stdout.ok_or_else(|| io::Error::other("no standard output"))?;
        let stderr = capture.child.stderr.take();
        let stderr = stderr.ok_or_else(|| io::Error::other("no standard error"))?;
        read_lines(stdout, false, line.clone())?;
        read_lines(stderr, true, line)?;
        Ok(capture)
    }

    /// Whose it is.
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// CPU time of all its threads so far, user and system.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        cpu_time(self.pid())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn wait_until_ready(&mut self, limit: Duration) -> Result<(), LoadError> {
        let tool = self.tool;
        let deadline = Deadline::after(limit, "get ready");
        while let Some(text) = self.line(deadline)? {
            if tool.is_ready(&text) {
                return Ok(());
            }
        }
        let why = self.complaints.join("; ");
        Err(LoadError::Early { tool, why })
    }

    /// Stops all its threads, until [`Self::go_on`]: it takes nothing meanwhile.
    pub fn hold(&self) -> io::Result<()> {
        Ok(kill(self.pid(), Signal::SIGSTOP)?)
    }

    /// Lets it go on.
    pub fn go_on(&self) -> io::Result<()> {
        Ok(kill(self.pid(), Signal::SIGCONT)?)
    }

    /// Waits until it has taken what was sent: until it has rested for as long as it
    /// may leave frames lying; `limit` at most. One that waits for a CPU does not rest.
    pub fn settle(&self, limit: Duration) -> io::Result<()> {
        let files = KernelFiles::live();
        let lying = self.tool.leaves_lying();
        let deadline = Instant::now() + limit;
        let mut resting = (Instant::now(), cpu_time(self.pid())?);
        while resting.0.elapsed() < lying && Instant::now() < deadline && !self.stop.is_asked() {
            std::thread::sleep(LOOK_EACH);
            if self.status()? != WaitStatus::StillAlive {
                return Ok(());
            }
            let cpu = cpu_time(self.pid())?;
            let sleeps = process::sleeps(&files, self.child.id()).map_err(io::Error::other)?;
            if !sleeps || cpu.saturating_sub(resting.1) > REST {
                resting = (Instant::now(), cpu);
            }
        }
        Ok(())
    }

    /// Ends it, as a service manager would, and counts what it wrote.
    pub fn finish(self) -> Result<Outcome, LoadError> {
        self.finish_within(LIMIT)
    }

    fn finish_within(mut self, limit: Duration) -> Result<Outcome, LoadError> {
        let tool = self.tool;
        if self.status()? != WaitStatus::StillAlive {
            // Frames may have come that it did not wait for.
            let deadline = Deadline::after(limit, "end");
            while self.line(deadline)?.is_some() {}
            let why = self.complaints.join("; ");
            return Err(LoadError::Early { tool, why });
        }
        kill(self.pid(), Signal::SIGTERM).map_err(io::Error::from)?;
        let deadline = Deadline::after(limit, "end");
        while self.line(deadline)?.is_some() {}
        let status = self.wait(deadline)?;
        let cpu = cpu_time(self.pid())?;
        let said = ToolReport::understand(tool, &self.said);
        let (true, Some(said)) = (matches!(status, WaitStatus::Exited(_, 0)), said) else {
            let why = self.complaints.join("; ");
            return Err(LoadError::Failed { tool, status, why });
        };
        let left = count::look_at(&self.output)?;
        Ok(Outcome {
            in_file: left.frames,
            said,
            filters: self.filters,
            file_bytes: left.bytes,
            cached_bytes: left.cached_bytes,
            cpu: cpu.saturating_sub(self.cpu_before),
        })
    }

    /// Whether it has ended, and how. It is left to be waited for once more, by drop:
    /// until then its CPU time can be asked.
    fn status(&self) -> io::Result<WaitStatus> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        Ok(waitid(Id::Pid(self.pid()), flags)?)
    }

    /// Waits for its end.
    fn wait(&self, deadline: Deadline) -> Result<WaitStatus, LoadError> {
        loop {
            match self.status()? {
                WaitStatus::StillAlive if !deadline.left().is_zero() => {
                    std::thread::sleep(LOOK_EACH);
                }
                WaitStatus::StillAlive => return Err(deadline.missed_by(self.tool)),
                status => return Ok(status),
            }
        }
    }

    /// The next line, which is kept; `None` after the last one.
    fn line(&mut self, deadline: Deadline) -> Result<Option<String>, LoadError> {
        match self.lines.recv_timeout(deadline.left()) {
            Ok(line) => {
                let text = line.text?;
                if line.is_error {
                    self.complaints.push(text.trim().to_owned());
                }
                self.said.push(text.clone());
                Ok(Some(text))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(deadline.missed_by(self.tool)),
        }
    }
}

/// Hands on the lines of a child's output, in a thread that ends with it.
fn read_lines(
    from: impl Read + Send + 'static,
    is_error: bool,
    to: Sender<Line>,
) -> io::Result<()> {
    std::thread::Builder::new().spawn(move || {
        let lines = BufReader::new(from).lines();
        let mut sent = lines.map(|text| to.send(Line { is_error, text }).is_ok());
        while sent.next() == Some(true) {}
    })?;
    Ok(())
}

impl Drop for Capture {
    fn drop(&mut self) {
        // Both fail for a child that has been waited for: fine.
        let _ = self.child.kill();
        self.stop.set_child(None);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
