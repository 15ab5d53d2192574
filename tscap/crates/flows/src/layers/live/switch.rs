//! A process of its own that switches the kernel's statistics of programs on and off, which takes
//! CAP_SYS_ADMIN each time: `tscap switch-statistics`, which `tscap qos --layers` starts.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Child;

use aya::sys::{Stats, enable_stats};
use tscap_host::caps::{self, Capability};
use tscap_live::helper_process;

/// The hidden command of tscap.
pub const COMMAND: &str = "switch-statistics";

/// What the process keeps.
const NEEDS: [Capability; 1] = [Capability::SysAdmin];

/// The process, from the measurement's side. Statistics are off once it has ended.
#[derive(Debug)]
pub(super) struct Switch {
    process: Child,
    stream: UnixStream,
}

impl Switch {
    /// Starts the process with privileges that this thread has now.
    ///
    /// # Errors
    /// If this thread lacks CAP_SYS_ADMIN, or the process can't be started.
    pub fn start() -> io::Result<Self> {
        if !caps::missing(&NEEDS)?.is_empty() {
            return Err(io::Error::other("it takes CAP_SYS_ADMIN"));
        }
        let (process, stream) = helper_process::start(COMMAND)?;
        Ok(Self { process, stream })
    }

    /// Returns when statistics are on, or off.
    ///
    /// # Errors
    /// The kernel's, or that the process has ended.
    pub fn turn(&mut self, on: bool) -> io::Result<()> {
        self.stream.write_all(&[u8::from(on)])?;
        let mut answer = [0; size_of::<i32>()];
        self.stream.read_exact(&mut answer)?;
        match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
        helper_process::wait_for_end(&mut self.process);
    }
}

/// Serves the measurement that has started this process, until that closes its socket.
///
/// # Errors
/// If no measurement has started it, or standard input is no such socket.
pub fn serve() -> io::Result<()> {
    let mut stream = helper_process::begin(c"tscap-switch")?;
    caps::keep_only(&NEEDS)?;
    let mut _on = None;
    let mut asked = [0];
    while stream.read(&mut asked)? > 0 {
        let turned = match asked {
            [0] => Ok(None),
            _ => enable_stats(Stats::RunTime).map(Some),
        };
        let errno = match turned {
            Ok(on) => {
                _on = on;
                0
            }
            Err(error) => error.io_error.raw_os_error().unwrap_or(libc::EIO),
        };
        stream.write_all(&errno.to_ne_bytes())?;
    }
    Ok(())
}
