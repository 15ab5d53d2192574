//! Experiments: what stamps cost, where frames are lost, what counters are like.

pub mod compare;
pub mod counters;
pub mod loss;
pub mod observer;
