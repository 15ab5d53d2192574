//! Runs `cargo test`, passing on what it prints, and counts the outcomes.

use std::io::{BufRead, BufReader, Read};
use std::mem;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::sh;

/// More targets than this that fail are no chance.
const MOST_AGAIN: usize = 2;

/// Outcomes of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed, those that skipped themselves included.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests marked `#[ignore]`.
    pub ignored: u64,
    /// Tests that printed `SKIPPED`.
    pub skipped: u64,
    /// Tests that failed at first, and passed when their target ran again.
    pub flaky: u64,
    /// Runs of cargo that failed, for whatever reason.
    pub failed_runs: u64,
    /// Targets of the last run with tests that failed, as cargo names them.
    pub failed_targets: Vec<String>,
}

impl Tally {
    /// Runs tests that a busy machine can disturb: `cargo_test` gives the command for these
    /// targets, or for all. Targets that fail run once more, by themselves, and the
    /// report says so.
    pub fn run_twice(
        &mut self,
        mut cargo_test: impl FnMut(Option<&[String]>) -> Command,
    ) -> Result<()> {
        let mut first = Self::default();
        first.run(&mut cargo_test(None))?;
        let targets = mem::take(&mut first.failed_targets);
        if (1..=MOST_AGAIN).contains(&targets.len()) {
            println!("\nfailed, and run again: {}", targets.join(", "));
            let mut again = Self::default();
            again.run(&mut cargo_test(Some(&targets)))?;
            if again.failed_runs == 0 {
                println!("FLAKY: {} passed when run again", targets.join(", "));
                first.flaky = first.failed.max(1);
                first.failed = 0;
                first.failed_runs = 0;
            }
        }
        self.add(&first);
        Ok(())
    }

    fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped += other.skipped;
        self.flaky += other.flaky;
        self.failed_runs += other.failed_runs;
    }

    /// Runs one `cargo test` and adds its outcomes.
    pub fn run(&mut self, cargo_test: &mut Command) -> Result<()> {
        eprintln!("+ {}", sh::line(cargo_test));
        cargo_test.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = cargo_test
            .spawn()
            .map_err(|e| sh::not_started(cargo_test, &e))?;
        let stdout = child
            .stdout
            .take()
            .context("cargo has no standard output")?;
        let stderr = child.stderr.take().context("cargo has no standard error")?;
        let errors = thread::spawn(move || {
            let mut tally = Self::default();
            pass_on(stderr, |line| {
                eprintln!("{line}");
                tally.count(line);
            });
            tally
        });
        pass_on(stdout, |line| {
            println!("{line}");
            self.count(line);
        });
        match errors.join() {
            Ok(tally) => {
                self.skipped += tally.skipped;
                self.failed_targets = tally.failed_targets;
            }
            Err(_) => bail!("the thread that reads cargo's errors panicked"),
        }
        let status = child.wait().context("cannot wait for cargo")?;
        if !status.success() {
            self.failed_runs += 1;
        }
        Ok(())
    }

    /// Counts what one line of output says.
    fn count(&mut self, line: &str) {
        if line.contains("SKIPPED ") {
            self.skipped += 1;
        }
        // "    `-p tscap --test root_gen`", below "error: 1 target failed:".
        let target = line.trim().strip_prefix("`-p tscap --test ");
        if let Some(target) = target.and_then(|rest| rest.strip_suffix('`')) {
            self.failed_targets.push(target.to_owned());
        }
        // "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …"
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|result| result.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else {
                continue;
            };
            let number: u64 = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

fn pass_on(output: impl Read, mut line: impl FnMut(&str)) {
    for text in BufReader::new(output).lines().map_while(Result::ok) {
        line(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_results_and_skips() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "SKIPPED root_capture::frames: not root",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        ] {
            tally.count(line);
        }
        let expected = Tally {
            passed: 5,
            failed: 1,
            ignored: 1,
            skipped: 1,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
    }

    /// Runs a script as if it were cargo; it is told whether it runs again.
    fn twice(script: &'static str) -> Tally {
        let mut tally = Tally::default();
        let run = |again: Option<&[String]>| {
            let mut sh = Command::new("sh");
            let targets = again.map(|targets| targets.join(" ")).unwrap_or_default();
            sh.args(["-c", script, "sh", &targets]);
            sh
        };
        tally.run_twice(run).expect("it runs");
        tally
    }

    #[test]
    fn a_target_that_fails_runs_again() {
        let tally = twice(
            "[ \"$1\" = root_gen ] && { echo 'test result: ok. 7 passed; 0 failed'; exit 0; }
             echo 'test result: FAILED. 5 passed; 2 failed'
             echo '    `-p tscap --test root_gen`' >&2; exit 1",
        );
        let expected = Tally {
            passed: 5,
            flaky: 2,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
    }

    #[test]
    fn what_fails_again_or_everywhere_fails() {
        let always = twice(
            "echo 'test result: FAILED. 5 passed; 2 failed'
             echo '    `-p tscap --test root_gen`' >&2; exit 1",
        );
        assert_eq!((always.failed, always.flaky, always.failed_runs), (2, 0, 1));
        let many = twice(
            "for target in a b c; do echo \"    \\`-p tscap --test $target\\`\" >&2; done
             [ -z \"$1\" ]; exit $((1 - $?))",
        );
        assert_eq!((many.flaky, many.failed_runs), (0, 1));
    }
}
