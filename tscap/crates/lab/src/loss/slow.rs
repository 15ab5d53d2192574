//! A file that takes so many bytes a second: a named pipe with a slow reader.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use tscap_host::affinity;

/// How often it reads.
const READS_EACH: Duration = Duration::from_millis(1);
/// What it may take at once, in times of reading: so long it may be kept waiting.
const TIMES: u32 = 4;
/// Least length of the pipe, bytes, the kernel's default, and the greatest that it
/// gives to everybody (pipe(7)).
const PIPES: [u64; 2] = [64 << 10, 1 << 20];

/// The pipe; its reader ends when it is dropped.
#[derive(Debug)]
pub struct SlowFile {
    folder: TempDir,
    /// What the pipe holds, bytes.
    pub holds: u64,
    ended: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl SlowFile {
    /// One that takes `bytes_per_s`, by a reader on these CPUs.
    pub fn new(bytes_per_s: u64, cpus: &[u32]) -> io::Result<Self> {
        let folder = TempDir::with_prefix("tscap-loss-")?;
        let path = folder.path().join("slow.pcapng");
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // Open for writing too: it is never without a writer, and so never at its end.
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true);
        let pipe = options.custom_flags(libc::O_NONBLOCK).open(&path)?;
        let in_time = bytes_per_s / 1000 * (READS_EACH * TIMES).as_millis() as u64;
        let [least, most] = PIPES;
        let wanted = in_time.clamp(least, most) as i32;
        // Less will do if the system has a limit.
        let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(wanted));
        let holds = fcntl(&pipe, FcntlArg::F_GETPIPE_SZ)? as u64;
        let ended = Arc::new(AtomicBool::new(false));
        let reader = std::thread::Builder::new().name("tscap-slow".into());
        let reader = reader.spawn({
            let (ended, cpus) = (Arc::clone(&ended), cpus.to_owned());
            move || {
                // Where else it would be is where the sender is: no worse than before.
                let _ = affinity::allow(&cpus);
                read_slowly(pipe, holds, bytes_per_s, &ended);
            }
        })?;
        Ok(Self {
            folder,
            holds,
            ended,
            reader: Some(reader),
        })
    }

    /// What to write to.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("slow.pcapng")
    }
}

impl Drop for SlowFile {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // It can't panic, and nothing follows from it.
            let _ = reader.join();
        }
    }
}

/// From a pipe that holds so many bytes.
fn read_slowly(mut pipe: File, holds: u64, bytes_per_s: u64, ended: &AtomicBool) {
    let most = (READS_EACH * TIMES).as_secs_f64() * bytes_per_s as f64;
    let mut buffer = vec![0; holds as usize];
    let (mut may_take, mut latest) = (0.0, Instant::now());
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(READS_EACH);
        let now = Instant::now();
        may_take += now.duration_since(latest).as_secs_f64() * bytes_per_s as f64;
        latest = now;
        // What it could not read for want of bytes is not made up for.
        may_take = f64::min(may_take, most);
        // An empty pipe is an error too.
        while may_take >= 1.0
            && let Ok(count) = pipe.read(&mut buffer[..(may_take as usize).min(holds as usize)])
            && count > 0
        {
            may_take -= count as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn no_rate_is_too_high() {
        let fast = SlowFile::new(u64::MAX, &[0]).unwrap();
        let mut options = OpenOptions::new();
        let mut file = options.write(true).open(fast.path()).unwrap();
        file.write_all(&vec![0; 4 << 20]).unwrap();
    }

    #[test]
    fn it_takes_no_more_than_it_should() {
        let slow = SlowFile::new(10_000_000, &affinity::allowed_cpus().unwrap()).unwrap();
        let mut file = OpenOptions::new().write(true).open(slow.path()).unwrap();
        assert!(slow.holds >= PIPES[0]);
        let start = Instant::now();
        let bytes = 1_000_000;
        file.write_all(&vec![7; bytes + slow.holds as usize])
            .unwrap();
        let taken = start.elapsed().as_secs_f64();
        // It may have had something to make up for at the start; a busy machine may be
        // slower.
        let least = 0.099 - (READS_EACH * TIMES).as_secs_f64();
        assert!((least..2.0).contains(&taken), "{taken}");
        let path = slow.path();
        drop(slow);
        assert!(!path.exists());
    }
}
