//! Running other programs; every error names the command line.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};

/// The command line as one would type it, without the environment.
pub fn line(command: &Command) -> String {
    let program = command.get_program();
    // rustup's cargo has a long path that nobody types.
    let program = if env::var_os("CARGO").is_some_and(|cargo| cargo == program) {
        "cargo".into()
    } else {
        program.to_string_lossy()
    };
    let mut words = vec![program.into_owned()];
    words.extend(command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.is_empty() || arg.contains(char::is_whitespace) {
            format!("'{arg}'")
        } else {
            arg.into_owned()
        }
    }));
    words.join(" ")
}

/// Prints the command line, runs it with our own standard streams and fails
/// unless it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    eprintln!("+ {}", line(command));
    let status = command.status().map_err(|e| not_started(command, &e))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs a command quietly and gives back what it printed; fails with its
/// standard error unless it succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| not_started(command, &e))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors = errors.trim_end();
        let separator = if errors.is_empty() { "" } else { "\n" };
        bail!(
            "`{}` failed: {}{separator}{errors}",
            line(command),
            output.status
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something else than UTF-8", line(command)))
}

/// Whether a command runs and succeeds; its output is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The first program of that name in `PATH`, or in the folders of a system
/// administrator, which a user's `PATH` may lack.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The error of a program that could not be started.
pub fn not_started(command: &Command, error: &std::io::Error) -> anyhow::Error {
    let cause = match error.kind() {
        ErrorKind::NotFound => "no such program".to_owned(),
        _ => error.to_string(),
    };
    anyhow!("cannot run `{}`: {cause}", line(command))
}
