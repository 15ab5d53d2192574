//! Values of options as people write them, each refused in tscap's own words.

mod addresses;
mod cpus;
mod numbers;
mod paths;
mod rates;
mod sizes;
mod sweeps;
mod times;

pub(super) use addresses::{Mac, ip, mac};
pub(super) use cpus::{Cpus, cpu, cpus};
pub(super) use numbers::{positive, within};
pub(super) use paths::metrics_file;
pub(super) use rates::{byte_rate, drift, line_rate, rate};
pub(super) use sizes::{bytes, file_size};
pub(super) use sweeps::{Gap, Gaps, Steps, byte_times, gaps, steps};
pub(super) use times::duration;
