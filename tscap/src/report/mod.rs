//! A comparison for people: [`text`] for a terminal, [`page`] for a browser. Pure:
//! nothing here touches the system.
//!
//! `tables` and `figures` choose what is shown, `table` and `chart` draw it.

mod chart;
mod density;
mod figures;
mod html;
mod paper;
mod table;
mod tables;
mod text;
mod words;

pub use html::page;
pub use text::text;

#[cfg(test)]
mod tests;
