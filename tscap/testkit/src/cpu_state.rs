//! The per-CPU state of the running capture, as its map holds it.

use std::mem::offset_of;

use aya::maps::{Array, Map, MapData, loaded_maps};
use tscap_common::config::CPUS;
use tscap_common::state::CpuState;

/// Frames recorded so far by the capture that was started last, by CPU.
pub fn recorded() -> Vec<u64> {
    counts_at(offset_of!(CpuState, recorded))
}

/// Frames received so far that this capture has seen, by CPU.
pub fn received() -> Vec<u64> {
    counts_at(offset_of!(CpuState, seen))
}

fn counts_at(offset: usize) -> Vec<u64> {
    let maps = loaded_maps().filter_map(Result::ok);
    let ids = maps
        .filter(|map| map.name_as_str() == Some(CPUS))
        .map(|map| map.id());
    let id = ids.max().expect("a capture is running");
    let map = MapData::from_id(id).expect("open the map of the CPUs' state");
    let map: Array<_, [u8; size_of::<CpuState>()]> =
        Map::Array(map).try_into().expect("an array of CPU states");
    let states = map.iter().map(|state| state.expect("the state of a CPU"));
    let counts = states.map(|state| {
        let bytes = state[offset..].first_chunk();
        u64::from_ne_bytes(*bytes.expect("eight bytes"))
    });
    counts.collect()
}
