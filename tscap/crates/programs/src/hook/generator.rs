//! The frame generator's program with its maps.

use std::io;
use std::os::fd::AsFd as _;

use aya::maps::xdp::XdpMapError;
use aya::maps::{Array, DevMap, MapData, MapError};
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfLoader};
use tscap_common::generator::{
    GAPS, Gaps, ORDERS, Orders, PAYLOAD_AT, SENDING, STOP, Sending, TARGET, TSC_BY, TSC_BY_KFUNC,
    TSC_BY_NOTHING, TSC_BY_PERF,
};

use super::attached_program::is_loaded;
use super::calibration::calibrate;
use super::code::Code;
use super::kfunc::Kfunc;
use super::load::{load_by, take};
use super::load_error::LoadError;
use super::program::Program;
use super::tsc::{BRACKET_PROGRAM, TscError, TscEvents};
use tscap_base::kernel_files::KernelFiles;
use tscap_clock::{Bounds, NsPerCycle, TscPath};
use tscap_host::perf::EventPriority;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_network::map_value::MapValue;

/// The committed object, or the one that `TSCAP_GENERATOR_OBJECT` named at build
/// time.
static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_GENERATOR_OBJECT_PATH"));

/// The programs, by how they pace frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorProgram {
    /// Waits until each frame is due.
    Paced,
    /// Waits for nothing.
    FlatOut,
}

impl GeneratorProgram {
    fn name(self) -> &'static str {
        match self {
            Self::Paced => "tscap_send_paced",
            Self::FlatOut => "tscap_send_flat_out",
        }
    }
}

/// Whether any process on this machine has the programs loaded, and the one that finds
/// the offset of a perf event, without which none stamps by one.
///
/// # Errors
/// Without CAP_SYS_ADMIN.
pub fn generates_by_perf() -> Result<bool, ProgramError> {
    Ok(is_loaded(GeneratorProgram::Paced.name())? && is_loaded(BRACKET_PROGRAM)?)
}

/// The programs, loaded, and what they are told.
pub struct Generator {
    ebpf: Ebpf,
    orders: Array<MapData, MapValue<Orders>>,
    gaps: Array<MapData, Gaps>,
    /// The paced one, and the other.
    programs: [Program; 2],
    /// The kfunc by which they have the TSC.
    kfunc: Option<TscPath>,
    /// What the kernel said to a kfunc that is there.
    refused: Option<LoadError>,
    tsc: Option<Tsc>,
}

/// What the programs read.
enum Tsc {
    Counter,
    Event(Event),
}

struct Event {
    _events: TscEvents,
    cpu: u32,
    rate: NsPerCycle,
    /// TSC less its count, cycles.
    offset: Bounds,
}

/// What they do, and whether they are to go on.
pub struct GeneratorState {
    sending: Array<MapData, MapValue<Sending>>,
    stop: Array<MapData, u32>,
}

impl Generator {
    /// Loads the programs for frames out of the interface with number `ifindex`
    /// in this thread's network namespace, payloads from byte `payload_at` on: such as
    /// read the TSC by the best way that the kernel takes.
    pub fn load(ifindex: u32, payload_at: usize) -> Result<(Self, GeneratorState), LoadError> {
        let load = |tsc_by, kfunc| Self::load_reading(ifindex, payload_at, tsc_by, kfunc);
        let kfuncs = [TscPath::Kernel, TscPath::Module].into_iter();
        let kfuncs = kfuncs.flat_map(|path| Kfunc::find(path, &KernelFiles::live()));
        let mut refused = None;
        for kfunc in kfuncs {
            match load(TSC_BY_KFUNC, Some(kfunc)) {
                Ok(generator) => return Ok(generator),
                Err(error) => refused = Some(error),
            }
        }
        let loaded = load(TSC_BY_PERF, None).or_else(|_| load(TSC_BY_NOTHING, None));
        let (generator, state) = loaded?;
        Ok((
            Self {
                refused,
                ..generator
            },
            state,
        ))
    }

    fn load_reading(
        ifindex: u32,
        payload_at: usize,
        tsc_by: u32,
        kfunc: Option<Kfunc>,
    ) -> Result<(Self, GeneratorState), LoadError> {
        let payload_at = u32::try_from(payload_at).unwrap_or(u32::MAX);
        let mut ebpf = EbpfLoader::new()
            .override_global(PAYLOAD_AT, &payload_at, true)
            .override_global(TSC_BY, &tsc_by, true)
            .load(OBJECT)?;
        let path = kfunc.as_ref().map(|kfunc| kfunc.path);
        let calling = kfunc.map(|kfunc| Code::of(OBJECT, &ebpf, kfunc.calls()));
        let calling = calling.transpose()?;
        let mut load =
            |program: GeneratorProgram| load_by(&mut ebpf, program.name(), calling.as_ref());
        let programs = [
            load(GeneratorProgram::Paced)?,
            load(GeneratorProgram::FlatOut)?,
        ];
        let mut target: DevMap<MapData> = take(&mut ebpf, TARGET)?;
        target
            .set(0, ifindex, None, 0)
            .map_err(|source| LoadError::Map {
                map: TARGET,
                source: match source {
                    XdpMapError::MapError(source) => source,
                    XdpMapError::ChainedProgramNotSupported => {
                        unreachable!("no program is chained")
                    }
                },
            })?;
        let state = GeneratorState {
            sending: take(&mut ebpf, SENDING)?,
            stop: take(&mut ebpf, STOP)?,
        };
        let generator = Self {
            orders: take(&mut ebpf, ORDERS)?,
            gaps: take(&mut ebpf, GAPS)?,
            programs,
            kfunc: path,
            refused: None,
            ebpf,
            tsc: None,
        };
        Ok((generator, state))
    }

    /// Makes the programs read the TSC, when they run on `cpu`; returns by which way,
    /// and the offset's greatest error, ns.
    pub fn read_tsc(&mut self, cpu: u32, rate: NsPerCycle) -> Result<(TscPath, u64), TscError> {
        if let Some(kfunc) = self.kfunc {
            self.tsc = Some(Tsc::Counter);
            return Ok((kfunc, 0));
        }
        // Who has a kfunc needs no event.
        let event = Event::open(&mut self.ebpf, cpu, rate);
        let event = event.map_err(|error| self.refused.take().map_or(error, TscError::from))?;
        let bound = rate.duration_ns(event.offset.half_width()) + 1;
        self.tsc = Some(Tsc::Event(event));
        Ok((TscPath::Perf, bound))
    }

    /// Looks at the event again: how far its offset has moved, because it had to
    /// pause for somebody else's, ns. The programs are told the new one with
    /// their next orders.
    pub fn tsc_moved_ns(&mut self) -> Result<u64, TscError> {
        let Some(Tsc::Event(event)) = &mut self.tsc else {
            return Ok(0);
        };
        let now = calibrate(&mut self.ebpf, event.cpu, event.rate)?.cycles;
        if let Some(both) = event.offset.intersect(now) {
            event.offset = both;
            return Ok(0);
        }
        let moved = now.middle().0.abs_diff(event.offset.middle().0);
        event.offset = now;
        Ok(event.rate.duration_ns(moved))
    }

    /// Forgets the gaps counted.
    pub fn forget_gaps(&mut self) -> Result<(), MapError> {
        self.gaps.set(0, [0; _], 0)
    }

    /// Tells what to send.
    pub fn order(&mut self, orders: Orders) -> Result<(), MapError> {
        let orders = Orders {
            reads_tsc: u16::from(self.tsc.is_some()),
            tsc_offset: self.tsc.as_ref().map_or(0, Tsc::offset),
            ..orders
        };
        self.orders.set(0, MapValue(orders), 0)
    }

    /// The histogram of gap errors.
    pub fn gaps(&self) -> Result<Box<Gaps>, MapError> {
        Ok(Box::new(self.gaps.get(&0, 0)?))
    }

    /// Runs a program on `times` live frames, copies of `frame`, of which the
    /// kernel makes `batch` at a time.
    ///
    /// # Errors
    /// EINTR when a signal came, E2BIG or EINVAL where the kernel has no live
    /// frames or none so long.
    pub fn run(
        &self,
        program: GeneratorProgram,
        frame: &[u8],
        times: u32,
        batch: u32,
    ) -> io::Result<()> {
        self.program(program).run_live(frame, times, batch)
    }

    /// Makes the calls that run a program short, as long as the link lives: by native XDP on the
    /// interface with number `ifindex` of this thread's network namespace, which must receive
    /// nothing.
    ///
    /// A call for several frames puts its program into the dispatcher of XDP and takes it out
    /// again, and waits each time until no CPU uses the former one: tens of milliseconds
    /// (`bpf_prog_test_run_xdp`, net/bpf/test_run.c; `bpf_dispatcher_update`,
    /// kernel/bpf/dispatcher.c). One that is attached stays there.
    ///
    /// # Errors
    /// EBUSY if a program is there, EOPNOTSUPP without native XDP.
    pub fn stay_dispatched(
        &self,
        program: GeneratorProgram,
        ifindex: u32,
    ) -> io::Result<InterfaceLink> {
        let program = self.program(program).as_fd();
        InterfaceLink::attach(program, ifindex, LinkPoint::NativeXdp)
    }

    fn program(&self, program: GeneratorProgram) -> &Program {
        let [paced, flat_out] = &self.programs;
        match program {
            GeneratorProgram::Paced => paced,
            GeneratorProgram::FlatOut => flat_out,
        }
    }
}

impl Tsc {
    fn offset(&self) -> u64 {
        match self {
            Self::Counter => 0,
            Self::Event(event) => event.offset.middle().0.cast_unsigned(),
        }
    }
}

impl Event {
    fn open(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<Self, TscError> {
        // A capture that stamps with the TSC on the same CPU must not pause for us.
        let events = TscEvents::open(ebpf, &[cpu], EventPriority::Flexible)?;
        Ok(Self {
            _events: events,
            cpu,
            rate,
            offset: calibrate(ebpf, cpu, rate)?.cycles,
        })
    }
}

impl GeneratorState {
    /// Puts the programs at the start: the first frame is due at `due_ns`,
    /// CLOCK_MONOTONIC; with 0 when they first run.
    pub fn begin(&mut self, due_ns: u64) -> Result<(), MapError> {
        let start = Sending {
            due_ns,
            ..Sending::default()
        };
        self.sending.set(0, MapValue(start), 0)
    }

    /// Where the programs are. Not all of one moment while they run.
    pub fn sending(&self) -> Result<Sending, MapError> {
        Ok(self.sending.get(&0, 0)?.0)
    }

    /// Tells the programs to send, or to send no more.
    pub fn set_stopped(&mut self, stopped: bool) -> Result<(), MapError> {
        self.stop.set(0, u32::from(stopped), 0)
    }

    /// Whether they have been told to send no more.
    pub fn is_stopped(&self) -> Result<bool, MapError> {
        Ok(self.stop.get(&0, 0)? != 0)
    }
}
