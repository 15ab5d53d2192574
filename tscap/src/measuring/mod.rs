//! What measures, by what [`crate::capturing`] exports: `measure` (loss, order and delay
//! of streams, from a file), `generator` (sends frames), `load` (captures under load,
//! also by other programs), `compare` (what stamps cost), `delay` (how long packets take
//! between two places), `qos` (the quality of flows), `counters` (what counters are like),
//! `loss` (where frames are lost, and a model of it), `envelope` and `machine` (how a result
//! came about), `saved` (results read back), `statistics`, `report` (results as text and HTML).

pub mod compare;
pub mod counters;
pub mod delay;
pub mod envelope;
pub mod generator;
pub mod load;
pub mod loss;
pub mod machine;
pub mod measure;
pub mod observer;
pub mod qos;
pub mod report;
pub mod saved;
pub mod statistics;
