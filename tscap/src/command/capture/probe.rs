//! Whether a stamp source works here, found out without attaching anything.

use std::future::pending;

use tscap_common::ring::MIN_RING_BYTES;

use super::counter::Counter;
use super::{first_brackets, load, prepare, runtime};
use crate::clock::{HostClocks, StampSource};
use crate::command::{Failure, Hint as _};
use crate::sys::perf::Standing;
use crate::sys::{system, tsc};
use crate::xdp::{LoadOptions, PROGRAMS, program_name};

/// Gets ready to stamp with `source` as a capture does, with the smallest rings,
/// and lets go of everything again. Returns the bound of its stamps to this
/// host's clock, ns.
pub(in crate::command) fn probe(source: StampSource) -> Result<u64, Failure> {
    if source == StampSource::Tsc {
        prepare::check_tsc(tsc::check(), false)?;
    }
    let ring_cpus = system::online_cpus().trying("cannot list the online CPUs")?;
    let options = LoadOptions {
        object: PROGRAMS,
        program: program_name(source),
        ring_bytes: MIN_RING_BYTES,
        ring_cpus: &ring_cpus,
        possible_cpus: system::possible_cpus().trying("cannot count the possible CPUs")?,
        snaplen: 0,
        keep_raw: false,
        packet_meta: false,
    };
    let mut loaded = load::load_for(source, &options)?;
    let mut clocks = HostClocks::new(source);
    let brackets = first_brackets(source, &mut clocks, pending());
    let tracker = runtime()?.block_on(brackets)?;
    let mut tracker = tracker.expect("nothing stops it");
    if source == StampSource::Tsc {
        Counter::open(&ring_cpus, Standing::Flexible, &mut loaded, &mut tracker)?;
    }
    Ok(tracker.host_bound_ns())
}
