//! A test that can't run here says so.

use std::io::Write as _;

/// Says that this test is skipped, and why.
pub fn skip(reason: &str) {
    let name = test_name().unwrap_or_else(|| "a test".into());
    assert!(
        std::env::var_os("TSCAP_NO_SKIP").is_none_or(|value| value != "1"),
        "{name} can't run here: {reason}"
    );
    // Past the test harness, which would swallow a passing test's output.
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {reason}");
}

/// The name of the test that this thread runs: the harness names its threads so.
pub fn test_name() -> Option<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main")?;
    Some(name.to_owned())
}
