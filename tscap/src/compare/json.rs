//! Reads a comparison back.

use serde::Deserialize;
use thiserror::Error;

use super::schema::{Comparison, VERSION};

/// Why a text is no comparison that this tscap can read.
#[derive(Debug, Error)]
pub enum FormatError {
    /// Not JSON, or not of this shape; names line and column.
    #[error("not a comparison in JSON")]
    Json(#[from] serde_json::Error),
    /// Written by another version of tscap.
    #[error("a comparison of version {found}; this tscap reads version {VERSION}")]
    Version {
        /// The version in the text.
        found: u64,
    },
}

/// What a comparison of any version has.
#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

impl Comparison {
    /// Reads what `tscap compare --json` wrote.
    ///
    /// # Errors
    ///
    /// [`FormatError`]; the version is judged before the rest of the object.
    pub fn from_json(text: &str) -> Result<Self, FormatError> {
        let Versioned { v: found } = serde_json::from_str(text)?;
        if found != u64::from(VERSION) {
            return Err(FormatError::Version { found });
        }
        Ok(serde_json::from_str(text)?)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::causes::with_causes;
    use crate::compare::made;

    fn refusal(text: &str) -> String {
        let error = Comparison::from_json(text).unwrap_err();
        with_causes(error.to_string(), error.source())
    }

    #[test]
    fn what_was_written_is_read_back() {
        let comparison = made::comparison();
        let json = serde_json::to_string_pretty(&comparison).unwrap();
        assert_eq!(Comparison::from_json(&json).unwrap(), comparison);
    }

    #[test]
    fn fields_of_a_later_tscap_are_passed_over() {
        let mut json = serde_json::to_value(made::comparison()).unwrap();
        json["moon"] = "full".into();
        json["machine"]["phase"] = 0.5.into();
        assert!(Comparison::from_json(&json.to_string()).is_ok());
    }

    #[test]
    fn an_unknown_version_is_named() {
        assert_eq!(
            refusal(r#"{"v": 9, "subjects": "of another kind"}"#),
            "a comparison of version 9; this tscap reads version 1"
        );
    }

    #[test]
    fn what_is_wrong_is_located() {
        assert_eq!(
            refusal("{\n  \"v\": 1,\n}"),
            "not a comparison in JSON: trailing comma at line 3 column 1"
        );
        assert_eq!(
            refusal(r#"{"frames": 3}"#),
            "not a comparison in JSON: missing field `v` at line 1 column 13"
        );
        assert!(refusal("").starts_with("not a comparison in JSON: EOF"));
        let json = serde_json::to_string_pretty(&made::comparison()).unwrap();
        let refusal = refusal(&json.replace("\"cpus\": 2", "\"cpus\": \"two\""));
        assert!(refusal.contains("expected u32 at line "), "{refusal}");
    }
}
