//! The documents: their commands are run by somebody, their links lead somewhere.

mod links;
mod map;
mod mentioned;
mod texts;

use std::fs;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use tscap_cli::{Cli, examples};

use tscap_testkit::shown::{Runner, blocks, pages, root, runner, shown};

#[test]
fn every_command_is_run_by_a_test_or_by_ci() {
    let [run, nightly] = ["run", "nightly"]
        .map(|name| fs::read_to_string(root().join(".ci").join(name)).expect("a script"));
    let scripts = [run, nightly].map(|script| script.replace("\\\n", ""));
    let steps = scripts.iter().flat_map(|script| script.lines());
    let steps: Vec<_> = steps
        .filter_map(|it| it.trim_start().strip_prefix("step "))
        .collect();
    for page in pages() {
        for line in shown(&page) {
            let place = format!("{}: {line}", page.display());
            let runner = runner(&line).unwrap_or_else(|| panic!("{place}: nothing runs it"));
            // All its words in their order, and perhaps others: several checks are one step.
            let is_step = |step: &&str| {
                let mut words = step.split_whitespace();
                line.split_whitespace()
                    .all(|word| words.any(|it| it == word))
            };
            match runner {
                Runner::Ci => assert!(steps.iter().any(is_step), "{place}: no step of .ci"),
                Runner::Nothing(reason) => println!("not run: {line} ({reason})"),
                _ => {}
            }
        }
    }
}

/// Also where the tests that run them cannot run.
#[test]
fn every_command_of_tscap_is_understood() {
    for line in pages().iter().flat_map(|page| shown(page)) {
        if line.starts_with("tscap ") {
            let words = line.split(" > ").next().unwrap_or_default().split(' ');
            let plan = Cli::plan(words.map(Into::into));
            assert!(plan.is_ok(), "{line}: {plan:?}");
        }
    }
}

/// Each command has some, which are in its help and are understood.
#[test]
fn every_example_is_understood() {
    let mut tscap = Cli::command();
    tscap.build();
    let commands = tscap.get_subcommands().filter(|it| it.get_name() != "help");
    for command in commands.chain([&tscap]) {
        let name = command.get_name();
        let examples = examples::of(name);
        assert!(
            (3..=5).contains(&examples.len()),
            "{name}: {}",
            examples.len()
        );
        let help = command.clone().render_long_help().to_string();
        for (line, does) in examples {
            assert!(help.contains(line) && help.contains(does), "{line}: {help}");
            let own = line.split(['|', '>']).next().unwrap_or_default();
            let plan = Cli::plan(own.split_whitespace().map(Into::into));
            let is_help = |error: &clap::Error| error.kind() == ErrorKind::DisplayHelp;
            assert!(
                plan.is_ok() || plan.as_ref().is_err_and(is_help),
                "{line}: {plan:?}"
            );
        }
    }
}

/// A command in a block that is not marked `sh` would not be found above.
#[test]
fn every_block_says_what_it_is() {
    for page in pages() {
        for (kind, lines) in blocks(&page) {
            let place = format!("{}: {lines:?}", page.display());
            assert!(["sh", "text", "rust"].contains(&&*kind), "{place}");
            let is_command =
                |line: &String| line.starts_with("tscap ") || line.starts_with("cargo ");
            assert!(kind == "sh" || !lines.iter().any(is_command), "{place}");
        }
    }
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a README");
    let lines = readme.lines().count();
    assert!(
        lines <= 200,
        "{lines} lines: at most 200, the rest goes to docs"
    );
}

#[test]
fn a_section_of_the_code_map_fits_a_screen() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a code map");
    for section in map.split("\n## ") {
        let lines = section.lines().count();
        assert!(
            lines <= 45,
            "{lines} lines: {}",
            section.lines().next().unwrap_or_default()
        );
    }
}
