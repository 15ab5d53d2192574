//! `tscap-dkms_VERSION_all.deb`: the sources of the kernel module, for DKMS.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::deb::{MAINTAINER, debian_changelog};
use super::empty;
use super::source::{EPOCH, Source};
use crate::{paths, sh};

/// What the module is built of.
pub const SOURCES: [&str; 4] = ["Kbuild", "Makefile", "dkms.conf", "tscap.c"];

/// Builds the package; returns where it is.
pub fn build(folder: &Path, source: &Source) -> Result<PathBuf> {
    let root = empty(folder.join("dkms"))?;
    let checkout = paths::root();
    let sources = format!("usr/src/tscap-{}", source.version);
    for name in SOURCES {
        let text = read(&checkout.join("tscap-ebpf/kmod").join(name))?;
        put(&root, &format!("{sources}/{name}"), &text, 0o644)?;
    }
    for (name, mode) in [("control", 0o644), ("postinst", 0o755), ("prerm", 0o755)] {
        let text = read(&checkout.join("packaging/dkms").join(name))?
            .replace("@VERSION@", &source.revised())
            .replace("@MODULE_VERSION@", source.version)
            .replace("@MAINTAINER@", MAINTAINER);
        put(&root, &format!("DEBIAN/{name}"), &text, mode)?;
    }
    let doc = "usr/share/doc/tscap-dkms";
    let copyright = read(&checkout.join("packaging/debian/copyright"))?;
    put(&root, &format!("{doc}/copyright"), &copyright, 0o644)?;
    let changelog = format!("{doc}/changelog.Debian");
    put(
        &root,
        &changelog,
        &debian_changelog("tscap-dkms", source)?,
        0o644,
    )?;
    sh::run(Command::new("gzip").arg("-9n").arg(root.join(&changelog)))?;
    put(&root, "DEBIAN/md5sums", &md5sums(&root)?, 0o644)?;

    let deb = folder.join(format!("tscap-dkms_{}_all.deb", source.revised()));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]);
    build.arg(&root).arg(&deb);
    build.env(EPOCH, source.epoch.to_string());
    sh::run(&mut build)?;
    Ok(deb)
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

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn put(root: &Path, name: &str, text: &str, mode: u32) -> Result<()> {
    let path = root.join(name);
    let put = || {
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}
