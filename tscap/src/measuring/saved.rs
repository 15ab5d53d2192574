//! What tscap wrote as JSON, read back.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::measuring::compare::schema::{self as comparison, Comparison};
use crate::measuring::counters::schema::{self as counters, Characteristics};
use crate::measuring::delay::schema::{self as delay, Measurement};
use crate::measuring::loss::schema::{self as loss, Sweep};
use crate::measuring::observer::schema::{self as observer, Observation};
use crate::measuring::qos::layers::schema::{self as layers, Residences};
use crate::measuring::qos::schema::{self as qos, Quality};

/// Why a text is nothing that this tscap can read.
#[derive(Debug, Error)]
pub enum FormatError {
    /// Not JSON, or not of this shape; names line and column.
    #[error("not a {what} in JSON")]
    Json {
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Of no kind that can be drawn.
    #[error(
        "a {found}; this tscap reads comparisons, sweeps of loss, measurements of delays and \
         qualities of flows"
    )]
    Kind {
        /// What it says it is.
        found: String,
    },
    /// Something else than asked for.
    #[error("not a {what}, but a {found}")]
    Other {
        /// What it should be.
        what: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// Written by another version of tscap.
    #[error("a {what} of version {found}; this tscap reads version {known}")]
    Version {
        /// What it is.
        what: &'static str,
        /// The version in the text.
        found: u64,
        /// The version that can be read.
        known: u32,
    },
}

/// Something that was saved.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// By `tscap compare --json`.
    Comparison(Box<Comparison>),
    /// By `tscap loss --json`.
    Sweep(Box<Sweep>),
    /// By `tscap delay --json`.
    Delay(Box<Measurement>),
    /// By `tscap compare --observer --json`.
    Observation(Box<Observation>),
    /// By `tscap qos --json`.
    Quality(Box<Quality>),
    /// By `tscap qos --layers --json`.
    Residences(Box<Residences>),
    /// By `tscap counters --json`.
    Counters(Box<Characteristics>),
}

const COMPARISON: &str = "comparison";
const SWEEP: &str = "sweep of loss";
const DELAY: &str = "measurement of delays";
const OBSERVATION: &str = "observation of passing traffic";
const QUALITY: &str = "quality of flows";
const RESIDENCES: &str = "measurement of residences between layers";
const COUNTERS: &str = "description of counters";

/// What they all have; a comparison of an earlier tscap says of no kind that it is.
#[derive(Deserialize)]
struct Versioned {
    kind: Option<String>,
    v: u64,
}

impl Saved {
    /// Reads whatever it is. Of objects a line each, the last one counts: those before it
    /// tell how far a measurement was.
    ///
    /// # Errors
    ///
    /// [`FormatError`]; kind and version are judged before the rest of the object.
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        let is_object = last.starts_with('{') && last.ends_with('}');
        let text = if is_object { last } else { text };
        let versioned: Versioned =
            parse(text, "comparison, sweep of loss or measurement of delays")?;
        match versioned.kind.as_deref() {
            None | Some("comparison") => {
                check(versioned.v, COMPARISON, comparison::VERSION)?;
                parse(text, COMPARISON).map(Self::Comparison)
            }
            Some("loss") => {
                check(versioned.v, SWEEP, loss::VERSION)?;
                parse(text, SWEEP).map(Self::Sweep)
            }
            Some("delay") => {
                check(versioned.v, DELAY, delay::VERSION)?;
                parse(text, DELAY).map(Self::Delay)
            }
            Some("observer") => {
                check(versioned.v, OBSERVATION, observer::VERSION)?;
                parse(text, OBSERVATION).map(Self::Observation)
            }
            Some("qos") => {
                check(versioned.v, QUALITY, qos::VERSION)?;
                parse(text, QUALITY).map(Self::Quality)
            }
            Some("layers") => {
                check(versioned.v, RESIDENCES, layers::VERSION)?;
                parse(text, RESIDENCES).map(Self::Residences)
            }
            Some("counters") => {
                check(versioned.v, COUNTERS, counters::VERSION)?;
                parse(text, COUNTERS).map(Self::Counters)
            }
            Some(kind) => Err(FormatError::Kind { found: kind.into() }),
        }
    }

    /// What it is, in words: "sweep of loss".
    pub fn what(&self) -> &'static str {
        match self {
            Self::Comparison(_) => COMPARISON,
            Self::Sweep(_) => SWEEP,
            Self::Delay(_) => DELAY,
            Self::Observation(_) => OBSERVATION,
            Self::Quality(_) => QUALITY,
            Self::Residences(_) => RESIDENCES,
            Self::Counters(_) => COUNTERS,
        }
    }

    /// That something else was asked for.
    fn is_no(&self, what: &'static str) -> FormatError {
        FormatError::Other {
            what,
            found: self.what(),
        }
    }
}

impl Comparison {
    /// Reads what `tscap compare --json` wrote.
    ///
    /// # Errors
    ///
    /// [`FormatError`]
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        match Saved::from_json(text)? {
            Saved::Comparison(comparison) => Ok(*comparison),
            other => Err(other.is_no(COMPARISON)),
        }
    }
}

impl Sweep {
    /// Reads what `tscap loss --json` wrote.
    ///
    /// # Errors
    ///
    /// [`FormatError`]
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        match Saved::from_json(text)? {
            Saved::Sweep(sweep) => Ok(*sweep),
            other => Err(other.is_no(SWEEP)),
        }
    }
}

impl Measurement {
    /// Reads what `tscap delay --json` wrote.
    ///
    /// # Errors
    ///
    /// [`FormatError`]
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        match Saved::from_json(text)? {
            Saved::Delay(measurement) => Ok(*measurement),
            other => Err(other.is_no(DELAY)),
        }
    }
}

fn parse<T: DeserializeOwned>(text: &str, what: &'static str) -> Result<T, FormatError> {
    serde_json::from_str(text).map_err(|source| FormatError::Json { what, source })
}

fn check(found: u64, what: &'static str, known: u32) -> Result<(), FormatError> {
    match found == u64::from(known) {
        true => Ok(()),
        false => Err(FormatError::Version { what, found, known }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measuring::{compare, counters, delay, loss, observer};
    use crate::text::causes::chain;

    fn refusal(text: &str) -> String {
        chain(&Saved::from_json(text).unwrap_err())
    }

    #[test]
    fn what_was_written_is_read_back() {
        let comparison = compare::fixtures::comparison();
        let json = serde_json::to_string_pretty(&comparison).unwrap();
        assert_eq!(Comparison::from_json(&json).unwrap(), comparison);
        let other = Sweep::from_json(&json).unwrap_err();
        assert_eq!(other.to_string(), "not a sweep of loss, but a comparison");

        let sweep = loss::fixtures::sweep();
        let json = serde_json::to_string_pretty(&sweep).unwrap();
        assert_eq!(Sweep::from_json(&json).unwrap(), sweep);
        let other = Comparison::from_json(&json).unwrap_err();
        assert_eq!(other.to_string(), "not a comparison, but a sweep of loss");

        let measurement = delay::fixtures::hooks();
        let json = serde_json::to_string_pretty(&measurement).unwrap();
        assert_eq!(Measurement::from_json(&json).unwrap(), measurement);
        let other = Sweep::from_json(&json).unwrap_err();
        let other = other.to_string();
        assert_eq!(other, "not a sweep of loss, but a measurement of delays");
        let observation = observer::fixtures::observation();
        let json = serde_json::to_string_pretty(&observation).unwrap();
        let read = Saved::from_json(&json).unwrap();
        assert_eq!(read, Saved::Observation(Box::new(observation)));
        let characteristics = counters::fixtures::characteristics();
        let json = serde_json::to_string_pretty(&characteristics).unwrap();
        let read = Saved::from_json(&json).unwrap();
        assert_eq!(read, Saved::Counters(Box::new(characteristics)));
    }

    #[test]
    fn the_last_of_several_lines_is_the_result() {
        let measurement = delay::fixtures::hooks();
        let line = serde_json::to_string(&measurement).unwrap();
        let second = r#"{"event":"delay","v":1,"seconds":1.0}"#;
        let text = format!("{second}\n{second}\n{line}\n");
        assert_eq!(Measurement::from_json(&text).unwrap(), measurement);
        let refused = refusal(&format!("{second}\n{second}\n"));
        assert!(refused.contains("not a comparison in JSON"), "{refused}");
    }

    #[test]
    fn a_comparison_of_an_earlier_tscap_names_no_kind() {
        let comparison = compare::fixtures::comparison();
        let mut json = serde_json::to_value(&comparison).unwrap();
        let fields = json.as_object_mut().unwrap();
        assert_eq!(fields.remove("kind"), Some("comparison".into()));
        let read = Comparison::from_json(&json.to_string()).unwrap();
        assert_eq!(read, comparison);
    }

    #[test]
    fn fields_of_a_later_tscap_are_passed_over() {
        let mut json = serde_json::to_value(compare::fixtures::comparison()).unwrap();
        json["moon"] = "full".into();
        json["machine"]["phase"] = 0.5.into();
        assert!(Comparison::from_json(&json.to_string()).is_ok());
        let mut json = serde_json::to_value(loss::fixtures::sweep()).unwrap();
        json["points"][0]["tide"] = "low".into();
        assert!(Sweep::from_json(&json.to_string()).is_ok());
        let mut json = serde_json::to_value(delay::fixtures::hooks()).unwrap();
        json["passages"][0]["exits"][0]["account"]["tide"] = 1.into();
        assert!(Measurement::from_json(&json.to_string()).is_ok());
    }

    #[test]
    fn an_unknown_version_or_kind_is_named() {
        assert_eq!(
            refusal(r#"{"v": 9, "subjects": "of another kind"}"#),
            "a comparison of version 9; this tscap reads version 1"
        );
        assert_eq!(
            refusal(r#"{"kind": "loss", "v": 2}"#),
            "a sweep of loss of version 2; this tscap reads version 1"
        );
        assert_eq!(
            refusal(r#"{"kind": "delay", "v": 2}"#),
            "a measurement of delays of version 2; this tscap reads version 1"
        );
        assert_eq!(
            refusal(r#"{"kind": "tide table", "v": 1}"#),
            "a tide table; this tscap reads comparisons, sweeps of loss, measurements of delays and \
             qualities of flows"
        );
    }

    #[test]
    fn what_is_wrong_is_located() {
        let neither = "not a comparison, sweep of loss or measurement of delays in JSON";
        assert_eq!(
            refusal("{\n  \"v\": 1,\n}"),
            format!("{neither}: trailing comma at line 3 column 1")
        );
        assert_eq!(
            refusal(r#"{"frames": 3}"#),
            format!("{neither}: missing field `v` at line 1 column 13")
        );
        assert!(refusal("").starts_with(&format!("{neither}: EOF")));
        let json = serde_json::to_string_pretty(&compare::fixtures::comparison()).unwrap();
        let refused = refusal(&json.replace("\"cpus\": 2", "\"cpus\": \"two\""));
        assert!(refused.starts_with("not a comparison in JSON"), "{refused}");
        assert!(refused.contains("expected u32 at line "), "{refused}");
        let refused = refusal(r#"{"kind": "loss", "v": 1}"#);
        assert!(
            refused.starts_with("not a sweep of loss in JSON"),
            "{refused}"
        );
    }
}
