//! Asks ptp4l.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::message::{Domain, Id, parse, request};
use super::{Measured, State};
use crate::chrony::is_late;
use tscap_base::kernel_files::{KernelFiles, numbered};
use tscap_time::MonoNs;
use tscap_time::ptp::PtpDevice;

/// Domains that are tried: those of the default profile, of gPTP (IEEE Std 802.1AS), and where those
/// of ITU-T G.8275.1, G.8275.2, G.8265.1 and SMPTE ST 2059-2 begin. ptp4l answers to no other
/// domain than its own.
const DOMAINS: [Domain; 6] = [
    Domain { number: 0, sdo: 0 },
    Domain { number: 0, sdo: 1 },
    Domain { number: 24, sdo: 0 },
    Domain { number: 44, sdo: 0 },
    Domain { number: 4, sdo: 0 },
    Domain {
        number: 127,
        sdo: 0,
    },
];
/// Looks at a socket at which nobody answers are so many turns apart.
const RETRIED_EVERY: u32 = 10;
/// So many turns without an answer, and what was said is not used any more.
const SILENT: u32 = 3;

static SOCKETS: AtomicU32 = AtomicU32::new(0);

/// Asks ptp4l.
#[derive(Debug)]
pub(crate) struct Client {
    paths: Vec<PathBuf>,
    socket: Option<UnixDatagram>,
    domain: Option<Domain>,
    /// Of the latest turn, and when that was.
    sequence: u16,
    asked: MonoNs,
    state: State,
    silent: u32,
    passes: u32,
    /// The device that it steers, by its number.
    device: Option<(u32, Result<PtpDevice, String>)>,
    folders: (KernelFiles, PathBuf),
}

impl Client {
    /// Finds ptp4l at the first of these paths at which it answers within a time; `devices` is the
    /// folder of PTP devices.
    pub fn open(paths: &[PathBuf], files: &KernelFiles, devices: &Path, within: Duration) -> Self {
        let mut client = Self {
            paths: paths.to_vec(),
            socket: None,
            domain: None,
            sequence: 0,
            asked: MonoNs(0),
            state: State::default(),
            silent: 0,
            passes: 0,
            device: None,
            folders: (files.clone(), devices.to_owned()),
        };
        client.ask(within);
        client
    }

    /// Asks, and takes what is answered within a time.
    pub fn ask(&mut self, within: Duration) {
        if self.passes > 0 {
            self.passes -= 1;
            return;
        }
        if self.socket.is_none() {
            self.socket = self.paths.iter().find_map(|path| connect(path).ok());
        }
        let Some(socket) = &self.socket else {
            self.passes = RETRIED_EVERY;
            return;
        };
        let until = Instant::now() + within;
        self.sequence = self.sequence.wrapping_add(1);
        self.asked = MonoNs::now();
        let all = match &self.domain {
            Some(domain) => std::slice::from_ref(domain),
            None => &DOMAINS[..],
        };
        // ptp4l is asked for one thing in all domains, then for the rest in its own: its queue is
        // short.
        let known = self.domain.is_some();
        let first = if known { &Id::ALL[..] } else { &Id::ALL[..1] };
        let requests = all
            .iter()
            .flat_map(|domain| first.iter().map(|id| (*id, *domain)));
        let mut left = 0;
        for (id, domain) in requests {
            match socket.send(&request(id, domain, self.sequence)) {
                Ok(_) => left += 1,
                Err(error) if is_late(&error) => {}
                Err(_) => return self.is_gone(),
            }
        }
        let mut octets = [0; 1500];
        let mut has_answered = false;
        while left > 0 {
            let time = until.saturating_duration_since(Instant::now());
            // 0 would have no end.
            let timeout = Some(time.max(Duration::from_micros(1)));
            let received = socket
                .set_read_timeout(timeout)
                .and_then(|()| socket.recv(&mut octets));
            match received {
                Ok(length) => {
                    let Some((sequence, domain, data)) = parse(&octets[..length]) else {
                        continue;
                    };
                    if sequence != self.sequence {
                        continue;
                    }
                    has_answered = true;
                    if self.domain.is_none() {
                        self.domain = Some(domain);
                        left = 1;
                        for id in &Id::ALL[1..] {
                            let sent = socket.send(&request(*id, domain, sequence));
                            left += usize::from(sent.is_ok());
                        }
                    }
                    self.state.take(data, self.asked);
                    left -= 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => break,
                Err(_) => return self.is_gone(),
            }
            if time.is_zero() {
                break;
            }
        }
        self.silent = if has_answered { 0 } else { self.silent + 1 };
        if self.silent >= SILENT {
            self.is_gone();
        }
    }

    /// It has ended, or hangs: it may come again with another domain.
    fn is_gone(&mut self) {
        self.socket = None;
        self.domain = None;
        self.state = State::default();
        self.silent = 0;
        self.passes = RETRIED_EVERY;
    }

    /// What it has said, and the clock that it measures, read now.
    pub fn latest(&mut self) -> Option<(&State, Measured)> {
        self.state.as_of?;
        let measured = match self.state.port() {
            None => Measured::Unknown("it does not say which clock it measures".into()),
            Some((_, false)) => Measured::Host,
            Some((interface, true)) => {
                let (files, devices) = &self.folders;
                let folder = files.sys("class/net").join(interface).join("device/ptp");
                let number = numbered(&folder, "ptp").unwrap_or_default();
                match number.first() {
                    None => Measured::Unknown(format!("{interface} has no PTP device")),
                    Some(number) => {
                        let path = devices.join(format!("ptp{number}"));
                        if self.device.as_ref().is_none_or(|(open, _)| open != number) {
                            let device = PtpDevice::open(&path);
                            self.device = Some((*number, device.map_err(|it| it.to_string())));
                        }
                        let (_, device) = self.device.as_mut().expect("it was opened");
                        let reading = match device {
                            Ok(device) => device.read().map_err(|error| error.to_string()),
                            Err(why) => Err(why.clone()),
                        };
                        let path = path.display().to_string();
                        Measured::Device { path, reading }
                    }
                }
            }
        };
        Some((&self.state, measured))
    }
}

/// With a name of its own that ptp4l can answer to, in no file system: it ends with the socket.
fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let number = SOCKETS.fetch_add(1, Ordering::Relaxed);
    let name = format!("tscap-utc.{}.{number}", process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.connect(path)?;
    // A daemon that does not read must not stop this program.
    socket.set_write_timeout(Some(Duration::from_millis(1)))?;
    Ok(socket)
}
