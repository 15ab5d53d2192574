//! Text for people: numbers with their nouns, chains of causes, names that may hold
//! control characters, tables and folded lines.

pub(crate) mod causes;
pub(crate) mod escaped;
pub(crate) mod fold;
pub(crate) mod numbers;
pub(crate) mod table;
