//! Expressions and frames that the programs made of filters are held to libpcap with.

pub mod expressions;
pub mod frames;
