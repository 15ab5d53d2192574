//! Cells and notes of the tables for people.

use tscap_statistics::Spread;

/// A row: what it is about, and its figures.
pub fn row(what: impl Into<String>, figures: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(what.into()).chain(figures).collect()
}

/// Notes of what could not be measured.
pub fn absent(reasons: &[String]) -> impl Iterator<Item = String> {
    reasons.iter().map(|reason| format!("absent: {reason}"))
}

/// Median (least–greatest); a dash for nothing.
pub fn show(spread: &Spread, decimals: usize) -> String {
    if spread.rounds.is_empty() {
        return "–".to_owned();
    }
    format!(
        "{:.decimals$} ({:.decimals$}–{:.decimals$})",
        spread.median, spread.min, spread.max
    )
}
