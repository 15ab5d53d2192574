//! What is installed, and where each kind of package has it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::empty;
use crate::paths;

/// What it is called in Wireshark's folders: it answers as an external capture program.
const EXTCAP: &str = "tscap-extcap";

/// The folders of a kind of package, relative to its root.
pub struct Layout {
    /// Programs.
    bin: &'static str,
    /// Section 1 of the manual.
    man: &'static str,
    /// Completions.
    bash: &'static str,
    zsh: &'static str,
    fish: &'static str,
    /// Wireshark's external capture programs: since Wireshark 4.6 in libexec.
    extcap: &'static [&'static str],
    /// Units of systemd.
    units: &'static str,
    /// Arguments of services.
    defaults: &'static str,
    /// What others install if they want it: the plugin for Wireshark.
    share: &'static str,
    /// What C programs include.
    include: &'static str,
    /// Documents.
    doc: &'static str,
    /// Licences.
    licences: &'static str,
}

/// Debian's.
pub const DEB: Layout = Layout {
    bin: "usr/bin",
    man: "usr/share/man/man1",
    bash: "usr/share/bash-completion/completions",
    zsh: "usr/share/zsh/vendor-completions",
    fish: "usr/share/fish/vendor_completions.d",
    extcap: &[
        "usr/lib/x86_64-linux-gnu/wireshark/extcap",
        "usr/libexec/wireshark/extcap",
    ],
    units: "usr/lib/systemd/system",
    defaults: "etc/default",
    share: "usr/share/tscap",
    include: "usr/include",
    doc: "usr/share/doc/tscap",
    // In `copyright`, which is Debian's alone.
    licences: "",
};

/// Fedora's and those of its relatives.
pub const RPM: Layout = Layout {
    zsh: "usr/share/zsh/site-functions",
    extcap: &["usr/lib64/wireshark/extcap", "usr/libexec/wireshark/extcap"],
    licences: "usr/share/licenses/tscap",
    ..DEB
};

/// To be unpacked into /usr/local, for example.
pub const TARBALL: Layout = Layout {
    bin: "bin",
    man: "share/man/man1",
    bash: "share/bash-completion/completions",
    zsh: "share/zsh/site-functions",
    fish: "share/fish/vendor_completions.d",
    extcap: &[],
    units: "lib/systemd/system",
    defaults: "share/doc/tscap/examples",
    share: "share/tscap",
    include: "include",
    doc: "share/doc/tscap",
    licences: "share/doc/tscap",
};

/// What is installed at one path.
pub struct Installed {
    /// Relative to the root.
    pub path: PathBuf,
    what: What,
}

enum What {
    /// A copy of this file, with this mode.
    File(PathBuf, u32),
    /// A link that leads there.
    Link(PathBuf),
}

impl Layout {
    /// Everything but what belongs to one kind of package alone.
    pub fn installed(&self, program: &Path) -> Result<Vec<Installed>> {
        let root = paths::root();
        let mut all = vec![file(self.bin, program, 0o755)];
        for page in listed(&root.join("docs/man"), "1")? {
            all.push(file(self.man, &page, 0o644));
        }
        let completions = root.join("docs/completions");
        let systemd = root.join("packaging/systemd");
        for unit in ["tscap@.service", "tscap-clock.service"] {
            all.push(file(self.units, &systemd.join(unit), 0o644));
        }
        let header = root.join("packaging/include/tscap_clock.h");
        all.push(file(self.include, &header, 0o644));
        for (folder, from, name) in [
            (self.bash, completions.join("tscap.bash"), "tscap"),
            (self.zsh, completions.join("_tscap"), "_tscap"),
            (self.fish, completions.join("tscap.fish"), "tscap.fish"),
            (self.defaults, systemd.join("tscap.default"), "tscap"),
        ] {
            all.push(Installed {
                path: Path::new(folder).join(name),
                what: What::File(from, 0o644),
            });
        }
        // Not among Wireshark's own: it takes time for each packet of every capture.
        let plugin = root.join("packaging/wireshark/tscap.lua");
        all.push(file(self.share, &plugin, 0o644));
        all.push(file(self.doc, &root.join("README.md"), 0o644));
        for page in listed(&root.join("docs"), "md")? {
            all.push(file(&format!("{}/docs", self.doc), &page, 0o644));
        }
        if !self.licences.is_empty() {
            for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
                all.push(file(self.licences, &root.join(licence), 0o644));
            }
        }
        for folder in self.extcap {
            let up = "../".repeat(folder.split('/').count() - 1);
            all.push(Installed {
                path: Path::new(folder).join(EXTCAP),
                what: What::Link(Path::new(&up).join("bin/tscap")),
            });
        }
        Ok(all)
    }

    /// Puts everything under `root`, which is made anew.
    pub fn stage(&self, program: &Path, root: PathBuf) -> Result<(PathBuf, Vec<Installed>)> {
        let root = empty(root)?;
        let all = self.installed(program)?;
        for installed in &all {
            installed.put(&root)?;
        }
        Ok((root, all))
    }
}

impl Installed {
    fn put(&self, root: &Path) -> Result<()> {
        let path = root.join(&self.path);
        let put = || {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            match &self.what {
                What::File(from, mode) => {
                    fs::copy(from, &path)?;
                    fs::set_permissions(&path, Permissions::from_mode(*mode))
                }
                What::Link(target) => symlink(target, &path),
            }
        };
        put().with_context(|| format!("cannot make {}", path.display()))
    }
}

fn file(folder: &str, from: &Path, mode: u32) -> Installed {
    let name = from.file_name().expect("a file has a name");
    Installed {
        path: Path::new(folder).join(name),
        what: What::File(from.to_owned(), mode),
    }
}

/// The files of `folder` with that extension, by their names.
fn listed(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_to_the_program() {
        let work = tempfile::tempdir().unwrap();
        let program = work.path().join("tscap");
        fs::write(&program, "the program").unwrap();
        for layout in [DEB, RPM, TARBALL] {
            let (root, all) = layout.stage(&program, work.path().join("root")).unwrap();
            let is_link = |it: &&Installed| matches!(it.what, What::Link(_));
            let links: Vec<_> = all.iter().filter(is_link).collect();
            assert_eq!(links.len(), layout.extcap.len());
            for link in links {
                let text = fs::read_to_string(root.join(&link.path)).unwrap();
                assert_eq!(text, "the program");
            }
            assert!(
                all.iter()
                    .any(|it| it.path.ends_with("man1/tscap-capture.1"))
            );
        }
    }
}
