//! Words for people: numbers with their nouns, chains of causes, names that may hold
//! control characters.

pub(crate) mod causes;
pub(crate) mod escaped;
pub(crate) mod numbers;
