//! `tscap-dkms_VERSION_all.deb`: the sources of the kernel module, for DKMS.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::deb::{MAINTAINER, debian_changelog, pack, put, read};
use super::empty;
use super::source::Source;
use crate::paths;

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
    let copyright = read(&checkout.join("packaging/debian/copyright"))?;
    let doc = "usr/share/doc/tscap-dkms/copyright";
    put(&root, doc, &copyright, 0o644)?;
    debian_changelog(&root, "tscap-dkms", source)?;
    let deb = folder.join(format!("tscap-dkms_{}_all.deb", source.revised()));
    pack(&root, &deb, source)?;
    Ok(deb)
}
