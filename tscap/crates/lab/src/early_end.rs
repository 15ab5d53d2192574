//! Experiments that end before all was measured.

use tscap_base::text::causes::chain;

/// Why an experiment ended early.
pub trait EarlyEnd: std::error::Error {
    /// Whether it was told to.
    fn is_stop(&self) -> bool;
}

/// What a reader of partial results must know.
pub(crate) fn early_end(error: &(impl EarlyEnd + 'static)) -> String {
    let partial = "ended before all was measured: these are partial results";
    if error.is_stop() {
        partial.into()
    } else {
        format!("{partial}: {}", chain(error))
    }
}

/// What ended an experiment, if it leaves results.
///
/// # Errors
/// If nothing was measured by then.
pub(crate) fn with_results<E>(ended: Result<(), E>, has_results: bool) -> Result<Option<E>, E> {
    match ended {
        Err(error) if !has_results => Err(error),
        ended => Ok(ended.err()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ExperimentError;
    use tscap_traffic::load::Stopped;

    #[test]
    fn an_early_end_is_explained() {
        assert!(early_end(&ExperimentError::Stopped(Stopped)).ends_with("partial results"));
        let source = std::io::Error::from_raw_os_error(libc::ENODEV);
        let said = early_end(&ExperimentError::Step(source));
        assert!(said.contains("partial results: No such device"), "{said}");
    }
}
