//! The commands of the documents.

use tscap_testkit::command::{run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::root;

use super::interrupts::can_be_turned_off;
use super::{LIMIT, ended_after_a_round, fails};
use tscap_testkit::shown::{Runner, commands};

/// In their order: one reads what another wrote. Another test measures every round.
#[test]
fn the_documented_commands_work() {
    let Some(_lock) = root() else { return };
    let folder = files::folder();
    for line in commands(Runner::Compare) {
        let measures = line.starts_with("tscap compare ");
        let mut shell = std::process::Command::new("sh");
        let line = line.replacen("tscap", "exec \"$TSCAP\"", 1);
        shell.args(["-c", &line]).env("TSCAP", tscap_path());
        shell.current_dir(folder.path());
        if line.contains("--irqs-off") && !can_be_turned_off() {
            fails(&run(&mut shell, LIMIT), &["6.14"]);
        } else if measures {
            ended_after_a_round(&mut shell);
        } else {
            let done = run(&mut shell, LIMIT);
            assert!(done.status.success(), "{line}: {}", done.stderr);
        }
    }
    let page = std::fs::read_to_string(folder.path().join("compare.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("</html>"));
}
