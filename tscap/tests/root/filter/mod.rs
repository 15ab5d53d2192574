//! Filters in the kernel: the verifier takes them, and their verdicts are libpcap's for
//! every frame, wherever its linear part ends. Needs root and libpcap.

mod cut;
mod verdicts;
