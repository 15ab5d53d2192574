//! What filters are tested by: expressions and frames, and filters in the kernel.

pub mod expressions;
pub mod frames;
pub mod in_kernel;
