//! `-i any`, patterns, and other network namespaces: interfaces that are there, join, move
//! and go. Needs root: makes namespaces and interfaces, and captures only there.

mod churn;
mod joining;
mod moving;
mod namespaces;
mod node;
mod selecting;
mod versus;
