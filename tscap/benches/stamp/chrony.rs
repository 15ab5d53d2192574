//! chronyd, which never sets the clock here, and what it logs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tscap_testkit::netns::Netns;

/// Where distributions have it.
const INSTALLED: [&str; 2] = ["/usr/sbin/chronyd", "/usr/local/sbin/chronyd"];
/// Between two looks at its log.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// It asks 64 times a second, which it does only where answers come within 10 ms.
const POLL: &str = "-6";

/// The program; Debian's, unpacked into `folder`, where it is not installed.
pub fn find(folder: &Path) -> Result<PathBuf> {
    let mut installed = INSTALLED.iter().map(PathBuf::from);
    if let Some(path) = installed.find(|path| path.is_file()) {
        return Ok(path);
    }
    let run = |command: &mut Command| -> Result<()> {
        let output = command.current_dir(folder).output();
        let output = output.with_context(|| format!("run {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?}: {said}");
        Ok(())
    };
    run(Command::new("apt-get").args(["download", "chrony"]))?;
    run(Command::new("sh").args(["-c", "dpkg -x chrony_*.deb chrony"]))?;
    Ok(folder.join("chrony/usr/sbin/chronyd"))
}

/// What a measurement of the client's gave, seconds, and how both stamps of its own were made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Of the server's clock to its own: here the same clock.
    pub offset: f64,
    /// To the server and back.
    pub delay: f64,
    /// Both by the kernel, as far as it knows.
    pub by_kernel: bool,
}

/// A chronyd that runs; ended on drop.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// One in `netns` with its own `lines`, and its files in a new folder `name` of `folder`.
    pub fn start(
        program: &Path,
        netns: &Netns,
        folder: &Path,
        name: &str,
        lines: &[&str],
    ) -> Result<Self> {
        let folder = folder.join(name);
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        let file = folder.join("chrony.conf");
        let at = folder.display();
        let own = format!("pidfile {at}/pid\nlogdir {at}\ncmdport 0\nbindcmdaddress /\n");
        fs::write(&file, own + &lines.join("\n") + "\n").context("write a configuration")?;
        let mut command = netns.command(program.to_str().context("a path of UTF-8")?);
        // -x: it never touches the clock. -d: it stays here. Its own user may not be there.
        command.args(["-x", "-d", "-u", "root", "-f"]).arg(&file);
        let err = fs::File::create(folder.join("said")).context("make a file")?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(err).spawn().context("start chronyd")?;
        Ok(Self {
            child,
            log: folder.join("measurements.log"),
        })
    }

    /// A server that answers anybody.
    pub fn server(program: &Path, netns: &Netns, folder: &Path) -> Result<Self> {
        let lines = ["local stratum 1", "allow all"];
        Self::start(program, netns, folder, "server", &lines)
    }

    /// A client of the server at `address`.
    pub fn client(
        program: &Path,
        netns: &Netns,
        folder: &Path,
        name: &str,
        address: &str,
    ) -> Result<Self> {
        let server = format!("server {address} minpoll {POLL} maxpoll {POLL}");
        let lines = ["port 0", &server, "log rawmeasurements"];
        Self::start(program, netns, folder, name, &lines)
    }

    /// Waits for so many measurements, after the first tenth of them.
    pub fn measurements(&mut self, count: usize) -> Result<Vec<Measurement>> {
        let first = count / 10;
        let limit = Duration::from_secs(30) + Duration::from_millis(50) * count as u32;
        let deadline = Instant::now() + limit;
        loop {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let all: Vec<_> = log.lines().filter_map(parse).collect();
            if let Some(wanted) = all.get(first..first + count) {
                return Ok(wanted.to_vec());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("chronyd ended, {status}: see {}", self.log.display());
            }
            ensure!(
                Instant::now() < deadline,
                "{} measurements in {limit:?}, not {count}",
                all.len()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // `ip netns exec` is the same process. Both fail for one that has ended: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of measurements.log (chrony.conf(5), `log`): date, time, address, leap, stratum,
/// three columns of tests, both polls, score, offset, delay, …, and last how the transmit and
/// the receive time were made.
fn parse(line: &str) -> Option<Measurement> {
    let columns: Vec<_> = line.split_whitespace().collect();
    // Others are headings.
    let is_measured = columns.first()?.starts_with("20");
    let number = |at: usize| columns.get(at)?.parse().ok();
    let [.., sent, received] = columns[..] else {
        return None;
    };
    is_measured.then_some(())?;
    Some(Measurement {
        offset: number(11)?,
        delay: number(12)?,
        by_kernel: (sent, received) == ("K", "K"),
    })
}
