//! A [`Document`] of sections, which is told as text on a terminal and as a page in a browser.
//! Pure: nothing here touches the system, nor knows any kind of result.

pub mod chart;
mod density;
mod document;
mod facts;
mod figure;
mod layout;
mod shares;
mod table;
pub mod words;

pub use density::Histogram;
pub use document::{
    Document, FEW_POINTS, FLUSH, INDENTED, Indent, Section, Shown, Word, Words, notices,
};
pub use facts::facts;
pub use figure::Figure;
pub use layout::{Importance, Layout, List};
pub use shares::Shares;
pub use table::{Table, columns, head, row};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
