//! `tscap capture` over veth pairs in namespaces: what arrives, what is
//! counted, what stands in the file, and what is left behind. Needs root.

mod accounting;
mod api;
mod documents;
mod drops;
mod expected_disturbance;
mod file;
mod filter;
mod frames;
mod hardware;
mod limits;
mod many;
mod modes;
mod offloads;
mod output;
mod pipe;
mod promiscuity;
mod requests;
mod resources;
mod signals;
mod state;
mod tap;
mod vlan;
