//! A network namespace that is deleted with everything in it when this is
//! dropped.

use std::process::Command;

use anyhow::Result;

use crate::sh;

/// A named network namespace.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace.
    pub fn new(name: String) -> Result<Self> {
        sh::output(Command::new("ip").args(["netns", "add", &name]))?;
        Ok(Self { name })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` with these words in the namespace.
    pub fn ip(&self, words: &str) -> Result<()> {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.name]).args(words.split_whitespace());
        sh::output(&mut ip).map(drop)
    }

    /// A command that runs in the namespace: a program, then its arguments.
    pub fn exec(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = sh::output(Command::new("ip").args(["netns", "del", &self.name])) {
            eprintln!("warning: namespace {} stays behind: {error:#}", self.name);
        }
    }
}
