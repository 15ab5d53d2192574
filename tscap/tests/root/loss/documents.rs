//! The commands of the documents.

use tscap_testkit::command::{run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::alone;

use super::{LIMIT, MEASURES};
use tscap_testkit::shown::{Runner, commands};

/// In their order: one reads what another wrote. What does not fit is no failure.
#[test]
fn the_documented_commands_work() {
    let Some(_lock) = alone(MEASURES) else { return };
    let folder = files::folder();
    for line in commands(Runner::Loss) {
        let mut shell = std::process::Command::new("sh");
        let command = line.replacen("tscap", "\"$TSCAP\"", 1);
        shell.args(["-c", &command]).env("TSCAP", tscap_path());
        let done = run(shell.current_dir(folder.path()), LIMIT);
        let is_plan = line.contains("--plan");
        let good = done.status.success() || (is_plan && done.stdout.contains("it does not fit"));
        assert!(good, "{line}: {}", done.stderr);
    }
    let page = std::fs::read_to_string(folder.path().join("loss.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("</html>"));
}
