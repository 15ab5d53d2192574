//! What a service manager is told: that a capture is ready, how it goes, that it ends, and
//! that it is alive (sd_notify(3)). Without NOTIFY_SOCKET nobody is told.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tscap_base::failure::{Context as _, Failure};

/// A service manager that takes nothing must not hold up the capture for longer.
const TAKEN_WITHIN: Duration = Duration::from_millis(500);

/// The service that this process is, if it is one.
#[derive(Debug)]
pub struct Service {
    manager: Option<Manager>,
    /// It is killed when it has not said for so long that it is alive.
    watchdog: Option<Duration>,
}

#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Service {
    /// By NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
    ///
    /// # Errors
    /// If the socket's address is none.
    pub fn from_env() -> Result<Self, Failure> {
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_meant = |pid| pid == u64::from(std::process::id());
        let period = number("WATCHDOG_USEC")
            .filter(|period| *period > 0 && number("WATCHDOG_PID").is_none_or(is_meant));
        let manager = env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty());
        Ok(Self {
            manager: manager.map(Manager::at).transpose()?,
            watchdog: period.map(Duration::from_micros),
        })
    }

    /// The capture has begun.
    ///
    /// # Errors
    /// If that can't be told: the service manager will end this process.
    pub fn ready(&self) -> Result<(), Failure> {
        self.tell("READY=1")
            .context("cannot tell the service manager (NOTIFY_SOCKET)")
    }

    /// The capture is about to end.
    pub fn stopping(&self) {
        self.tell_if_heard("STOPPING=1");
    }

    /// How it goes, in a line.
    pub fn status(&self, line: &str) {
        self.tell_if_heard(&format!("STATUS={line}"));
    }

    /// Says that this process is alive, at least twice in the time that the service manager
    /// waits for it, while each number of `beats` is another one than before. To be polled where
    /// a hang is to be found out; never ends.
    pub async fn watch(&self, mut beats: impl FnMut() -> Vec<u64>) -> Infallible {
        let (Some(_), Some(period)) = (&self.manager, self.watchdog) else {
            return std::future::pending().await;
        };
        let mut before = Vec::new();
        loop {
            let now = beats();
            if before.iter().zip(&now).all(|(before, now)| before != now) {
                self.tell_if_heard("WATCHDOG=1");
                before = now;
            }
            tokio::time::sleep(period / 4).await;
        }
    }

    /// That nobody hears it has been said when the capture was ready.
    fn tell_if_heard(&self, text: &str) {
        let _ = self.tell(text);
    }

    fn tell(&self, text: &str) -> io::Result<()> {
        match &self.manager {
            Some(Manager { socket, address }) => {
                socket.send_to_addr(text.as_bytes(), address).map(drop)
            }
            None => Ok(()),
        }
    }
}

impl Manager {
    fn at(socket: OsString) -> Result<Self, Failure> {
        let what = || format!("cannot use NOTIFY_SOCKET={}", socket.display());
        let address = address(&socket).context(what())?;
        let socket = UnixDatagram::unbound().context(what())?;
        let timeout = socket.set_write_timeout(Some(TAKEN_WITHIN));
        timeout.context(what())?;
        Ok(Self { socket, address })
    }
}

/// A path, or behind an @ a name in the abstract namespace.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(socket),
        _ => Err(io::Error::other("it begins with neither / nor @")),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn service(watchdog: Duration) -> (Service, UnixDatagram, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let heard = UnixDatagram::bind(&path).unwrap();
        heard.set_nonblocking(true).unwrap();
        let service = Service {
            manager: Some(Manager::at(path.into()).unwrap()),
            watchdog: Some(watchdog),
        };
        (service, heard, folder)
    }

    fn messages(heard: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 4096];
        std::iter::from_fn(|| {
            let length = heard.recv(&mut buffer).ok()?;
            Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
        })
        .collect()
    }

    #[tokio::test]
    async fn a_process_is_alive_while_its_work_goes_on() {
        let (service, heard, _folder) = service(Duration::from_millis(40));
        let (beat, other, hangs) = (Cell::new(0), Cell::new(0), Cell::new(false));
        let watch = service.watch(|| {
            beat.set(beat.get() + u64::from(!hangs.get()));
            other.set(other.get() + 1);
            vec![other.get(), beat.get()]
        });
        let look = async {
            let mut alive = Vec::new();
            while alive.len() < 4 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                alive.extend(messages(&heard));
            }
            hangs.set(true);
            tokio::time::sleep(Duration::from_millis(200)).await;
            (alive, messages(&heard))
        };
        let (alive, hung) = tokio::select! {
            never = watch => match never {},
            looked = look => looked,
        };
        assert!(
            alive.iter().all(|message| message == "WATCHDOG=1"),
            "{alive:?}"
        );
        assert!(hung.is_empty(), "{hung:?}");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for socket in ["run/notify", "vsock:2:1234"] {
            let failure = Manager::at(socket.into()).unwrap_err().to_string();
            assert!(
                failure.contains(socket) && failure.contains("neither / nor @"),
                "{failure}"
            );
        }
    }
}
