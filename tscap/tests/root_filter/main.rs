//! Filters in the kernel: the verifier takes them, and their verdicts are libpcap's for
//! every frame, wherever its linear part ends. Needs root and libpcap.

#[path = "../filter/corpus/mod.rs"]
mod corpus;
mod cut;
#[path = "../filter/in_kernel.rs"]
mod in_kernel;
mod verdicts;
