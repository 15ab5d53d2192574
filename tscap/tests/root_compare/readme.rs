//! The README's commands, as they stand there.

use crate::interrupts::can_be_turned_off;
use crate::support::capture::TSCAP;
use crate::support::command::run;
use crate::support::files;
use crate::support::root::root;
use crate::{LIMIT, fails};

/// The commands of the README, in their order: one reads what another wrote.
#[test]
fn the_readmes_commands_work() {
    let Some(_turn) = root("the_readmes_commands_work") else {
        return;
    };
    let folder = files::folder();
    let readme = include_str!("../../../README.md");
    let lines = readme
        .lines()
        .filter(|line| line.starts_with("tscap ") && line.contains(" compare"));
    let mut count = 0;
    for line in lines {
        let mut shell = std::process::Command::new("sh");
        let line = line.replacen("tscap", "\"$TSCAP\"", 1);
        shell.args(["-c", &line]).env("TSCAP", TSCAP);
        let done = run(shell.current_dir(folder.path()), LIMIT);
        count += 1;
        if line.contains("--irqs-off") && !can_be_turned_off() {
            fails(&done, &["6.14"]);
            continue;
        }
        assert!(done.status.success(), "{line}: {}", done.stderr);
    }
    assert_eq!(count, 4);
    let page = std::fs::read_to_string(folder.path().join("compare.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("</html>"));
}
