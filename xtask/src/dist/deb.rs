//! `tscap_VERSION_amd64.deb`, and what both of Debian's packages are made by.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::files::DEB;
use super::source::{EPOCH, Source};
use crate::{paths, sh};

/// Who is said to maintain the packages.
pub const MAINTAINER: &str = "The tscap authors <tscap@example.org>";

/// What dpkg and debconf run or read, with their modes.
const CONTROL: [(&str, u32); 6] = [
    ("control", 0o644),
    ("templates", 0o644),
    ("config", 0o755),
    ("postinst", 0o755),
    ("postrm", 0o755),
    ("prerm", 0o755),
];

/// Builds the package; returns where it is.
pub fn build(folder: &Path, source: &Source, program: &Path) -> Result<PathBuf> {
    let (root, installed) = DEB.stage(program, folder.join("deb"))?;
    let scripts = paths::root().join("packaging/debian");
    for name in ["README.Debian", "copyright"] {
        let text = read(&scripts.join(name))?;
        put(&root, &format!("usr/share/doc/tscap/{name}"), &text, 0o644)?;
    }
    let changes = read(&paths::root().join("CHANGELOG.md"))?;
    compressed(&root, "usr/share/doc/tscap/changelog", &changes)?;
    debian_changelog(&root, "tscap", source)?;
    for installed in &installed {
        let is_page = installed.path.starts_with("usr/share/man");
        if is_page {
            compress(&root.join(&installed.path))?;
        }
    }
    let kib = bytes(&root)?.div_ceil(1024).to_string();
    for (name, mode) in CONTROL {
        let text = read(&scripts.join(name))?
            .replace("@VERSION@", &source.revised())
            .replace("@INSTALLED_KIB@", &kib)
            .replace("@MAINTAINER@", MAINTAINER);
        put(&root, &format!("DEBIAN/{name}"), &text, mode)?;
    }
    let settings = installed.iter().filter(|it| it.path.starts_with("etc"));
    let settings: Vec<_> = settings
        .map(|it| format!("/{}\n", it.path.display()))
        .collect();
    put(&root, "DEBIAN/conffiles", &settings.concat(), 0o644)?;
    let deb = folder.join(format!("tscap_{}_amd64.deb", source.revised()));
    pack(&root, &deb, source)?;
    Ok(deb)
}

/// Makes a package of what is under `root`.
pub fn pack(root: &Path, deb: &Path, source: &Source) -> Result<()> {
    put(root, "DEBIAN/md5sums", &md5sums(root)?, 0o644)?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]);
    build.arg(root).arg(deb);
    build.env(EPOCH, source.epoch.to_string());
    sh::run(&mut build)
}

/// Writes the changelog of a package, of this version alone: what changed in the program is
/// elsewhere.
pub fn debian_changelog(root: &Path, package: &str, source: &Source) -> Result<()> {
    let text = format!(
        "{package} ({}) unstable; urgency=medium\n\n  \
         * Package of tscap {}.\n\n \
         -- {MAINTAINER}  {}\n",
        source.revised(),
        source.version,
        source.date()?
    );
    let name = format!("usr/share/doc/{package}/changelog.Debian");
    compressed(root, &name, &text)
}

/// Writes `text`, compressed as Debian's policy asks for.
fn compressed(root: &Path, name: &str, text: &str) -> Result<()> {
    put(root, name, text, 0o644)?;
    compress(&root.join(name))
}

fn compress(path: &Path) -> Result<()> {
    sh::run(Command::new("gzip").arg("-9n").arg(path))
}

/// What `dpkg --verify` goes by.
fn md5sums(root: &Path) -> Result<String> {
    let mut sums = Command::new("sh");
    sums.args([
        "-c",
        "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum",
    ]);
    sh::output(sums.current_dir(root))
}

/// How much everything under `folder` holds.
fn bytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        sum += if kind.is_dir() {
            bytes(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(sum)
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file under `root`.
pub fn put(root: &Path, name: &str, text: &str, mode: u32) -> Result<()> {
    let path = root.join(name);
    let put = || {
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}
