//! Loads a program with its rings.

use std::os::fd::AsFd as _;
use std::sync::{Mutex, OnceLock};

use aya::maps::{Array, Map, MapData, MapError, PerCpuArray};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader};
use tscap_common::block::MAX_CAPLEN;
use tscap_common::config::{
    CPUS, KEEP_RAW, LOSSES, MIRROR_LOSSES, PACKET_FLAGS, PACKET_QUEUE, RING_MASK, RINGS, SNAPLEN,
};
use tscap_common::hook::{ClockDomain, Direction, Hook, Slot};
use tscap_common::key::KeyOf;
use tscap_common::ring::value_size;
use tscap_common::sighting::{KEPT, KEY_OF, PROCESS_PRODUCERS};
use tscap_common::state::CpuState;

use super::calibration;
use super::code::Code;
use super::counters::{Counters, cpu_state};
use super::kfunc::{ChecksumKfunc, Kfunc, TransmitKernel};
use super::load_error::{LoadError, load_program};
use super::loader::Loader;
use super::object::with_value_size;
use super::place::Place;
use super::program::Program;
use super::tsc::{TscError, TscEvents, TscOffset};
use crate::ring::Memory;
use tscap_base::kernel_files::KernelFiles;
use tscap_clock::NsPerCycle;
use tscap_filter as filter;
use tscap_host::perf::EventPriority;
use tscap_network::map_value::MapValue;

/// Name of the program that reads a kfunc some times.
pub const KFUNC_BRACKET_PROGRAM: &str = "tscap_kfunc_bracket";
/// Name of the program that mirrors frames to another interface.
pub const MIRROR_PROGRAM: &str = "tscap_mirror";

/// What programs record in the place of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// What the key of a packet is of.
    pub of: KeyOf,
    /// Most bytes of its frame that are kept beside, at most
    /// [`MOST_KEPT`](tscap_common::sighting::MOST_KEPT).
    pub kept: u32,
    /// Number of the first producer of programs that run for processes; `None` where none do.
    pub process_producers: Option<u32>,
}

/// What to load, and how.
#[derive(Clone, Debug)]
pub struct LoadOptions<'a> {
    /// The eBPF object; normally [`super::PROGRAMS`].
    pub object: &'a [u8],
    /// Name of the program at XDP in it.
    pub program: &'a str,
    /// The clock of all programs.
    pub clock: ClockDomain,
    /// The kfunc that it calls.
    pub kfunc: Option<&'a Kfunc>,
    /// For sent frames that are stamped before the driver: where the kernel has what that
    /// takes.
    pub transmit: Option<&'a TransmitKernel>,
    /// Frames that it rejects are counted only.
    pub filter: Option<&'a filter::Program>,
    /// Most interfaces that it is attached to.
    pub interfaces: u32,
    /// Length of each ring, bytes; a power of two.
    pub ring_bytes: usize,
    /// The CPUs that get a ring.
    pub ring_cpus: &'a [u32],
    /// Number of the highest possible CPU, plus one.
    pub possible_cpus: u32,
    /// Most bytes captured of a frame.
    pub snaplen: u32,
    /// Add the raw stamp to each block.
    pub keep_raw: bool,
    /// Add direction and state of the frame to each block.
    pub packet_flags: bool,
    /// Add the queue of a received frame to each block.
    pub packet_queue: bool,
    /// Keys in the place of frames: then the object is [`super::KEY_PROGRAMS`].
    pub keys: Option<Keys>,
    /// Frames at XDP end in the program, so that the network stack sees none of them.
    pub ends_frames: bool,
}

impl<'a> LoadOptions<'a> {
    /// The programs of `object` that stamp by CLOCK_MONOTONIC, for one interface, with a ring of
    /// `ring_bytes` for each CPU of `ring_cpus`: whole frames, or what `keys` keeps of them,
    /// and nothing beside them. Other fields are set behind this.
    pub fn new(
        object: &'a [u8],
        (ring_bytes, ring_cpus): (usize, &'a [u32]),
        possible_cpus: u32,
    ) -> Self {
        Self {
            object,
            program: "",
            clock: ClockDomain::Monotonic,
            kfunc: None,
            transmit: None,
            filter: None,
            interfaces: 1,
            ring_bytes,
            ring_cpus,
            possible_cpus,
            snaplen: MAX_CAPLEN as u32,
            keep_raw: false,
            packet_flags: false,
            packet_queue: false,
            keys: None,
            ends_frames: false,
        }
    }
}

/// A loaded program with its maps.
#[derive(Debug)]
pub struct Loaded {
    ebpf: Ebpf,
    loader: Loader,
    /// The program.
    pub program: Program,
    /// The counters.
    pub counters: Counters,
    /// The rings, mapped; taken by the consumers.
    pub rings: Option<Memory>,
}

impl Loaded {
    /// Loads the program and maps the rings.
    pub fn load(options: &LoadOptions<'_>) -> Result<Self, LoadError> {
        let ring_count = u32::try_from(options.ring_cpus.len()).unwrap_or(u32::MAX);
        let size = u32::try_from(value_size(options.ring_bytes)).unwrap_or(u32::MAX);
        let object = with_value_size(options.object, RINGS, size);
        let object = object.ok_or(LoadError::Missing("map RINGS"))?;
        let mask = options.ring_bytes as u64 - 1;
        let keep_raw = u32::from(options.keep_raw);
        let packet_flags = u32::from(options.packet_flags);
        let packet_queue = u32::from(options.packet_queue);
        let keys = options.keys.unwrap_or(Keys {
            of: KeyOf::Bridge,
            kept: 0,
            process_producers: None,
        });
        let (has_keys, has_frames) = (options.keys.is_some(), options.keys.is_none());
        let key_of = keys.of as u32;
        let process_producers = keys.process_producers.unwrap_or(0);
        let has_layers = keys.process_producers.is_some();
        let mut ebpf = EbpfLoader::new()
            .override_global(RING_MASK, &mask, true)
            .override_global(SNAPLEN, &options.snaplen, has_frames)
            .override_global(KEEP_RAW, &keep_raw, has_frames)
            .override_global(PACKET_FLAGS, &packet_flags, has_frames)
            .override_global(PACKET_QUEUE, &packet_queue, has_frames)
            .override_global(KEY_OF, &key_of, has_keys)
            .override_global(KEPT, &keys.kept, has_keys)
            .override_global(PROCESS_PRODUCERS, &process_producers, has_layers)
            .map_max_entries(RINGS, ring_count)
            .map_max_entries(CPUS, options.possible_cpus)
            .map_max_entries(LOSSES, Slot::of(options.interfaces, Direction::In).0)
            .load(&object)?;
        let calls = options.kfunc.map(Kfunc::calls).unwrap_or_default();
        let code = Code::of(&object, &ebpf, calls)?;

        let flags = options.packet_flags;
        let checksum = flags.then(|| ChecksumKfunc::find(&KernelFiles::live()));
        let checksum = checksum.flatten();

        let mut cpus: Array<MapData, MapValue<CpuState>> = take(&mut ebpf, CPUS)?;
        for cpu in 0..options.possible_cpus {
            let ring = options.ring_cpus.iter().position(|with| *with == cpu);
            cpus.set(cpu, cpu_state(ring), 0)
                .map_err(|source| LoadError::Map { map: CPUS, source })?;
        }
        let counters = Counters::new(cpus, take(&mut ebpf, LOSSES)?);

        let Some(Map::Array(rings)) = ebpf.map(RINGS) else {
            return Err(LoadError::Missing("array map RINGS"));
        };
        let rings = Memory::map(rings.fd(), ring_count, options.ring_bytes)?;

        let place = Place {
            filter: options.filter,
            transmit: options.transmit,
            ends_frames: options.ends_frames,
            ..Place::FIRST
        };
        // Not every clock can be read at every hook.
        if options.transmit.is_some() {
            code.load(Hook::Transmit.program(options.clock), &place)?;
        }
        Ok(Self {
            program: code.load(options.program, &place)?,
            ebpf,
            loader: Loader {
                name: options.program.to_owned(),
                clock: options.clock,
                code,
                checksum,
                transmit: options.transmit.cloned(),
                ends_frames: options.ends_frames,
                vlan_tag: OnceLock::new(),
                ahead: Mutex::default(),
            },
            counters,
            rings: Some(rings),
        })
    }

    /// Whether frames at XDP end in the programs.
    pub fn ends_frames(&self) -> bool {
        self.loader.ends_frames
    }

    /// The object, with the perf event array that the programs read the TSC by.
    pub fn object(&mut self) -> &mut Ebpf {
        &mut self.ebpf
    }

    /// Opens the TSC's events on `cpus` for the program.
    pub fn open_tsc_events(
        &mut self,
        cpus: &[u32],
        priority: EventPriority,
    ) -> Result<TscEvents, TscError> {
        TscEvents::open(&mut self.ebpf, cpus, priority)
    }

    /// Finds the offset of the event on `cpu` to the TSC.
    pub fn tsc_offset(&mut self, cpu: u32, rate: NsPerCycle) -> Result<TscOffset, TscError> {
        calibration::calibrate(&mut self.ebpf, cpu, rate)
    }

    /// What [`KFUNC_BRACKET_PROGRAM`] has read of the kfunc, in the order of time.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn kfunc_counts(&self) -> Result<Vec<u64>, TscError> {
        let brackets = calibration::brackets(&self.ebpf)?;
        Ok(brackets.iter().map(|bracket| bracket.cycles).collect())
    }

    /// Loads the program once more, to another place in memory; what is attached
    /// stays so.
    pub fn reload(&mut self) -> Result<(), LoadError> {
        self.program = self.loader.code.load(&self.loader.name, &Place::FIRST)?;
        Ok(())
    }

    /// Loads the program that mirrors frames to the interface with number `ifindex`.
    ///
    /// # Errors
    /// If the object has none, or the kernel refuses it.
    pub fn mirror_to(&self, ifindex: u32) -> Result<Program, LoadError> {
        let place = Place {
            slot: Slot(ifindex),
            ..Place::FIRST
        };
        self.loader.code.load(MIRROR_PROGRAM, &place)
    }

    /// Copies for a mirrored port that could not be made, or that its interface did not take.
    ///
    /// # Errors
    /// If the object has no such program, or the kernel does not tell.
    pub fn mirror_losses(&self) -> Result<u64, LoadError> {
        let map = self.ebpf.map(MIRROR_LOSSES);
        let map = map.ok_or(LoadError::Missing(MIRROR_LOSSES))?;
        let losses = PerCpuArray::<_, u64>::try_from(map);
        let losses = losses.and_then(|losses| losses.get(&0, 0));
        let losses = losses.map_err(|source| LoadError::Map {
            map: MIRROR_LOSSES,
            source,
        })?;
        Ok(losses.iter().sum())
    }

    /// A program for a place in the capture, by [`Loader::for_place`].
    pub(crate) fn for_place(&self, hook: Hook, place: &Place<'_>) -> Result<Program, LoadError> {
        self.loader.for_place(hook, place)
    }

    /// What loads programs for places.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }
}

/// Loads a program, once more if it is loaded.
pub(crate) fn load_by(
    ebpf: &mut Ebpf,
    name: &str,
    calling: Option<&Code>,
) -> Result<Program, LoadError> {
    if let Some(code) = calling {
        return code.load(name, &Place::FIRST);
    }
    let xdp: Option<&mut Xdp> = ebpf.program_mut(name).and_then(|it| it.try_into().ok());
    let xdp = xdp.ok_or(LoadError::Missing("XDP program of that name"))?;
    let refused = |source| LoadError::Program {
        program: name.to_owned(),
        source,
    };
    if xdp.fd().is_ok() {
        xdp.unload().map_err(refused)?;
    }
    load_program(xdp, name)?;
    let fd = xdp.fd().map_err(refused)?.as_fd().try_clone_to_owned();
    fd.map(Program::from).map_err(LoadError::Descriptor)
}

/// Takes a map out of a loaded object.
///
/// # Errors
/// If the object has no such map, or it is of another kind.
pub fn take<T: TryFrom<Map, Error = MapError>>(
    ebpf: &mut Ebpf,
    map: &'static str,
) -> Result<T, LoadError> {
    let found = ebpf.take_map(map).ok_or(LoadError::Missing(map))?;
    T::try_from(found).map_err(|source| LoadError::Map { map, source })
}
