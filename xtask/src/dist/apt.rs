//! The machine's own sources of Debian packages, also for another suite of Debian's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh;
use crate::vm::packages;

/// Where they are configured.
const CONFIGURED: &str = "/etc/apt";

/// A source in the one-line form of sources.list(5).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    /// In brackets, or nothing.
    options: String,
    uri: String,
    suite: String,
}

/// The suite of this machine.
pub fn own_suite() -> Result<String> {
    let own =
        sh::output(Command::new("sh").args(["-c", ". /etc/os-release; echo $VERSION_CODENAME"]))?;
    Ok(own.trim().to_owned())
}

/// The lines of a sources.list for `suite`: what this machine has for its own.
pub fn sources(suite: &str) -> Result<String> {
    let own = own_suite()?;
    let lines: Vec<_> = configured()?
        .into_iter()
        .filter_map(|source| source.line(&own, suite))
        .collect();
    if lines.is_empty() {
        bail!("{CONFIGURED} has no source of Debian's for {own}");
    }
    Ok(lines.join("\n") + "\n")
}

/// Fetches `packages` of `suite` for `architecture`, as Debian names it, or for this machine's own,
/// and unpacks them into `folder`. apt's own lists stay as they are.
pub fn unpack(
    folder: &Path,
    suite: &str,
    architecture: Option<&str>,
    packages: &[&str],
) -> Result<()> {
    let state = super::empty(folder.with_extension("apt"))?;
    let options = lists(&state, suite, architecture)?;
    for package in packages {
        packages::unpack(&options, package, folder)?;
    }
    fs::remove_dir_all(&state)?;
    Ok(())
}

/// Fetches lists of packages into the folder `state`; returns the options with which apt goes by
/// them, and by no package that is installed.
pub fn lists(state: &Path, suite: &str, architecture: Option<&str>) -> Result<Vec<String>> {
    for name in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(state.join(name))?;
    }
    let list = state.join("sources.list");
    fs::write(&list, sources(suite)?)?;
    let options: Vec<_> = [
        format!("Dir::Etc::sourcelist={}", list.display()),
        "Dir::Etc::sourceparts=/dev/null".into(),
        format!("Dir::State::lists={}", state.join("lists").display()),
        "Dir::State::status=/dev/null".into(),
        format!("Dir::Cache={}", state.join("cache").display()),
        "Acquire::Languages=none".into(),
    ]
    .into_iter()
    .chain(architecture.map(|it| format!("APT::Architecture={it}")))
    .flat_map(|option| ["-o".to_owned(), option])
    .collect();
    let mut update = Command::new("apt-get");
    packages::run("apt-get", update.args(&options).args(["--quiet", "update"]))?;
    Ok(options)
}

impl Source {
    /// For `suite` in the place of `own`; nothing for others than Debian's own suite, its
    /// updates and their security.
    fn line(&self, own: &str, suite: &str) -> Option<String> {
        let Self {
            options,
            uri,
            suite: of,
        } = self;
        let rest = of.strip_prefix(own)?;
        ["", "-updates", "-security"]
            .contains(&rest)
            .then(|| format!("deb {options} {uri} {suite}{rest} main"))
    }
}

fn configured() -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut files = vec![PathBuf::from(CONFIGURED).join("sources.list")];
    if let Ok(entries) = fs::read_dir(Path::new(CONFIGURED).join("sources.list.d")) {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    for file in files.iter().filter(|file| file.exists()) {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        match file.extension().and_then(|it| it.to_str()) {
            Some("sources") => sources.extend(text.split("\n\n").flat_map(stanza)),
            Some("list") => sources.extend(text.lines().filter_map(line)),
            _ => {}
        }
    }
    Ok(sources)
}

/// The sources of a stanza of deb822, those with the component main.
fn stanza(text: &str) -> Vec<Source> {
    let field = |name: &str| {
        let values = text.lines().find_map(|line| line.strip_prefix(name));
        values.unwrap_or_default().trim()
    };
    let has = |name, value| field(name).split_whitespace().any(|it| it == value);
    if !has("Types:", "deb") || !has("Components:", "main") || field("Enabled:") == "no" {
        return Vec::new();
    }
    let options = match field("Signed-By:") {
        "" => String::new(),
        keys => format!("[signed-by={keys}]"),
    };
    let uris = field("URIs:").split_whitespace();
    uris.flat_map(|uri| {
        let suites = field("Suites:").split_whitespace();
        suites.map(|suite| Source {
            options: options.clone(),
            uri: uri.into(),
            suite: suite.into(),
        })
    })
    .collect()
}

/// The source of a line, if it has the component main.
fn line(text: &str) -> Option<Source> {
    let rest = text.trim().strip_prefix("deb ")?.trim();
    let (options, rest) = match rest.split_once(']') {
        Some((options, rest)) => (format!("{options}]"), rest),
        None => (String::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?.into(), words.next()?.into());
    words.any(|it| it == "main").then_some(Source {
        options,
        uri,
        suite,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZA: &str = "Types: deb\n\
        # URIs: http://deb.example/old\n\
        URIs: http://deb.example/debian\n\
        Suites: bookworm bookworm-updates bookworm-backports\n\
        Components: main contrib\n\
        Signed-By: /keys.gpg";

    #[test]
    fn both_forms_say_the_same() {
        let of_stanza = stanza(STANZA);
        let of_lines: Vec<_> = ["bookworm", "bookworm-updates", "bookworm-backports"]
            .map(|suite| {
                format!("deb [signed-by=/keys.gpg] http://deb.example/debian {suite} contrib main")
            })
            .iter()
            .filter_map(|it| line(it))
            .collect();
        assert_eq!(of_stanza, of_lines);
        assert_eq!(of_stanza.len(), 3);
    }

    #[test]
    fn another_suite_takes_the_place_of_our_own() {
        let all = stanza(STANZA);
        let lines = all.iter().map(|it| it.line("bookworm", "trixie"));
        let lines: Vec<_> = lines.collect();
        let expected = |suite| {
            let line = format!("deb [signed-by=/keys.gpg] http://deb.example/debian {suite} main");
            Some(line)
        };
        assert_eq!(
            lines,
            [expected("trixie"), expected("trixie-updates"), None]
        );
        assert_eq!(all[0].line("forky", "trixie"), None);
    }

    #[test]
    fn what_is_not_debians_is_left_out() {
        assert_eq!(line("# deb http://deb.example/debian bookworm main"), None);
        assert_eq!(
            line("deb-src http://deb.example/debian bookworm main"),
            None
        );
        assert_eq!(line("deb http://deb.example/node nodistro extra"), None);
        assert!(stanza(&format!("{STANZA}\nEnabled: no")).is_empty());
        assert!(stanza(&STANZA.replace("Types: deb", "Types: deb-src")).is_empty());
    }
}
