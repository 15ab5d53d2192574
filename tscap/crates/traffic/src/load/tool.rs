//! The programs that capture.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tool_report::event;

/// Where Debian has programs that the PATH of a user may lack.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// A program that captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// This one.
    Tscap,
    /// libpcap's.
    Tcpdump,
    /// Wireshark's.
    Dumpcap,
    /// Of the netsniff-ng toolkit.
    NetsniffNg,
    /// Of the XDP tools.
    Xdpdump,
}

impl Tool {
    /// All of them, this one first.
    pub const ALL: [Self; 5] = [
        Self::Tscap,
        Self::Tcpdump,
        Self::Dumpcap,
        Self::NetsniffNg,
        Self::Xdpdump,
    ];

    /// Name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tscap => "tscap",
            Self::Tcpdump => "tcpdump",
            Self::Dumpcap => "dumpcap",
            Self::NetsniffNg => "netsniff-ng",
            Self::Xdpdump => "xdpdump",
        }
    }

    /// The Debian package that it is in; none has tscap.
    pub fn package(self) -> Option<&'static str> {
        match self {
            Self::Tscap => None,
            Self::Tcpdump => Some("tcpdump"),
            Self::Dumpcap => Some("wireshark-common"),
            Self::NetsniffNg => Some("netsniff-ng"),
            Self::Xdpdump => Some("xdp-tools"),
        }
    }

    /// Finds the program; `tscap` is this one's executable.
    pub fn find(self, tscap: &Path) -> Result<Program, NotInstalled> {
        let path = match self.package() {
            None => Some(tscap.to_owned()),
            Some(_) => {
                let path = env::var_os("PATH").unwrap_or_default();
                let folders = env::split_paths(&path).chain(SYSTEM_PROGRAMS.map(PathBuf::from));
                let mut files = folders.map(|folder| folder.join(self.name()));
                files.find(|file| file.is_file())
            }
        };
        let path = path.ok_or(NotInstalled(self))?;
        Ok(Program { tool: self, path })
    }

    /// Whether it is given expressions: netsniff-ng has a filter of its own in place of a
    /// snaplen, and xdpdump has none.
    pub(super) fn takes_expression(self) -> bool {
        matches!(self, Self::Tscap | Self::Tcpdump | Self::Dumpcap)
    }

    /// Whether it captures what is sent.
    pub(super) fn takes_sent(self) -> bool {
        matches!(self, Self::Tscap | Self::Tcpdump)
    }

    /// Whether a line of its output says that it captures from now on.
    pub(super) fn is_ready(self, line: &str) -> bool {
        match self {
            Self::Tscap => event(line, "ready").is_some(),
            Self::Tcpdump | Self::Xdpdump => line.contains("listening on "),
            Self::Dumpcap => line.starts_with("File: "),
            Self::NetsniffNg => line.starts_with("Running!"),
        }
    }

    /// Longest that it leaves frames lying while nothing else comes: the timeout of
    /// its poll, and somewhat more.
    pub(super) fn leaves_lying(self) -> Duration {
        Duration::from_millis(match self {
            // Its last drain leaves nothing.
            Self::Tscap => 0,
            // `pcap_set_timeout`: 1000 ms (tcpdump.c), 250 ms (CAP_READ_TIMEOUT, dumpcap.c).
            Self::Tcpdump => 1_200,
            Self::Dumpcap => 400,
            Self::NetsniffNg => 400,
            // Polls for 1000 ms (xdpdump.c).
            Self::Xdpdump => 1_200,
        })
    }
}

/// A program that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not installed: Debian has it in {}", .0.name(), .0.package().unwrap_or("none"))]
pub struct NotInstalled(pub Tool);

/// A program that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Which.
    pub tool: Tool,
    /// Its executable.
    pub path: PathBuf,
}

impl Program {
    /// What it calls itself: the first line of `--version`.
    pub fn version(&self) -> io::Result<String> {
        let mut command = Command::new(&self.path);
        let output = command.arg("--version").stdin(Stdio::null()).output()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        Ok(first.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_its_package() {
        assert_eq!(
            NotInstalled(Tool::NetsniffNg).to_string(),
            "netsniff-ng is not installed: Debian has it in netsniff-ng"
        );
        let here = Path::new("/here/tscap");
        assert_eq!(Tool::Tscap.find(here).unwrap().path, here);
    }

    #[test]
    fn names_are_those_of_the_programs() {
        for tool in Tool::ALL {
            let name = serde_json::to_value(tool).unwrap();
            assert_eq!(name, tool.name());
        }
    }

    #[test]
    fn the_version_is_the_first_line() {
        let echo = Program {
            tool: Tool::Tcpdump,
            path: "/bin/ls".into(),
        };
        assert!(echo.version().unwrap().starts_with("ls "));
    }
}
