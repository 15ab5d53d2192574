//! The experiment of Orosz & Skopkó on any machine: what a stamp costs, and what
//! that does to precision and loss.

pub mod schema;
