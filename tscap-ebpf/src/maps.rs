//! Maps and load-time constants; `tscap_common::config` says what each is.

use aya_ebpf::Global;
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, PerCpuArray};
use tscap_common::ring::{MIN_RING_BYTES, value_size};
use tscap_common::state::{CpuState, Losses};

const BPF_F_MMAPABLE: u32 = 1 << 10;

/// User space patches the value size and the number of entries before loading.
#[map]
pub static RINGS: Array<[u8; value_size(MIN_RING_BYTES)]> =
    Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
pub static CPUS: Array<CpuState> = Array::with_max_entries(1, 0);

#[map]
pub static LOSSES: PerCpuArray<Losses> = PerCpuArray::with_max_entries(1, 0);

#[unsafe(no_mangle)]
pub static RING_MASK: Global<u64> = Global::new(MIN_RING_BYTES as u64 - 1);

#[unsafe(no_mangle)]
pub static SNAPLEN: Global<u32> = Global::new(262_144);

#[unsafe(no_mangle)]
pub static KEEP_RAW: Global<u32> = Global::new(0);

#[unsafe(no_mangle)]
pub static PACKET_FLAGS: Global<u32> = Global::new(0);

#[unsafe(no_mangle)]
pub static PACKET_QUEUE: Global<u32> = Global::new(0);
