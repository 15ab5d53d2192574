//! What machines are of, and what differs by that.

use std::path::{Path, PathBuf};
use std::process::Command;

use tscap_testkit::command::{must, tscap_path};

/// Names the architecture, if it is not that of this program.
const NAMED_BY: &str = "TSCAP_VM_ARCHITECTURE";
/// Names the folder with programs and libraries of it.
const ROOT: &str = "TSCAP_VM_ROOT";
/// Names tscap and this program, built for it.
const TSCAP: &str = "TSCAP_VM_TSCAP";
const AGENT: &str = "TSCAP_VM_AGENT";

/// The architecture of the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64, that of this program.
    Amd64,
    /// arm64, whose programs are built by `cargo xtask arm64`.
    Arm64,
}

impl Architecture {
    /// The one that the environment names.
    pub fn from_environment() -> Result<Self, String> {
        match std::env::var(NAMED_BY).as_deref() {
            Err(_) | Ok("amd64") => Ok(Self::Amd64),
            Ok("arm64") => Ok(Self::Arm64),
            Ok(other) => Err(format!("{NAMED_BY}={other}: amd64 or arm64")),
        }
    }

    /// Where Debian keeps libraries of it, in `/usr/lib`.
    pub fn triplet(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu",
            Self::Arm64 => "aarch64-linux-gnu",
        }
    }

    /// A program of binutils for it.
    pub fn tool(self, name: &str) -> String {
        match self {
            Self::Amd64 => name.into(),
            Self::Arm64 => format!("aarch64-linux-gnu-{name}"),
        }
    }

    /// The folder with its programs and libraries.
    pub fn root(self) -> PathBuf {
        match self {
            Self::Amd64 => "/".into(),
            Self::Arm64 => named_by(ROOT),
        }
    }

    /// tscap, and this program.
    pub fn built(self) -> [PathBuf; 2] {
        match self {
            Self::Amd64 => [
                tscap_path().into(),
                std::env::current_exe().expect("this program"),
            ],
            Self::Arm64 => [TSCAP, AGENT].map(named_by),
        }
    }

    /// A busybox for it, where `own` is that of this machine.
    pub fn busybox(self, own: &Path) -> PathBuf {
        match self {
            Self::Amd64 => own.to_owned(),
            Self::Arm64 => self.root().join("bin/busybox"),
        }
    }

    /// Where a program of its distribution lies.
    pub fn found(self, program: &str) -> PathBuf {
        if self == Self::Amd64 {
            let path = must(Command::new("sh").args(["-c", &format!("command -v {program}")]));
            return path.trim().into();
        }
        let folders = ["usr/sbin", "usr/bin", "sbin", "bin"];
        let places = folders.map(|folder| self.root().join(folder).join(program));
        // A link may lead out of the folder.
        let is_file = |place: &PathBuf| place.symlink_metadata().is_ok_and(|it| it.is_file());
        let found = places.into_iter().find(is_file);
        found.unwrap_or_else(|| panic!("no {program} in {}", self.root().display()))
    }

    /// The shared libraries of a program, its loader among them: where each lies here and in a
    /// machine.
    pub fn libraries(self, program: &Path) -> Vec<(PathBuf, String)> {
        let root = self.root();
        let list = match self {
            Self::Amd64 => must(Command::new("ldd").arg(program)),
            // Its own loader says it.
            Self::Arm64 => {
                let folders = ["lib", "usr/lib"].map(|it| root.join(it).join(self.triplet()));
                let folders = folders.map(|it| it.display().to_string()).join(":");
                let mut list = Command::new("qemu-aarch64");
                list.arg("-L").arg(&root);
                list.arg(root.join("lib/ld-linux-aarch64.so.1"));
                must(
                    list.args(["--library-path", &folders, "--list"])
                        .arg(program),
                )
            }
        };
        let words = list.split_whitespace().filter(|it| it.starts_with('/'));
        let libraries = words.map(|word| match Path::new(word).strip_prefix(&root) {
            Ok(inside) => (word.into(), format!("/{}", inside.display())),
            // As a program names its loader.
            Err(_) => (root.join(word.trim_start_matches('/')), word.to_owned()),
        });
        libraries.collect()
    }
}

/// The file that the environment variable `name` names.
pub fn named_by(name: &str) -> PathBuf {
    let path = std::env::var_os(name);
    path.unwrap_or_else(|| panic!("{name} is not set")).into()
}
