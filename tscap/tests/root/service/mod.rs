//! `tscap capture` as a service: what it tells Prometheus and a service manager. Needs root.

mod booted;
mod journal;
mod metrics;
mod notify;
mod unit;
