//! Runs `cargo test`, passing on what it prints, and counts the outcomes.

use std::io::{BufRead, BufReader, Read};
use std::mem;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::sh;

/// More tests or targets than this that fail are no chance.
const MOST_AGAIN: usize = 10;

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
    /// Names of tests that failed.
    pub failed_tests: Vec<String>,
    /// A target ended before its last test.
    pub is_cut: bool,
    /// Tests that passed of the target whose outcomes are being read.
    pub passing: Vec<String>,
    /// Tests that had passed in targets that ended before their last.
    pub passed_before_cut: Vec<String>,
}

/// What is to run again.
#[derive(Clone, Copy, Debug)]
pub struct Again<'a> {
    /// A target.
    pub target: &'a str,
    /// These of its tests, among them names of other targets' tests; all if there is none.
    pub tests: &'a [String],
    /// If all: those that had passed before the target ended too early.
    pub passed: &'a [String],
}

impl Tally {
    /// Runs tests that a busy machine can disturb: `cargo_test` gives the command for these, or
    /// for all. Those that fail run once more, by themselves, and the report says so.
    pub fn run_twice(
        &mut self,
        mut cargo_test: impl FnMut(Option<Again<'_>>) -> Command,
    ) -> Result<()> {
        let mut first = Self::default();
        first.run(&mut cargo_test(None))?;
        let targets = mem::take(&mut first.failed_targets);
        let failed = mem::take(&mut first.failed_tests);
        let tests = if first.is_cut {
            Vec::new()
        } else {
            failed.clone()
        };
        let is_cut = first.is_cut;
        let passed = mem::take(&mut first.passed_before_cut);
        let some = 1..=MOST_AGAIN;
        if some.contains(&targets.len()) && tests.len() <= MOST_AGAIN {
            let names = [&targets[..], &tests[..]].concat().join(", ");
            println!("\nfailed, and run again: {names}");
            let mut again = Self::default();
            for target in &targets {
                again.run_failed(target, &tests, &passed, &mut cargo_test)?;
            }
            if is_cut {
                // What had passed, and the rest.
                first.passed += passed.len() as u64 + again.passed;
                first.skipped += again.skipped;
                first.ignored += again.ignored;
            }
            if again.failed_runs == 0 {
                println!("FLAKY: {names} passed when run again");
                first.flaky = first.failed.max(1);
                first.failed = 0;
                first.failed_runs = 0;
            } else {
                first.failed_tests = again.failed_tests;
            }
        } else {
            first.failed_tests = failed;
        }
        if first.failed_runs > 0 && (is_cut || first.failed_tests.is_empty()) {
            first.failed_targets = targets;
        }
        self.add(first);
        Ok(())
    }

    /// Runs those of `tests` that are of this target. One that ended without the name of a test
    /// runs as a whole.
    fn run_failed(
        &mut self,
        target: &str,
        tests: &[String],
        passed: &[String],
        cargo_test: &mut impl FnMut(Option<Again<'_>>) -> Command,
    ) -> Result<()> {
        let before = self.passed + self.failed;
        let again = Again {
            target,
            tests,
            passed,
        };
        self.run(&mut cargo_test(Some(again)))?;
        if self.passed + self.failed == before {
            let again = Again {
                tests: &[],
                ..again
            };
            self.run(&mut cargo_test(Some(again)))?;
        }
        Ok(())
    }

    fn add(&mut self, mut other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped += other.skipped;
        self.flaky += other.flaky;
        self.failed_runs += other.failed_runs;
        self.failed_targets.append(&mut other.failed_targets);
        self.failed_tests.append(&mut other.failed_tests);
    }

    /// What failed by its names: each test, and the targets that ended without one.
    pub fn names(&self) -> Option<String> {
        let mut names = [&self.failed_tests[..], &self.failed_targets[..]].concat();
        names.sort();
        names.dedup();
        (!names.is_empty()).then(|| names.join(", "))
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
                self.failed_targets.extend(tally.failed_targets);
                self.is_cut |= tally.is_cut;
            }
            Err(_) => bail!("the thread that reads cargo's errors panicked"),
        }
        self.passed_before_cut.append(&mut self.passing);
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
        // Said of other exit codes than that of tests that fail.
        self.is_cut |= line.contains("process didn't exit successfully");
        // "running 5 tests": no result stood behind the last ones.
        if line.starts_with("running ") {
            self.passed_before_cut.append(&mut self.passing);
        }
        // "test rates::of_a_socket ... FAILED"
        let test = line.strip_prefix("test ");
        if let Some(test) = test.and_then(|rest| rest.strip_suffix(" ... ok")) {
            self.passing.push(test.trim_end().to_owned());
        }
        if let Some(test) = test.and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            // libtest-mimic has them as wide as the longest.
            self.failed_tests.push(test.trim_end().to_owned());
        }
        // "    `-p tscap --test root`", below "error: 1 target failed:".
        let target = line.trim().strip_prefix("`-p ");
        let target = target.and_then(|rest| rest.split_once(" --test "));
        if let Some(target) = target.and_then(|(_, rest)| rest.strip_suffix('`')) {
            self.failed_targets.push(target.to_owned());
        }
        // "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …"
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|result| result.split_once(". "))
        else {
            return;
        };
        self.passing.clear();
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
            "SKIPPED capture::frames: not root",
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

    /// Runs a script as if it were cargo; it is told what runs again.
    fn twice(script: &'static str) -> Tally {
        let mut tally = Tally::default();
        let run = |again: Option<Again<'_>>| {
            let mut sh = Command::new("sh");
            sh.args(["-c", script, "sh"]);
            if let Some(again) = again {
                sh.arg(again.target).args(again.tests);
                if again.tests.is_empty() && !again.passed.is_empty() {
                    sh.arg("without").args(again.passed);
                }
            }
            sh
        };
        tally.run_twice(run).expect("it runs");
        tally
    }

    #[test]
    fn tests_that_fail_run_again() {
        let tally = twice(
            "[ \"$*\" = 'root a::b c' ] && { echo 'test result: ok. 2 passed; 0 failed'; exit 0; }
             echo 'test a::b ... FAILED'
             echo 'test d ... ok'
             echo 'test c         ... FAILED'
             echo 'test result: FAILED. 5 passed; 2 failed'
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        let expected = Tally {
            passed: 5,
            flaky: 2,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
    }

    /// One ended before its last test, so that nobody knows what else fails.
    #[test]
    fn of_a_target_that_is_cut_all_run_again_that_had_not_passed() {
        let tally = twice(
            "[ \"$*\" = 'root without b' ] && { echo 'test result: ok. 9 passed; 0 failed'; exit 0; }
             [ -n \"$1\" ] && exit 1
             echo 'running 2 tests'
             echo 'test z ... ok'
             echo 'test result: ok. 2 passed; 0 failed'
             echo 'running 11 tests'
             echo 'test a ... FAILED'
             echo 'test b ... ok'
             echo '  process didn'\\''t exit successfully: (signal: 6, SIGABRT)' >&2
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        let Tally {
            passed,
            flaky,
            failed_runs,
            ..
        } = tally;
        assert_eq!((passed, flaky, failed_runs), (2 + 1 + 9, 1, 0));
    }

    #[test]
    fn a_target_without_the_name_of_a_test_runs_again_as_a_whole() {
        let script = "case \"$*\" in
             'one a') echo 'test result: ok. 1 passed; 0 failed' ;;
             'two a') echo 'test result: ok. 0 passed; 0 failed' ;;
             two) echo 'test result: ok. 3 passed; 0 failed'; exit WHOLE ;;
             *) echo 'test a ... FAILED'; echo 'test result: FAILED. 5 passed; 1 failed'
                echo '    `-p tscap --test one`' >&2
                echo '    `-p tscap --test two`' >&2; exit 1 ;;
             esac";
        let outcome = |whole: &str| {
            let tally = twice(script.replace("WHOLE", whole).leak());
            (tally.failed, tally.flaky, tally.failed_runs)
        };
        assert_eq!(outcome("0"), (0, 1, 0));
        assert_eq!(outcome("1"), (1, 0, 1));
    }

    /// The names of what failed, however many there are.
    #[test]
    fn tests_that_fail_are_named_at_the_end() {
        let few = twice(
            "echo 'test a ... FAILED'; [ -z \"$1\" ] && echo 'test b ... FAILED'
             echo 'test result: FAILED. 5 passed; 2 failed'
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        assert_eq!(few.names().as_deref(), Some("a"), "b passed then");
        let many = twice(
            "for test in a b c d e f g h i j k; do echo \"test $test ... FAILED\"; done
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        assert_eq!(
            many.names().as_deref(),
            Some("a, b, c, d, e, f, g, h, i, j, k")
        );
        let cut = twice(
            "echo '  process didn'\\''t exit successfully: (signal: 6, SIGABRT)' >&2
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        assert_eq!(cut.names().as_deref(), Some("root"));
        assert_eq!(Tally::default().names(), None);
    }

    #[test]
    fn what_fails_again_or_everywhere_fails() {
        let always = twice(
            "echo 'test result: FAILED. 5 passed; 2 failed'
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        assert_eq!((always.failed, always.flaky, always.failed_runs), (2, 0, 1));
        let many = twice(
            "for target in a b c d e f g h i j k; do echo \"    \\`-p tscap --test $target\\`\" >&2; done
             [ -z \"$1\" ]; exit $((1 - $?))",
        );
        assert_eq!((many.flaky, many.failed_runs), (0, 1));
        let many = twice(
            "[ -z \"$1\" ] || { echo 'test result: ok. 6 passed; 0 failed'; exit 0; }
             for test in a b c d e f g h i j k; do echo \"test $test ... FAILED\"; done
             echo '    `-p tscap --test root`' >&2; exit 1",
        );
        assert_eq!((many.flaky, many.failed_runs), (0, 1));
    }
}
