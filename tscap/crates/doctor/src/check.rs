//! One check and what came of it.

use serde::Serialize;

use tscap_base::kernel_files::KernelFileError;
use tscap_base::text::causes::chain;
use tscap_base::text::escaped::escaped;
use tscap_live::settings::SettingValue;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing to be done, or the question doesn't arise here.
    Good,
    /// A capture works, but its stamps could be better, or not all was seen.
    Warning,
    /// A capture would be refused.
    Bad,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// A command, ready to be run as root.
    Fix(String),
    /// Where no command does it.
    Advice(String),
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, which never changes.
    pub id: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do; nothing if it is good.
    #[serde(flatten)]
    pub remedy: Option<Remedy>,
    /// What the command of the remedy sets, where tscap can set it itself and give it back.
    #[serde(skip)]
    pub settings: Vec<SettingValue>,
}

/// What a check is about.
#[derive(Debug)]
pub(super) struct Topic {
    pub id: &'static str,
    pub why: &'static str,
}

impl Topic {
    pub fn good(&self, found: impl Into<String>) -> Check {
        self.check(Verdict::Good, found.into(), None)
    }

    pub fn warning(&self, found: impl Into<String>, remedy: Remedy) -> Check {
        self.check(Verdict::Warning, found.into(), Some(remedy))
    }

    pub fn bad(&self, found: impl Into<String>, remedy: Remedy) -> Check {
        self.check(Verdict::Bad, found.into(), Some(remedy))
    }

    /// A check by files of the kernel; one that can't be read is a warning.
    pub fn by_files(&self, look: impl FnOnce() -> Result<Check, KernelFileError>) -> Check {
        look().unwrap_or_else(|error| {
            self.warning(
                format!("not known: {}", chain(&error)),
                Remedy::Advice("run tscap doctor as root, with /proc and /sys mounted".into()),
            )
        })
    }

    fn check(&self, verdict: Verdict, found: String, remedy: Option<Remedy>) -> Check {
        Check {
            id: self.id,
            verdict,
            found: escaped(&found).into_owned(),
            why: self.why,
            remedy,
            settings: Vec::new(),
        }
    }
}

impl Check {
    /// With what the command of its remedy sets.
    #[must_use]
    pub(super) fn that_sets(self, settings: Vec<SettingValue>) -> Self {
        Self { settings, ..self }
    }
}

/// A command that fixes it.
pub(super) fn fix(command: impl Into<String>) -> Remedy {
    Remedy::Fix(command.into())
}

/// Words for what no command fixes.
pub(super) fn advice(text: impl Into<String>) -> Remedy {
    Remedy::Advice(text.into())
}

#[cfg(test)]
impl Check {
    /// Panics unless it came out so, with `found` in what was found.
    #[track_caller]
    pub(super) fn is(&self, verdict: Verdict, found: &str) -> &Self {
        assert_eq!(self.verdict, verdict, "{self:?}");
        assert!(self.found.contains(found), "{found:?} is not in {self:?}");
        self
    }

    /// Panics unless this command fixes it.
    #[track_caller]
    pub(super) fn fixed_by(&self, command: &str) {
        assert_eq!(self.remedy, Some(fix(command)), "{self:?}");
    }

    /// Panics unless it comes with words that have `part` in them.
    #[track_caller]
    pub(super) fn advises(&self, part: &str) {
        let says = matches!(&self.remedy, Some(Remedy::Advice(text)) if text.contains(part));
        assert!(says, "{part:?} is not in {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: Topic = Topic {
        id: "topic",
        why: "It matters.",
    };

    #[test]
    fn a_remedy_is_a_field_of_its_own() {
        let json = |check: Check| serde_json::to_value(check).unwrap();
        let bad = json(TOPIC.bad("wrong", fix("mend it")));
        assert_eq!(
            bad,
            serde_json::json!({"id": "topic", "verdict": "bad", "found": "wrong",
                               "why": "It matters.", "fix": "mend it"})
        );
        let warning = json(TOPIC.warning("odd", advice("think")));
        assert_eq!(
            (&warning["advice"], &warning["fix"]),
            (&"think".into(), &().into())
        );
        assert_eq!(json(TOPIC.good("right")).as_object().unwrap().len(), 4);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_warning() {
        let nowhere = std::path::Path::new("/nonexistent/file");
        let look = || tscap_base::kernel_files::read(nowhere).map(|text| TOPIC.good(text));
        let check = TOPIC.by_files(look);
        check
            .is(
                Verdict::Warning,
                "cannot read /nonexistent/file: No such file",
            )
            .advises("as root");
    }
}
