//! The programs of `tscap stamp` with their maps.

use std::num::NonZeroUsize;
use std::os::fd::AsFd as _;
use std::sync::atomic::{Ordering, fence};

use aya::maps::{Map, MapData, MapError, PerCpuArray};
use aya::{Ebpf, EbpfLoader};
use tscap_common::send_times::{MOST_PORTS, PORTS, SEND_COUNTS, SendCounts, send_program};
use tscap_common::stamping::{
    COOKIE, COUNTS, Counts, LATCH, Latch, OFFSETS, PLACE_PROGRAM, Published, mark_program,
};

use super::attach_error::AttachError;
use super::attach_point::AttachPoint;
use super::code::Code;
use super::kfunc::Kfunc;
use super::load::take;
use super::load_error::LoadError;
use super::place::Place;
use super::program::Program;
use tscap_clock::{MonoNs, StampPath};
use tscap_host::shared_words::SharedWords;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_network::netdev::Link;

/// The committed object, or the one that `TSCAP_STAMP_OBJECT` named at build time.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_STAMP_OBJECT_PATH"));

/// The programs, loaded, and what they are told.
pub struct Stamper {
    ebpf: Ebpf,
    mark: Program,
    place: Program,
    send: Option<Program>,
    counts: PerCpuArray<MapData, Counts>,
    send_counts: PerCpuArray<MapData, SendCounts>,
    latch: SharedWords,
    offsets: SharedWords,
}

/// The programs on an interface; detached on drop, also when the process ends in any way.
#[derive(Debug)]
pub struct StamperLinks {
    /// Before the one that it prepares for: in between packets carry stamps in vain.
    mark: InterfaceLink,
    place: InterfaceLink,
    send: Option<InterfaceLink>,
}

impl Stamper {
    /// Loads the programs that stamp by `path`, which takes `kfunc` where that is one, for CPUs
    /// up to `possible_cpus`, not included. `ports` are the [entries] of those whose packets get
    /// send times; without any there is no program for that.
    ///
    /// # Errors
    /// If the kernel refuses them.
    ///
    /// # Panics
    /// If there are more than [`MOST_PORTS`].
    ///
    /// [entries]: tscap_common::send_times::entry
    pub fn load(
        path: StampPath,
        kfunc: Option<&Kfunc>,
        possible_cpus: u32,
        ports: &[u32],
    ) -> Result<Self, LoadError> {
        let mut all_ports = [0; MOST_PORTS];
        all_ports[..ports.len()].copy_from_slice(ports);
        // Of two on this machine, loaded at different times.
        let cookie = MonoNs::now().0;
        let mut ebpf = EbpfLoader::new()
            .override_global(COOKIE, &cookie, true)
            .override_global(PORTS, &all_ports[..], true)
            .map_max_entries(OFFSETS, possible_cpus)
            .load(OBJECT)?;
        let calls = kfunc.map(Kfunc::calls).unwrap_or_default();
        let load = |name: &str, calls: &[_]| {
            let code = Code::of(OBJECT, &ebpf, calls)?;
            code.load(name, &Place::FIRST)
        };
        let mark = load(mark_program(path.domain()), calls)?;
        let place = load(PLACE_PROGRAM, &[])?;
        let send = match ports {
            [] => None,
            _ => Some(load(send_program(path.domain()), calls)?),
        };
        let latch = shared(&ebpf, LATCH, Latch::WORDS)?;
        let offsets = shared(&ebpf, OFFSETS, possible_cpus as usize)?;
        Ok(Self {
            counts: take(&mut ebpf, COUNTS)?,
            send_counts: take(&mut ebpf, SEND_COUNTS)?,
            ebpf,
            mark,
            place,
            send,
            latch,
            offsets,
        })
    }

    /// The object, with the perf event array that the programs read the TSC by.
    pub fn object(&mut self) -> &mut Ebpf {
        &mut self.ebpf
    }

    /// Attaches them to `interface`: to received frames in its driver, and before all other
    /// programs at tcx ingress and egress. Others at tcx run as if they were not there.
    ///
    /// # Errors
    /// If another program is at XDP, or the driver has no native XDP, or the kernel no tcx.
    pub fn attach(&self, interface: &Link) -> Result<StamperLinks, AttachError> {
        if let Some(xdp) = &interface.xdp {
            return Err(AttachError::Busy {
                interface: interface.name.clone(),
                xdp: xdp.clone(),
            });
        }
        let attach = |program: &Program, point, at| {
            let link = InterfaceLink::attach(program.as_fd(), interface.index, point);
            link.map_err(|error| AttachError::Refused {
                interface: interface.name.clone(),
                at,
                source: error.into(),
            })
        };
        let place = attach(&self.place, LinkPoint::TcxIngress, AttachPoint::TcxIngress)?;
        let mark = attach(&self.mark, LinkPoint::NativeXdp, AttachPoint::NativeXdp)?;
        let send = self.send.as_ref();
        let send = send.map(|it| attach(it, LinkPoint::TcxEgress, AttachPoint::TcxEgress));
        Ok(StamperLinks {
            mark,
            place,
            send: send.transpose()?,
        })
    }

    /// Has the programs go by that from now on.
    pub fn publish(&mut self, published: &Published) {
        let words = self.latch.words();
        let sequence = words[0].load(Ordering::Relaxed).wrapping_add(1);
        let at = Latch::word_of_line(sequence);
        // The line that readers of the former sequence do not look at; after they were told of
        // that.
        fence(Ordering::SeqCst);
        for (word, part) in words[at..].iter().zip(published.words()) {
            word.store(part, Ordering::Relaxed);
        }
        words[0].store(sequence, Ordering::Release);
    }

    /// Sets what stamps of `cpu` are increased by, cycles.
    pub fn set_offset(&self, cpu: u32, cycles: i64) {
        if let Some(word) = self.offsets.words().get(cpu as usize) {
            word.store(cycles.cast_unsigned(), Ordering::Relaxed);
        }
    }

    /// What the programs have counted, by CPU. Not all of one moment while they run.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn counts(&self) -> Result<Vec<Counts>, MapError> {
        Ok(self.counts.get(&0, 0)?.to_vec())
    }

    /// The same of the program that writes send times; `None` if there is none.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn send_counts(&self) -> Result<Option<Vec<SendCounts>>, MapError> {
        let counts = self.send.as_ref().map(|_| self.send_counts.get(&0, 0));
        Ok(counts.transpose()?.map(|cpus| cpus.to_vec()))
    }
}

impl std::fmt::Debug for Stamper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stamper").finish_non_exhaustive()
    }
}

impl StamperLinks {
    /// Whether all are where they were attached. The interface may be gone, or have been given
    /// to another namespace, or somebody may have detached them.
    pub fn are_there(&self) -> bool {
        let is_there = |link: &InterfaceLink| matches!(link.ifindex(), Ok(Some(_)));
        let all = [&self.mark, &self.place].into_iter().chain(&self.send);
        all.into_iter().all(is_there)
    }
}

/// Maps the words of an array map.
fn shared(ebpf: &Ebpf, map: &'static str, count: usize) -> Result<SharedWords, LoadError> {
    let Some(Map::Array(array)) = ebpf.map(map) else {
        return Err(LoadError::Missing(map));
    };
    let count = NonZeroUsize::new(count).ok_or(LoadError::Missing(map))?;
    SharedWords::map(array.fd(), count).map_err(LoadError::Memory)
}

#[cfg(test)]
mod tests {
    use aya_obj::Object;

    use super::*;

    #[test]
    fn each_path_has_a_program_of_its_clock() {
        let object = Object::parse(OBJECT).unwrap();
        let of = |path: StampPath| [mark_program, send_program].map(|name| name(path.domain()));
        let names = StampPath::ALL.into_iter().flat_map(of);
        for name in names.chain([PLACE_PROGRAM]) {
            assert!(object.programs.contains_key(name), "{name}");
        }
    }
}
