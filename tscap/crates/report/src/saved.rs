//! What tscap wrote as JSON, read back.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use tscap_delay::schema::{self as delay, Measurement};
use tscap_document::Document;
use tscap_flows::layers::schema::{self as layers, Residences};
use tscap_flows::schema::{self as qos, Quality};
use tscap_lab::compare::schema::{self as comparison, Comparison};
use tscap_lab::counters::schema::{self as counters, Characteristics};
use tscap_lab::loss::schema::{self as loss, Sweep};
use tscap_lab::observer::schema::{self as observer, Observation};

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
    #[error("a {found}; this tscap reads: {}", Saved::ALL.join(", "))]
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

/// A kind of result that can be read alone.
pub trait Kind: Sized {
    /// What it is, in words.
    const WHAT: &'static str;

    /// It, if that was saved.
    fn of(saved: Saved) -> Option<Self>;

    /// It for people.
    fn document(&self) -> Document;
}

/// The one list of kinds: of each the variant with its type, who writes it, the field `kind` in
/// the file, the version that is read, what it is in words, and how it is told.
macro_rules! kinds {
    ($($variant:ident($type:ty), $by:literal, $kind:literal, $version:expr, $what:literal, $document:expr;)+) => {
        /// Something that was saved.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Saved {
            $(
                #[doc = concat!("By `tscap ", $by, " --json`.")]
                $variant(Box<$type>),
            )+
        }

        impl Saved {
            /// What can be read, in words.
            const ALL: &'static [&'static str] = &[$($what),+];

            fn of_kind(kind: &str, version: u64, text: &str) -> Result<Self, FormatError> {
                match kind {
                    $(
                        $kind => {
                            check(version, $what, $version)?;
                            parse(text, $what).map(Self::$variant)
                        }
                    )+
                    found => Err(FormatError::Kind { found: found.into() }),
                }
            }

            /// What it is, in words: "sweep of loss".
            pub fn what(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $what,)+
                }
            }

            /// It for people.
            pub fn document(&self) -> Document {
                match self {
                    $(Self::$variant(it) => it.document(),)+
                }
            }
        }

        $(
            impl Kind for $type {
                const WHAT: &'static str = $what;

                fn of(saved: Saved) -> Option<Self> {
                    match saved {
                        Saved::$variant(it) => Some(*it),
                        _ => None,
                    }
                }

                fn document(&self) -> Document {
                    $document(self)
                }
            }
        )+
    };
}

kinds! {
    Comparison(Comparison), "compare", "comparison", comparison::VERSION, "comparison", crate::compare::document;
    Sweep(Sweep), "loss", "loss", loss::VERSION, "sweep of loss", crate::sweep::document;
    Delay(Measurement), "delay", "delay", delay::VERSION, "measurement of delays",
        |it: &Measurement| crate::delay::document(&[it]);
    Observation(Observation), "compare --observer", "observer", observer::VERSION,
        "observation of passing traffic", crate::observer::document;
    Quality(Quality), "qos", "qos", qos::VERSION, "quality of flows", crate::qos::document;
    Residences(Residences), "qos --layers", "layers", layers::VERSION,
        "measurement of residences between layers", crate::layers::document;
    Counters(Characteristics), "counters", "counters", counters::VERSION,
        "description of counters", crate::counters::document;
}

/// What they all have; a comparison of an earlier tscap says of no kind that it is.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default = "comparison_kind")]
    kind: String,
    v: u64,
}

fn comparison_kind() -> String {
    "comparison".into()
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
        let versioned: Versioned = parse(text, "result of tscap")?;
        Self::of_kind(&versioned.kind, versioned.v, text)
    }
}

/// Reads a result of one kind.
///
/// # Errors
///
/// [`FormatError`]
pub fn read<T: Kind>(text: &str) -> Result<T, FormatError> {
    let saved = Saved::from_json(text)?;
    let (what, found) = (T::WHAT, saved.what());
    T::of(saved).ok_or(FormatError::Other { what, found })
}

fn parse<T: DeserializeOwned>(text: &str, what: &'static str) -> Result<T, FormatError> {
    serde_json::from_str(text).map_err(|source| FormatError::Json { what, source })
}

fn check(found: u64, what: &'static str, known: u32) -> Result<(), FormatError> {
    if found == u64::from(known) {
        Ok(())
    } else {
        Err(FormatError::Version { what, found, known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::text::causes::chain;
    use tscap_delay as delay;
    use tscap_lab::{compare, counters, loss, observer};

    fn refusal(text: &str) -> String {
        chain(&Saved::from_json(text).unwrap_err())
    }

    #[test]
    fn what_was_written_is_read_back() {
        let comparison = compare::fixtures::comparison();
        let json = serde_json::to_string_pretty(&comparison).unwrap();
        assert_eq!(read::<Comparison>(&json).unwrap(), comparison);
        let other = read::<Sweep>(&json).unwrap_err();
        assert_eq!(other.to_string(), "not a sweep of loss, but a comparison");

        let sweep = loss::fixtures::sweep();
        let json = serde_json::to_string_pretty(&sweep).unwrap();
        assert_eq!(read::<Sweep>(&json).unwrap(), sweep);
        let other = read::<Comparison>(&json).unwrap_err();
        assert_eq!(other.to_string(), "not a comparison, but a sweep of loss");

        let measurement = delay::fixtures::hooks();
        let json = serde_json::to_string_pretty(&measurement).unwrap();
        assert_eq!(read::<Measurement>(&json).unwrap(), measurement);
        let other = read::<Sweep>(&json).unwrap_err();
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
        assert_eq!(read::<Measurement>(&text).unwrap(), measurement);
        let refused = refusal(&format!("{second}\n{second}\n"));
        assert!(refused.contains("not a comparison in JSON"), "{refused}");
    }

    #[test]
    fn a_comparison_of_an_earlier_tscap_names_no_kind() {
        let comparison = compare::fixtures::comparison();
        let mut json = serde_json::to_value(&comparison).unwrap();
        let fields = json.as_object_mut().unwrap();
        assert_eq!(fields.remove("kind"), Some("comparison".into()));
        let read = read::<Comparison>(&json.to_string()).unwrap();
        assert_eq!(read, comparison);
    }

    #[test]
    fn fields_of_a_later_tscap_are_passed_over() {
        let mut json = serde_json::to_value(compare::fixtures::comparison()).unwrap();
        json["moon"] = "full".into();
        json["machine"]["phase"] = 0.5.into();
        assert!(read::<Comparison>(&json.to_string()).is_ok());
        let mut json = serde_json::to_value(loss::fixtures::sweep()).unwrap();
        json["points"][0]["tide"] = "low".into();
        assert!(read::<Sweep>(&json.to_string()).is_ok());
        let mut json = serde_json::to_value(delay::fixtures::hooks()).unwrap();
        json["passages"][0]["exits"][0]["account"]["tide"] = 1.into();
        assert!(read::<Measurement>(&json.to_string()).is_ok());
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
            format!("a tide table; this tscap reads: {}", Saved::ALL.join(", "))
        );
    }

    #[test]
    fn what_is_wrong_is_located() {
        let neither = "not a result of tscap in JSON";
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
