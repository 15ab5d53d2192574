//! Processes of their own that keep privileges which a command gives up: hidden commands of tscap,
//! which only tscap starts.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::set_name;
use tscap_host::caps::{self, Capability};
use tscap_host::wake;

/// This program, also if its file was replaced.
const PROGRAM: &str = "/proc/self/exe";
/// How long such a process may take for one request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long it may take to end when it is asked for nothing more.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Who may run this program by the capabilities of its file could start the process with
/// requests of their own making. A command has it inherit this, which only who has it can.
const VOUCHED_BY: [Capability; 1] = [Capability::NetAdmin];

/// Starts the hidden `command` with privileges that this thread has now. Gives the process, and
/// a socket to it, which is its standard input.
///
/// # Errors
/// If procfs is not mounted, or the kernel refuses.
pub fn start(command: &str) -> io::Result<(Child, UnixStream)> {
    let (own, other) = UnixStream::pair()?;
    own.set_read_timeout(Some(ANSWERS_WITHIN))?;
    own.set_write_timeout(Some(ANSWERS_WITHIN))?;
    let mut program = Command::new(PROGRAM);
    program
        .arg(command)
        .stdin(OwnedFd::from(other))
        .stdout(Stdio::null())
        // Ctrl-C ends the command, and that ends this.
        .process_group(0);
    let process = if caps::are_of_file() {
        caps::lending(&VOUCHED_BY, || program.spawn())??
    } else {
        program.spawn()?
    };
    Ok((process, own))
}

/// Waits until a process has ended whose socket is closed, for a second at most.
pub fn wait_for_end(process: &mut Child) {
    let deadline = Instant::now() + ENDS_WITHIN;
    while matches!(process.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Makes this the process of that name, and gives the socket to who has started it, who decides
/// when it ends.
///
/// # Errors
/// If no command of tscap has started it, or standard input can't be had.
pub fn begin(name: &CStr) -> io::Result<UnixStream> {
    if caps::are_of_file() && !caps::has_inherited(&VOUCHED_BY)? {
        return Err(io::Error::other("no command has started this process"));
    }
    wake::take_no_others()?;
    set_name(name)?;
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
