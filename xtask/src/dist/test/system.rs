//! A system to install in: the bare one, with its changes in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use nix::mount::{MsFlags, mount};
use nix::unistd::Pid;

use super::Bed;
use crate::sh;

static MADE: AtomicU32 = AtomicU32::new(0);

/// A system; what it holds ends with this process.
pub struct System {
    /// Its root.
    pub root: PathBuf,
}

impl System {
    /// A new one.
    pub fn new(bed: &Bed<'_>) -> Result<Self> {
        // In the /run of this process.
        let folder = Path::new("/run/dist").join(MADE.fetch_add(1, Ordering::Relaxed).to_string());
        let [root, upper, work] = ["root", "upper", "work"].map(|name| folder.join(name));
        fs::create_dir_all(&folder)?;
        mounted("tmpfs", &folder, "mode=755")?;
        for folder in [&root, &upper, &work] {
            fs::create_dir(folder)?;
        }
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            bed.base.root.display(),
            upper.display(),
            work.display()
        );
        mounted("overlay", &root, &layers)?;
        mounted("proc", &root.join("proc"), "")?;
        // Of our network namespace.
        mounted("sysfs", &root.join("sys"), "")?;
        Ok(Self { root })
    }

    /// A program in it, as root.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.root).arg(program).env_clear();
        command.env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("HOME", "/root");
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    /// A program in it, as a user, in the user's groups.
    pub fn command_of(&self, user: &str, program: &str) -> Command {
        let mut command = self.command("setpriv");
        command.args([&format!("--reuid={user}"), &format!("--regid={user}")]);
        command.args(["--init-groups", "--", program]);
        command.env("HOME", format!("/home/{user}"));
        command
    }

    /// Runs a line of the shell as root; returns what it prints.
    pub fn sh(&self, line: &str) -> Result<String> {
        sh::output(self.command("sh").args(["-ec", line]))
    }

    /// Installs files and packages by apt, with what they need.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        let mut install = self.command("apt-get");
        install.args(["--quiet", "--yes", "install"]).args(packages);
        sh::output(&mut install).map(drop)
    }

    /// The process with that name that runs in it.
    pub fn process(&self, name: &str) -> Result<Pid> {
        for entry in fs::read_dir("/proc").context("cannot list /proc")? {
            let process = entry?.path();
            let comm = fs::read_to_string(process.join("comm")).unwrap_or_default();
            let root = fs::read_link(process.join("root")).unwrap_or_default();
            if comm.trim_end() == name && root == self.root {
                let pid = process.file_name().and_then(|it| it.to_str());
                return Ok(Pid::from_raw(pid.unwrap_or_default().parse()?));
            }
        }
        bail!("no process {name} in {}", self.root.display())
    }

    /// Copies a file into /root; returns where it is there.
    pub fn bring(&self, file: &Path) -> Result<String> {
        let name = file.file_name().context("a file has a name")?;
        let inside = Path::new("/root").join(name);
        let to = self.root.join("root").join(name);
        fs::copy(file, &to).with_context(|| format!("cannot write {}", to.display()))?;
        Ok(inside.display().to_string())
    }
}

/// Runs a command that must fail; returns all that it prints.
pub fn refused(mut command: Command) -> Result<String> {
    let done = command
        .output()
        .map_err(|e| sh::not_started(&command, &e))?;
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if done.status.success() {
        bail!("`{}` should fail, and printed: {said}", sh::line(&command));
    }
    Ok(said)
}

fn mounted(kind: &str, at: &Path, options: &str) -> Result<()> {
    mount(Some(kind), at, Some(kind), MsFlags::empty(), Some(options))
        .with_context(|| format!("cannot mount {kind} at {}", at.display()))
}
