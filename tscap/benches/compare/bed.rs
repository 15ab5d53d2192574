//! A turn as `tscap compare` has it: a program attached, a burst sent, every frame
//! of it measured.

use std::cell::RefCell;

use anyhow::{Context, Result, ensure};
use tscap_clock::{NsPerCycle, StampPath, TscPath, measure_tsc_rate};
use tscap_lab::compare::{Programs, Settings, Stamp};
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_statistics::trimmed_mean;
use tscap_time::tsc;
use tscap_traffic::load::{Burst, Pair, Traffic};

use crate::common::rounds::Subject;

/// `enum xdp_action`.
const XDP_DROP: u32 = 1;

/// The pair, and what is sent through it.
pub struct TestBed {
    cpu: u32,
    rate: Option<NsPerCycle>,
    link: InterfaceLink,
    traffic: RefCell<Traffic>,
    _pair: Pair,
}

/// What the program that is measured has between its checkpoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct Between {
    /// The stamp; none is the floor.
    pub stamp: Stamp,
    /// Reads of the same clock besides.
    pub more_reads: u32,
    /// Multiplications besides.
    pub more_work: u32,
}

impl TestBed {
    /// For a thread that stays on `cpu`, which is moved into another namespace.
    pub fn open(cpu: u32) -> Result<Self> {
        let rate = tsc::check().ok().and_then(|()| measure_tsc_rate());
        let pair = Pair::new()?;
        let floor = load(cpu, Between::default(), rate)?;
        let attach = || {
            let program = floor.cost_program(None)?;
            InterfaceLink::attach(program, pair.rx.index, LinkPoint::NativeXdp)
        };
        let link = pair.rx_netns.within(attach)?;
        pair.tx_netns.enter()?;
        Ok(Self {
            cpu,
            rate,
            link,
            traffic: RefCell::new(Traffic::new(&pair, cpu, rate)?),
            _pair: pair,
        })
    }

    /// Programs of their own, as if nothing else had been loaded.
    pub fn load(&self, between: Between) -> Result<Programs> {
        load(self.cpu, between, self.rate)
    }

    /// Measured in rounds: trimmed mean over `frames` frames of the second checkpoint less
    /// the first, ns.
    pub fn subject<'a>(
        &'a self,
        name: &'static str,
        between: Between,
        frames: u32,
    ) -> Result<Subject<'a, f64>> {
        let mut programs = self.load(between)?;
        Ok(Subject::new(name, move || {
            programs.reload(between.stamp)?;
            self.link.replace(programs.cost_program(between.stamp)?)?;
            let burst = Burst::fast(frames.into());
            let measured = programs.measure(&mut self.traffic.borrow_mut(), burst)?;
            let came = measured.samples.len();
            ensure!(
                came as u64 == measured.sent,
                "{came} of {} frames came",
                measured.sent
            );
            let costs = measured.samples.iter().map(|it| i64::try_from(it.cost_ns));
            Ok(trimmed_mean(&costs.collect::<Result<Vec<_>, _>>()?))
        }))
    }
}

fn load(cpu: u32, between: Between, rate: Option<NsPerCycle>) -> Result<Programs> {
    let settings = Settings {
        cpu,
        action: XDP_DROP,
        more_reads: between.more_reads,
        more_work: between.more_work,
    };
    let mut programs = Programs::load(settings, &[], None, None)?;
    match between.stamp {
        Some(StampPath::Tai) => programs.load_tai()?,
        Some(StampPath::Tsc(TscPath::Perf)) => {
            programs.load_tsc(rate.context("the TSC is no clock here")?)?;
        }
        _ => {}
    }
    Ok(programs)
}
