//! What is left of a capture's privileges once it runs, and whose its files are. Needs root:
//! makes namespaces and interfaces, and captures only there.

mod delay;
mod files;
mod keeper;
mod kept;
mod live;
mod member;
mod priority;
mod status;
mod users;
