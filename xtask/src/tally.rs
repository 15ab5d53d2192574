//! Runs `cargo test`, passing on what it prints, and counts the outcomes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::sh;

/// Outcomes of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed, those that skipped themselves included.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests marked `#[ignore]`.
    pub ignored: u64,
    /// Tests that printed `SKIPPED`.
    pub skipped: u64,
    /// Runs of cargo that failed, for whatever reason.
    pub failed_runs: u64,
}

impl Tally {
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
            Ok(tally) => self.skipped += tally.skipped,
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
            failed_runs: 0,
        };
        assert_eq!(tally, expected);
    }
}
