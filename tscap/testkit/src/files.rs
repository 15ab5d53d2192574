//! Places to write to.

use std::fs::{self, Permissions};
use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{FcntlArg, fcntl};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::TempDir;

use crate::command::must;

/// A folder that goes away.
pub fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("tscap-test-")
        .tempdir()
        .expect("a temporary folder")
}

/// A folder that goes away, where every user may run and write.
pub fn public_folder() -> TempDir {
    let folder = folder();
    let everybody = Permissions::from_mode(0o777);
    fs::set_permissions(folder.path(), everybody).expect("open the folder to everybody");
    folder
}

/// Copies a program where everybody can run it. By another process: a child that another
/// test starts meanwhile would have the copy open for writing, and it could not run (ETXTBSY).
pub fn copy_program(program: &str, to: &Path) {
    must(Command::new("cp").arg(program).arg(to));
}

/// Makes a program of a script's `text`, which has its `#!` line. By another process, as
/// [`copy_program`] does and for the same reason.
pub fn make_script(path: &Path, text: &str) {
    let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
    must(Command::new("sh").args(["-c", write]).arg(path).arg(text));
}

/// A file system of its own in memory, of a given size.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Of `bytes`, a multiple of the page.
    pub fn new(bytes: u64) -> Self {
        Self::mount(&format!("size={bytes}"))
    }

    /// With room for `files` files, of any length.
    pub fn of_files(files: u64) -> Self {
        // The folder is one more.
        Self::mount(&format!("nr_inodes={}", files + 1))
    }

    fn mount(options: &str) -> Self {
        let folder = folder();
        mount(
            Some("tscap-test"),
            folder.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            Some(options),
        )
        .expect("mount a tmpfs");
        Self { folder }
    }

    /// A file on it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that is just being killed may still hold a file.
        let _ = umount2(self.folder.path(), MntFlags::MNT_DETACH);
    }
}

/// A disk of its own with ext4, in an image behind a loop device.
#[derive(Debug)]
pub struct ImageDisk {
    folder: TempDir,
    /// What the image lies on, if that is smaller than the disk.
    _under: Option<SmallDisk>,
}

impl ImageDisk {
    /// Of so many MiB.
    pub fn new(mebibytes: u64) -> Self {
        let image = tempfile::NamedTempFile::new().expect("a temporary file");
        Self::mount(image.path(), mebibytes, None)
    }

    /// Of so many MiB, of which it can keep no more than `room`: what is written beyond is an
    /// error of the device.
    pub fn failing(mebibytes: u64, room: u64) -> Self {
        let under = SmallDisk::new(room << 20);
        let image = under.file("image");
        Self::mount(&image, mebibytes, Some(under))
    }

    fn mount(image: &Path, mebibytes: u64, under: Option<SmallDisk>) -> Self {
        let folder = folder();
        let file = fs::File::create(image).expect("an image");
        file.set_len(mebibytes << 20).expect("a sparse image");
        // Without what ext4 writes by itself: only the test's own writes may fail.
        let features = [
            "-O",
            "^has_journal",
            "-E",
            "lazy_itable_init=0,nodiscard",
            "-m",
            "0",
        ];
        let mkfs = |it: &mut Command| must(it.args(["-q"]).args(features).arg(image));
        mkfs(&mut Command::new("mkfs.ext4"));
        let options = ["-o", "loop,nodelalloc"];
        must(
            Command::new("mount")
                .args(options)
                .args([image, folder.path()]),
        );
        Self {
            folder,
            _under: under,
        }
    }

    /// A file on it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for ImageDisk {
    fn drop(&mut self) {
        // The loop device goes with it.
        let _ = umount2(self.folder.path(), MntFlags::MNT_DETACH);
    }
}

/// Length of a file, bytes.
pub fn length(path: &Path) -> u64 {
    fs::metadata(path)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        .len()
}

/// A pipe that holds as much as it can.
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    fill(&mut writer);
    (reader, writer)
}

/// Fills an empty pipe.
pub fn fill(writer: &mut PipeWriter) {
    let size = fcntl(&*writer, FcntlArg::F_GETPIPE_SZ).expect("size of the pipe");
    let bytes = vec![b'\n'; usize::try_from(size).expect("a size")];
    writer.write_all(&bytes).expect("fill the pipe");
}

/// The permissions of a file, as chmod takes them.
pub fn mode(path: &Path) -> u32 {
    let data = fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    data.permissions().mode() & 0o777
}

/// User and group of a file.
pub fn owner(path: &Path) -> (u32, u32) {
    use std::os::unix::fs::MetadataExt as _;
    let data = fs::metadata(path).expect("a file");
    (data.uid(), data.gid())
}

/// Gives a file or folder to a user.
pub fn give(path: &Path, uid: u32) {
    std::os::unix::fs::chown(path, Some(uid), None).expect("give it to a user");
}
