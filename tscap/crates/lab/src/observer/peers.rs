//! The programs whose traffic passes: one that asks and sends, in the measuring thread, and
//! one that answers and takes, in threads of its own on the receiving end.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tscap_host::{affinity, process};
use tscap_network::address;
use tscap_traffic::load::Pair;

/// Addresses of both ends (RFC 5737: for documentation, so nobody's).
const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PREFIX: u8 = 30;
/// Bytes of a question and of its answer.
const QUESTION: usize = 64;
/// Longest wait for an answer: then it is lost.
const ANSWERED: Duration = Duration::from_secs(1);
/// How often the threads look whether they are to end.
const LOOK_EACH: Duration = Duration::from_millis(100);
/// Written and read at once, bytes.
const CHUNK: usize = 128 << 10;

/// A stream that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stream {
    /// Bytes that were taken at the other end.
    pub bytes: u64,
    /// From its first byte sent to its last one taken, ns.
    pub ns: u64,
    /// CPU time of the thread that took them.
    pub taker: Duration,
}

/// Both programs. The threads end when it is dropped.
pub(super) struct Peers {
    asking: UdpSocket,
    streams: SocketAddr,
    taken: Receiver<io::Result<(u64, Instant, Duration)>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Peers {
    /// Of a pair, for a thread in the sending end's namespace; the others run on
    /// `receive_cpu`.
    pub fn new(pair: &Pair, receive_cpu: u32) -> io::Result<Self> {
        address::add(pair.tx.index, HERE, PREFIX)?;
        let rx = pair.rx.index;
        let (answering, listener) = pair.rx_netns.within(|| {
            address::add(rx, THERE, PREFIX)?;
            Ok((UdpSocket::bind((THERE, 0))?, TcpListener::bind((THERE, 0))?))
        })?;
        let asking = UdpSocket::bind((HERE, 0))?;
        asking.connect(answering.local_addr()?)?;
        asking.set_read_timeout(Some(ANSWERED))?;
        answering.set_read_timeout(Some(LOOK_EACH))?;
        listener.set_nonblocking(true)?;
        let ends = Arc::new(AtomicBool::new(false));
        let (tell, taken) = channel();
        let streams = listener.local_addr()?;
        let on_cpu = |name: &str, work: Box<dyn FnOnce(&AtomicBool) + Send>| {
            let ends = Arc::clone(&ends);
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || {
                // Elsewhere it does the same, only less alike.
                let _ = affinity::pin_to(receive_cpu);
                work(&ends);
            })
        };
        let threads = vec![
            on_cpu("tscap-echo", Box::new(move |ends| answer(&answering, ends)))?,
            on_cpu(
                "tscap-sink",
                Box::new(move |ends| take(&listener, &tell, ends)),
            )?,
        ];
        Ok(Self {
            asking,
            streams,
            taken,
            ends,
            threads,
        })
    }

    /// Asks so many times, and says how long each answer took, ns; those that did not come
    /// are left out.
    pub fn ask(&self, times: u32) -> io::Result<Vec<i64>> {
        let mut round_trips = Vec::with_capacity(times as usize);
        let mut question = [0; QUESTION];
        for number in 0..times {
            question[..4].copy_from_slice(&number.to_be_bytes());
            let asked = Instant::now();
            self.asking.send(&question)?;
            // An answer that comes late is of an earlier question.
            while let Some(answer) = self.answer()? {
                if answer == number {
                    let ns = asked.elapsed().as_nanos();
                    round_trips.push(i64::try_from(ns).unwrap_or(i64::MAX));
                    break;
                }
            }
        }
        Ok(round_trips)
    }

    /// The number of the next answer; `None` if it does not come.
    fn answer(&self) -> io::Result<Option<u32>> {
        let mut answer = [0; QUESTION];
        match self.asking.recv(&mut answer) {
            Ok(_) => Ok(answer
                .first_chunk()
                .map(|number| u32::from_be_bytes(*number))),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a stream for so long, and waits until all of it has been taken.
    pub fn stream(&self, lasting: Duration) -> io::Result<Stream> {
        let mut stream = TcpStream::connect(self.streams)?;
        let chunk = vec![0; CHUNK];
        let begun = Instant::now();
        while begun.elapsed() < lasting {
            stream.write_all(&chunk)?;
        }
        drop(stream);
        let limit = lasting + Duration::from_secs(10);
        let taken = self.taken.recv_timeout(limit);
        let (bytes, end, taker) =
            taken.map_err(|_| io::Error::other("the stream was not taken"))??;
        let ns = end.saturating_duration_since(begun).as_nanos();
        Ok(Stream {
            bytes,
            ns: u64::try_from(ns).unwrap_or(u64::MAX),
            taker,
        })
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}

fn answer(socket: &UdpSocket, ends: &AtomicBool) {
    let mut question = [0; QUESTION];
    while !ends.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut question) {
            // One that can't be answered is missed by who asks.
            let _ = socket.send_to(&question[..length], from);
        }
    }
}

fn take(
    listener: &TcpListener,
    tell: &Sender<io::Result<(u64, Instant, Duration)>>,
    ends: &AtomicBool,
) {
    while !ends.load(Ordering::Relaxed) {
        match listener.accept() {
            // Nobody may be waiting any more.
            Ok((stream, _)) => _ = tell.send(take_all(stream)),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn take_all(mut stream: TcpStream) -> io::Result<(u64, Instant, Duration)> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let before = process::thread_cpu_time()?;
    let (mut chunk, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        match stream.read(&mut chunk)? {
            0 => break,
            length => bytes += length as u64,
        }
    }
    let taker = process::thread_cpu_time()?.saturating_sub(before);
    Ok((bytes, Instant::now(), taker))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
