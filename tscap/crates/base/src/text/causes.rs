//! Errors for people.

pub use std::error::Error;

/// An error and the chain of causes behind it, in one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    with_causes(error.to_string(), error.source())
}

/// `text` and the chain of causes behind it, in one line.
pub fn with_causes(text: impl Into<String>, cause: Option<&dyn Error>) -> String {
    let mut chain = text.into();
    let mut next = cause;
    while let Some(error) = next {
        let text = error.to_string();
        // Some libraries repeat the cause in their own text.
        if !chain.ends_with(&text) {
            chain = format!("{chain}: {text}");
        }
        next = error.source();
    }
    chain
}
