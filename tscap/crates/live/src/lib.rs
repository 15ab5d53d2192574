//! What live commands have in common: settings that must be given back, processes that keep
//! privileges, what a member of the group that may capture is refused, and the network namespaces
//! of interfaces.

pub mod helper_process;
pub mod membership;
mod scope;
pub mod settings;

pub use scope::Scope;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
