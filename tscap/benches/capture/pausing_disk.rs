//! A disk that pauses.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::{NamedTempFile, TempDir};

use super::amount::{BETWEEN_PAUSES_S, PAUSE_S};
use super::common::tmpfs::own_mounts;

/// Freezes the file system of its working directory for `$0` seconds after each `$1`, and says so
/// the first time. Its input ends with the bench, whatever ends that: then it thaws.
const PAUSES: &str = r#"
    exec 2>&1
    passes() { read -rt "$1"; [ $? -gt 128 ]; }
    pause() { fsfreeze -f . && passes "$0" && fsfreeze -u .; }
    trap 'fsfreeze -u . 2>/dev/null' EXIT
    pause || exit
    echo paused
    exec >/dev/null 2>&1
    while passes "$1" && pause; do :; done"#;

/// A file system on a loop device whose image is in another file system, which freezes: the page
/// cache goes on taking data meanwhile, and the device takes none. All of it is undone on drop,
/// in this order.
pub struct PausingDisk {
    pauses: Pauses,
    upper: Image,
    _lower: Image,
}

impl PausingDisk {
    /// With room for files of up to so many bytes; in `folder` it takes less than twice as much.
    /// Only this thread and those that it starts from now on can see it. Needs root.
    ///
    /// # Errors
    /// If a loop device, a mount, or freezing can't be had.
    pub fn open(folder: &Path, bytes: u64) -> Result<Self> {
        own_mounts()?;
        let lower = Image::mount(folder, bytes / 4 * 7).context("the lower file system")?;
        let upper = Image::mount(lower.folder(), bytes / 2 * 3).context("the upper one")?;
        Ok(Self {
            pauses: Pauses::start(&lower)?,
            upper,
            _lower: lower,
        })
    }

    /// Where files are.
    pub fn folder(&self) -> &Path {
        self.upper.folder()
    }

    /// For what was measured meanwhile.
    ///
    /// # Errors
    /// If the pauses have ended.
    pub fn still_pauses(&mut self) -> Result<()> {
        let ended = self.pauses.0.try_wait()?;
        ensure!(ended.is_none(), "the disk pauses no longer: bash has ended");
        Ok(())
    }
}

/// A new file system, mounted. Its image has no name, and its loop device ends with the mount.
struct Image(TempDir);

impl Image {
    fn mount(folder: &Path, bytes: u64) -> Result<Self> {
        let image = NamedTempFile::new_in(folder)?;
        image.as_file().set_len(bytes)?;
        // Without what ext4 writes and waits for by itself.
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-q", "-F", "-m", "0", "-O", "^has_journal"]);
        mkfs.args(["-E", "lazy_itable_init=0,nodiscard"]);
        output(mkfs.arg(image.path()))?;
        let mut attach = Command::new("losetup");
        attach.args(["--find", "--show", "--direct-io=on"]);
        let device = output(attach.arg(image.path()))?;
        let target = tempfile::tempdir()?;
        let (flags, options) = (MsFlags::empty(), Some("nodelalloc"));
        let mounted = mount(Some(&*device), target.path(), Some("ext4"), flags, options);
        // Once it is mounted, this means: as soon as it no longer is.
        let detached = output(Command::new("losetup").args(["--detach", &device]));
        mounted.with_context(|| format!("cannot mount {device}"))?;
        let mounted = Self(target);
        detached?;
        Ok(mounted)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Lazily: a process that is just being killed may still hold a file.
        let _ = umount2(self.folder(), MntFlags::MNT_DETACH);
    }
}

/// Pauses, until drop.
struct Pauses(Child);

impl Pauses {
    /// The working directory holds the file system: no other can come into its place.
    fn start(image: &Image) -> Result<Self> {
        let mut bash = Command::new("bash");
        bash.args(["-c", PAUSES]).current_dir(image.folder());
        bash.args([PAUSE_S, BETWEEN_PAUSES_S].map(|seconds| seconds.to_string()));
        // Out of reach of a terminal's Ctrl-C.
        bash.process_group(0);
        bash.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut pauses = Self(bash.spawn().context("cannot start bash")?);
        let mut said = String::new();
        // It closes its output after the first pause.
        let stdout = pauses.0.stdout.take().context("no standard output")?;
        { stdout }.read_to_string(&mut said)?;
        ensure!(said == "paused\n", "cannot freeze it: {}", said.trim());
        Ok(pauses)
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        // Its input ends. Thawed before anything below is unmounted, which would wait for it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What a program says that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output();
    let done = done.with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{name}: {}", said.trim());
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
