//! Bad input and faults of `tscap capture`: each says what, why and what to do,
//! ends with the right exit code, and leaves nothing behind. Needs root.

mod direct;
mod disk;
mod interfaces;
mod killed;
mod outputs;
mod privileges;
mod programs;
mod rings;
mod vanishing;
