//! Parts of the reports for people.

use super::machine::Machine;
use super::spread::Spread;

/// The first lines: where the figures are from, and how they are shown.
pub fn machine(machine: &Machine) -> Vec<String> {
    vec![
        format!("{}, {}", machine.hardware, machine.os),
        format!(
            "load {} at the start; medians (least–greatest of the rounds)",
            machine.load
        ),
    ]
}

/// All lines as one text.
pub fn text(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// A row: what it is about, and its figures.
pub fn row(what: &str, figures: &[String]) -> String {
    let figures = figures.iter().map(|figure| format!(" {figure:>17}"));
    format!("{what:<42}{}", figures.collect::<String>())
}

/// An empty line, a title, and the names of the columns.
pub fn heading(title: String, what: &str, figures: &[&str]) -> [String; 3] {
    let figures: Vec<_> = figures.iter().map(|figure| (*figure).to_owned()).collect();
    [String::new(), title, row(what, &figures)]
}

/// What could not be measured.
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
