//! The direction of imports: `tscap/layers.txt` lists the modules from the bottom up.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::paths;

/// Folders whose modules are listed one by one.
const WINGS: [&str; 2] = ["capturing", "measuring"];
/// Files that stand above all modules.
const ROOTS: [&str; 2] = ["lib", "main"];

/// Fails unless every import goes down.
pub fn check() -> Result<()> {
    let list = paths::root().join("tscap/layers.txt");
    let list =
        fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let layers = layers(&list);
    let source = paths::root().join("tscap/src");
    let mut wrong = Vec::new();
    for file in files(&source)? {
        let path = file.strip_prefix(&source)?;
        let Some(module) = module(path) else { continue };
        let text = fs::read_to_string(&file)?;
        let faults = faults(&layers, &module, &text);
        wrong.extend(
            faults
                .into_iter()
                .map(|fault| format!("{}: {fault}", path.display())),
        );
    }
    if !wrong.is_empty() {
        bail!("imports against tscap/layers.txt:\n{}", wrong.join("\n"));
    }
    Ok(())
}

fn layers(list: &str) -> Vec<&str> {
    let lines = list.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            files.extend(self::files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The listed module that a file belongs to; `None` for what only declares modules.
fn module(path: &Path) -> Option<String> {
    let path = path.with_extension("");
    let mut parts = path.iter().filter_map(|part| part.to_str());
    match (parts.next()?, parts.next()) {
        (wing, Some("mod")) if WINGS.contains(&wing) => None,
        (wing, Some(module)) if WINGS.contains(&wing) => Some(format!("{wing}::{module}")),
        (root, None) if ROOTS.contains(&root) => None,
        (module, _) => Some(module.into()),
    }
}

/// What is wrong with the imports of `text`, a file of `module`.
fn faults(layers: &[&str], module: &str, text: &str) -> Vec<String> {
    let height = |module: &str| layers.iter().position(|layer| *layer == module);
    let Some(own) = height(module) else {
        return vec![format!("{module} is not listed")];
    };
    let mut faults = Vec::new();
    for used in used(text) {
        match height(&used) {
            None => faults.push(format!("{used} is not listed")),
            Some(other) if other > own => faults.push(format!("{module} imports {used}")),
            Some(_) => {}
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

/// The modules of the crate that a text names outside comments and tests.
fn used(text: &str) -> Vec<String> {
    let code = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        for (wing, rest) in heads(rest) {
            if !WINGS.contains(&wing) {
                used.push(wing.to_owned());
                continue;
            }
            let below = rest.strip_prefix("::").unwrap_or_default();
            used.extend(
                heads(below)
                    .into_iter()
                    .map(|(module, _)| format!("{wing}::{module}")),
            );
        }
    }
    used
}

/// The first name of a path, or of each path in braces, with what follows it.
fn heads(path: &str) -> Vec<(&str, &str)> {
    let head = |path| {
        let path: &str = path;
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
        path.split_at(end.unwrap_or(path.len()))
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![head(path)]
            .into_iter()
            .filter(|(name, _)| !name.is_empty())
            .collect();
    };
    let (mut depth, mut start, mut heads) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                heads.push(head(group[start..at].trim()));
                start = at + 1;
            }
            '}' => {
                heads.push(head(group[start..at].trim()));
                break;
            }
            _ => {}
        }
    }
    heads.retain(|(name, _)| !name.is_empty());
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: [&str; 4] = [
        "text",
        "capturing::clock",
        "capturing::engine",
        "measuring::loss",
    ];

    #[test]
    fn imports_go_down() {
        let faults = |module, text| faults(&LAYERS, module, text);
        let down = "use crate::capturing::clock::MonoNs;\nuse crate::text::numbers;";
        assert!(faults("capturing::engine", down).is_empty());
        assert_eq!(
            faults(
                "capturing::clock",
                "use crate::capturing::engine::{Event, Output};"
            ),
            ["capturing::clock imports capturing::engine"]
        );
        let several = "use crate::{text, measuring::{loss::{Grid, Place}, absent}};";
        assert_eq!(
            faults("capturing::engine", several),
            [
                "capturing::engine imports measuring::loss",
                "measuring::absent is not listed"
            ]
        );
        assert_eq!(
            faults("capturing::new", ""),
            ["capturing::new is not listed"]
        );
    }

    #[test]
    fn comments_and_tests_may_name_any_module() {
        let text = "/// See [`crate::measuring::loss`].\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    \
                    use crate::measuring::loss;\n}\n";
        assert!(faults(&LAYERS, "text", text).is_empty());
        let code = "fn f() -> crate::measuring::loss::Grid {}";
        assert_eq!(
            faults(&LAYERS, "text", code),
            ["text imports measuring::loss"]
        );
    }

    #[test]
    fn files_belong_to_the_listed_modules() {
        let module = |path: &str| module(Path::new(path));
        assert_eq!(
            module("capturing/clock/fit.rs").as_deref(),
            Some("capturing::clock")
        );
        assert_eq!(
            module("capturing/time.rs").as_deref(),
            Some("capturing::time")
        );
        assert_eq!(module("capturing/mod.rs"), None);
        assert_eq!(module("cli/mod.rs").as_deref(), Some("cli"));
        assert_eq!(module("failure.rs").as_deref(), Some("failure"));
        assert_eq!(module("main.rs"), None);
    }
}
