//! `tscap clock`, which anybody may run.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tscap_testkit::command::{tscap_path, wait_for};
use tscap_testkit::root::skip;
use tscap_testkit::wait::until;

use tscap_testkit::shown::{Runner, commands};

fn clock(arguments: &[&str]) -> Child {
    let mut command = Command::new(tscap_path());
    command.arg("clock").args(arguments).stdout(Stdio::piped());
    command.spawn().expect("start tscap")
}

fn clock_says(arguments: &[&str]) -> Output {
    let mut command = Command::new(tscap_path());
    let command = command.arg("clock").args(arguments);
    command.output().expect("start tscap")
}

/// Whether it ended well within `limit`; it has ended in any case.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let status = wait_for(child, limit);
    if status.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    status.is_some_and(|status| status.success())
}

fn has_no_counter() -> bool {
    let found = tscap_time::tsc::check();
    found.is_err_and(|error| {
        skip(&error.to_string());
        true
    })
}

#[test]
fn it_ends_when_nobody_reads() {
    if has_no_counter() {
        return;
    }
    for format in [&[][..], &["--json"]] {
        let mut child = clock(&[&["--interval", "100ms"], format].concat());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(!lines.next().unwrap().unwrap().is_empty());
        drop(lines);
        assert!(
            ends_within(&mut child, Duration::from_secs(10)),
            "{format:?}"
        );
    }
}

#[test]
fn it_ends_in_time_whatever_the_interval() {
    if has_no_counter() {
        return;
    }
    let started = Instant::now();
    let mut child = clock(&["--interval", "1h", "--duration", "500ms", "--json"]);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(ends_within(&mut child, Duration::from_secs(10)));
    assert!(started.elapsed() >= Duration::from_millis(500));
    assert_eq!(lines.count(), 1);
}

#[test]
fn the_documented_commands_work() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lines_of_each = commands(Runner::Clock).into_iter().map(|line| {
        let mut command = Command::new(tscap_path());
        command.args(line.split(' ').skip(1));
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let (table, conclusion) = text.split_once("\n\n").unwrap_or((&text, ""));
        let is_reported = conclusion.starts_with("Conclusion after ");
        assert_eq!(is_reported, !line.contains(" report "), "{line}: {text}");
        table.lines().count()
    });
    let lines_of_each: Vec<_> = lines_of_each.collect();
    // A heading, and a line each second.
    assert_eq!(lines_of_each[..2], [3, 4]);
    assert_eq!(lines_of_each.len(), 3);
    assert!(log_lines(&folder.path().join("clock.log")).len() >= 4);
    let pages = ["clock.html", "again.html"];
    let pages = pages.map(|page| std::fs::read_to_string(folder.path().join(page)).unwrap());
    assert!(pages[0].contains("Allan deviation") && pages[0] == pages[1]);
}

/// As coreutils' `timeout` sends them. The report is what is written at the end.
#[test]
fn two_signals_at_once_are_one() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for is_twice in [false, true] {
        let page = folder.path().join(format!("{is_twice}.html"));
        let mut child = clock(&["--json", "--report", page.to_str().unwrap()]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(!lines.next().unwrap().unwrap().is_empty());
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        if is_twice {
            // The time between the two is what is tested.
            thread::sleep(Duration::from_millis(5));
            kill(pid, Signal::SIGTERM).unwrap();
        }
        assert!(
            ends_within(&mut child, Duration::from_secs(10)),
            "{is_twice}"
        );
        for line in lines {
            serde_json::from_str::<Value>(&line.unwrap()).unwrap();
        }
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.trim_end().ends_with("</html>"), "{is_twice}: {page}");
    }
}

fn log_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn a_log_is_valid_after_a_kill_and_is_continued() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clock.log");
    let log = path.to_str().unwrap();
    let mut child = clock(&["--log", log, "--json"]);
    until("an entry of the log", Duration::from_secs(20), || {
        (log_lines(&path).len() >= 2).then_some(())
    });
    // Only one process may write it.
    let second = clock_says(&["--log", log, "--duration", "1s"]);
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(text.contains("another process writes it"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    let before = log_lines(&path).len();
    // As a kill within a write leaves it.
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"status\":").unwrap();

    let output = clock_says(&["--log", log, "--duration", "500ms"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("cut off 10 bytes of a torn last line"),
        "{text}"
    );
    let lines = log_lines(&path);
    assert_eq!(lines[before]["kind"], "clock");
    assert_eq!(lines[before]["boot_id"], lines[0]["boot_id"]);
    let last = lines.last().unwrap();
    assert!(!last["samples"].as_array().unwrap().is_empty(), "{last}");
    assert!(last["status"]["host_bound_ns"].as_u64().unwrap() > 0);
    assert_eq!(last["segments"].as_array().unwrap().len(), 1);
}

#[test]
fn a_log_of_another_boot_is_refused() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clock.log");
    let content = "{\"kind\":\"clock\",\"v\":1,\"boot_id\":\"boot-1\",\"tscap\":\"0.1.0\"}\n";
    std::fs::write(&path, content).unwrap();
    let output = clock_says(&["--log", path.to_str().unwrap(), "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("of another boot of the machine"), "{text}");
    assert!(text.contains("hint: give another file"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
}

fn report(arguments: &[&str]) -> Output {
    let mut command = Command::new(tscap_path());
    let command = command.arg("report").args(arguments);
    command.output().expect("start tscap")
}

#[test]
fn a_report_is_drawn_at_the_end_and_again_from_the_log() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, page, again) = (path("clock.log"), path("clock.html"), path("again.html"));
    let output = clock_says(&["--duration", "1500ms", "--log", &log, "--report", &page]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = report(&[&log, "-o", &again]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("readings "), "{text}");
    let pages = [&page, &again].map(|page| std::fs::read_to_string(page).unwrap());
    assert_eq!(pages[0], pages[1]);
    assert!(pages[0].contains("readings"));
    // The log stays what it is.
    let kept = std::fs::read(&log).unwrap();
    let output = report(&[&log, "-o", &log]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("cannot write the report over"), "{text}");
    assert!(std::fs::read(&log).unwrap() == kept);
    // As of a killed process.
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"{\"status\":").unwrap();
    let output = report(&[&log, "-o", &again]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("the last line is torn"), "{text}");
    assert_eq!(std::fs::read_to_string(&again).unwrap(), pages[0]);
    file.write_all(b"\n").unwrap();
    let output = report(&[&log]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("of the clock log is damaged"), "{text}");
}

#[test]
fn a_report_needs_no_log() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("clock.html");
    let page = page.to_str().unwrap();
    let output = clock_says(&["--duration", "1500ms", "--report", page]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let drawn = std::fs::read_to_string(page).unwrap();
    assert!(drawn.contains("readings"), "{drawn}");
    assert!(drawn.matches("<svg").count() >= 3, "{drawn}");
    let nowhere = format!("{page}/none.html");
    let output = clock_says(&["--report", &nowhere, "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("hint: give --report a file"), "{text}");
}

/// The slew lies on the kernel's own correction, where nobody slews an offset out.
#[test]
fn it_tells_how_the_host_is_slewed() {
    if has_no_counter() {
        return;
    }
    let mut child = clock(&["--duration", "1", "--json"]);
    let output = BufReader::new(child.stdout.take().unwrap());
    let line = output.lines().last().unwrap().unwrap();
    assert!(ends_within(&mut child, Duration::from_secs(20)));
    let slew = &serde_json::from_str::<Value>(&line).unwrap()["slew"];
    let number = |name: &str| slew[name].as_i64().unwrap_or_else(|| panic!("{slew}"));
    let off = (number("ppb") - number("kernel_ppb")).abs();
    // MAXFREQ, the most that an offset is slewed out by, and the counter's own error.
    assert!(off < 500_000 + number("bound_ppb"), "{slew}");
    assert!(number("bound_ppb") < 10_000, "{slew}");
    assert_eq!(number("breaks"), 0, "{slew}");
}

#[test]
fn what_is_no_reference_is_refused() {
    if has_no_counter() {
        return;
    }
    for (path, says) in [
        ("/nonexistent/ptp0", "cannot open /nonexistent/ptp0"),
        ("/dev/null", "/dev/null is no PTP hardware clock"),
    ] {
        let mut command = Command::new(tscap_path());
        let done = command.args(["clock", "--reference", path]).output();
        let done = done.expect("start tscap");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.contains("\nhint: "), "{said}");
        assert!(done.stdout.is_empty());
    }
}

#[test]
fn a_report_does_not_replace_its_log() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clock.log");
    let (log, around) = (path.to_str().unwrap(), folder.path().join("./clock.log"));
    let output = clock_says(&["--log", log, "--report", around.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("hint: give the report another file"),
        "{text}"
    );
    assert!(!path.exists());
    // A link leads to the log only once that is there.
    let link = folder.path().join("page.html");
    std::os::unix::fs::symlink("clock.log", &link).unwrap();
    let page = link.to_str().unwrap();
    let output = clock_says(&["--log", log, "--report", page, "--duration", "200ms"]);
    assert_eq!(output.status.code(), Some(1));
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept.starts_with("{\"kind\":\"clock\""), "{kept}");
}

/// As where the table goes to a disk that is full.
#[test]
fn log_and_report_are_kept_when_the_table_can_not_be_written() {
    if has_no_counter() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (log, page) = (path("clock.log"), path("clock.html"));
    let mut command = Command::new(tscap_path());
    command
        .args(["clock", "--interval", "300ms", "--log"])
        .arg(&log);
    command.arg("--report").arg(&page);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().expect("start tscap");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("No space left"), "{text}");
    assert!(log_lines(&log).len() >= 2 && page.exists());
}

/// A pipe can be opened and read only once.
#[test]
fn a_report_is_drawn_of_a_pipe_too() {
    let folder = tempfile::tempdir().unwrap();
    let header = "{\"kind\":\"clock\",\"v\":1,\"boot_id\":\"boot-1\",\"tscap\":\"0.1.0\"}\n";
    let sweep = "{\"kind\":\"loss\",\"v\":9}\n";
    for (content, reported) in [(header, "boot-1"), (sweep, "a sweep of loss of version 9")] {
        let path = folder.path().join("saved");
        std::fs::write(&path, content).unwrap();
        let mut cat = Command::new("cat");
        let cat = cat.arg(&path).stdout(Stdio::piped());
        let mut cat = cat.spawn().expect("start cat");
        let mut command = Command::new(tscap_path());
        command.args(["report", "/dev/stdin"]);
        command.stdin(cat.stdout.take().unwrap());
        let output = command.output().expect("start tscap");
        assert!(cat.wait().unwrap().success());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(reported), "{text}");
    }
}
