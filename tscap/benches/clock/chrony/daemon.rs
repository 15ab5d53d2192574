//! chronyd without control of the clock (`-x`): it serves the host's time, or follows a
//! server in memory.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tscap_testkit::command::{run, wait_for};
use tscap_testkit::files::folder;
use tscap_testkit::netns::Netns;
use tscap_testkit::{made, wait};

/// More than its start or end, or an answer of it takes.
const LIMIT: Duration = Duration::from_secs(10);

/// The programs.
pub struct Programs {
    chronyd: PathBuf,
    chronyc: PathBuf,
    /// As chronyd calls itself.
    pub version: String,
}

impl Programs {
    /// In a folder, below which they are as in Debian's package; or those of the system.
    pub fn find(folder: Option<&Path>) -> Result<Self> {
        let root = folder.unwrap_or(Path::new("/"));
        let [chronyd, chronyc] = ["usr/sbin/chronyd", "usr/bin/chronyc"].map(|it| root.join(it));
        for program in [&chronyd, &chronyc] {
            ensure!(program.exists(), "no {}", program.display());
        }
        let said = run(Command::new(&chronyd).arg("--version"), LIMIT);
        let version = said
            .stdout
            .split(" (")
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok(Self {
            chronyd,
            chronyc,
            version,
        })
    }
}

/// A running chronyd. Killed when it is dropped.
pub struct Chronyd {
    child: Child,
    folder: TempDir,
    chronyc: PathBuf,
}

impl Chronyd {
    /// Starts it in a namespace with these lines of configuration, and waits until it answers.
    pub fn start(programs: &Programs, netns: &Netns, lines: &[&str]) -> Result<Self> {
        let folder = folder();
        // As it wants the place of its socket to be.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700))?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        let own = [
            "cmdport 0".to_owned(),
            format!("bindcmdaddress {}", at("socket")),
            format!("pidfile {}", at("pid")),
        ];
        let lines = lines.iter().map(|line| (*line).to_owned()).chain(own);
        let configuration = at("conf");
        std::fs::write(&configuration, lines.collect::<Vec<_>>().join("\n"))?;
        let mut command = netns.command(&programs.chronyd.display().to_string());
        command.args(["-x", "-d", "-u", "root", "-f", &configuration]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(folder.path().join("errors"))?);
        let child = command.spawn().context("cannot start chronyd")?;
        made::note("process", child.id());
        let mut chronyd = Self {
            child,
            folder,
            chronyc: programs.chronyc.clone(),
        };
        let answers = wait::until("an answer of chronyd, or its end", LIMIT, || {
            let is_over = chronyd.child.try_wait().ok().flatten().is_some();
            match chronyd.tracking() {
                Ok(_) => Some(true),
                Err(_) => is_over.then_some(false),
            }
        });
        if !answers {
            let errors = std::fs::read_to_string(chronyd.folder.path().join("errors"));
            bail!("chronyd ended: {}", errors.unwrap_or_default());
        }
        Ok(chronyd)
    }

    /// What it tracks.
    pub fn tracking(&self) -> Result<Tracking> {
        let socket = self.folder.path().join("socket");
        let mut command = Command::new(&self.chronyc);
        command.arg("-h").arg(socket).args(["-c", "tracking"]);
        let said = run(&mut command, LIMIT).stdout;
        let fields: Vec<_> = said.trim().split(',').collect();
        // As chronyc(1) lists them: reference, its name, stratum, time of the latest update,
        // correction of the system's time, ...
        let &[_, _, stratum, updated, off_s, ..] = fields.as_slice() else {
            bail!("chronyc said {said:?}");
        };
        let off_s: f64 = off_s.parse().context("no offset")?;
        Ok(Tracking {
            has_server: stratum != "0",
            updated: updated.to_owned(),
            off_ns: off_s * 1e9,
        })
    }
}

impl Drop for Chronyd {
    fn drop(&mut self) {
        // Fails for one that has ended: fine.
        let _ = self.child.kill();
        let _ = wait_for(&mut self.child, LIMIT);
    }
}

/// What it says of itself.
pub struct Tracking {
    /// Whether it follows a server.
    pub has_server: bool,
    /// When it took in a reply last, as it says it.
    pub updated: String,
    /// The host's clock against the server's time as it knows that, ns.
    pub off_ns: f64,
}
