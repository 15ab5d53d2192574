//! An error for people: what was tried, why it failed, and what to do next.

use std::error::Error;
use std::fmt;

use crate::text::causes::with_causes;
use crate::text::escaped::escaped_lines;

/// What was tried, why it failed, and what to do next.
#[derive(Debug)]
pub struct Failure {
    what: String,
    hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// Something that is wrong by itself.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: None,
            source: None,
        }
    }

    /// Of an `error`: says what was tried.
    pub fn from_error(
        error: impl Into<Box<dyn Error + Send + Sync>>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            hint: None,
            source: Some(error.into()),
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do next, if that has been said.
    pub fn what_next(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The whole chain of causes in one line.
    pub fn chain(&self) -> String {
        let source = self.source.as_deref().map(|error| error as &dyn Error);
        with_causes(self.what.as_str(), source)
    }
}

/// Makes a [`Failure`] of an error.
pub trait Context<T> {
    /// Says what was tried.
    fn context(self, what: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::from_error(error, what))
    }
}

/// Adds to a [`Failure`], if there is one.
pub trait Hint {
    /// Says what to do next.
    #[must_use]
    fn hint(self, what_next: impl Into<String>) -> Self;
}

impl<T> Hint for Result<T, Failure> {
    fn hint(self, what_next: impl Into<String>) -> Self {
        self.map_err(|failure| failure.hint(what_next))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped_lines(&self.chain()))?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", escaped_lines(hint)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_do_not_steer_the_terminal() {
        let failure = Failure::new("cannot read a\u{1b}[2J").hint("move \u{9b}31m away");
        let expected = r"cannot read a\u001b[2J".to_owned() + "\n" + r"hint: move \u009b31m away";
        assert_eq!(failure.to_string(), expected);
    }

    #[test]
    fn says_what_why_and_what_next() {
        let cause: Result<(), _> = Err(std::io::Error::from_raw_os_error(libc::ENOENT));
        let failure = cause
            .context("cannot open /nowhere/out.pcapng")
            .unwrap_err()
            .hint("create the folder first");
        assert_eq!(
            failure.to_string(),
            "cannot open /nowhere/out.pcapng: No such file or directory (os error 2)\n\
             hint: create the folder first"
        );
    }
}
