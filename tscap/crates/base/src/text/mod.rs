//! Text for people: numbers with their nouns, chains of causes, names that may hold
//! control characters, tables and folded lines.

pub mod causes;
pub mod escaped;
pub mod fold;
pub mod numbers;
pub mod table;
