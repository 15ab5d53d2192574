//! Skopkó's experiment on any machine: where a capture loses frames, against their
//! size, the gap between them, the snaplen and the buffers; and what a model foretells
//! of it.
//!
//! `model` foretells.

pub mod model;
