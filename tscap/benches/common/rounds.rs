//! Subjects that are measured in turns.

use anyhow::{Context as _, Result};

/// What is measured, and what came out.
pub struct Subject<'a, T> {
    /// Name in the report.
    pub name: &'static str,
    measure: Box<dyn FnMut() -> Result<T> + 'a>,
    /// By round.
    pub results: Vec<T>,
}

impl<'a, T> Subject<'a, T> {
    /// Nothing measured yet.
    pub fn new(name: &'static str, measure: impl FnMut() -> Result<T> + 'a) -> Self {
        Self {
            name,
            measure: Box::new(measure),
            results: Vec::new(),
        }
    }
}

/// Measures each subject once a round, every other round in the opposite order:
/// what changes on the machine meanwhile falls on all of them.
pub fn run<T>(part: &str, rounds: u32, subjects: &mut [Subject<'_, T>]) -> Result<()> {
    for round in 1..=rounds {
        eprintln!("{part}: round {round} of {rounds}");
        for subject in subjects.iter_mut() {
            let result = (subject.measure)();
            let result = result.with_context(|| format!("{part}, {}", subject.name))?;
            subject.results.push(result);
        }
        subjects.reverse();
    }
    if rounds % 2 == 1 {
        subjects.reverse();
    }
    Ok(())
}
