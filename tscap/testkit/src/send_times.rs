//! Packets that an interface is to send, by whether they have a time to be sent at.

use aya::maps::{MapData, PerCpuArray};
use aya::programs::SchedClassifier;
use aya::programs::links::LinkOrder;
use aya::programs::tc::{TcAttachOptions, TcAttachType};
use aya::{Ebpf, EbpfLoader};

use crate::port::Port;
use crate::probes::OBJECT;

/// A program at tcx egress that counts, until it is dropped.
#[derive(Debug)]
pub struct SendTimes(Ebpf);

impl SendTimes {
    /// Counts what `port` is to send.
    pub fn of(port: &Port) -> Self {
        let mut loader = EbpfLoader::new();
        let loaded = loader
            .override_global("REDIRECT_TO", &0u32, true)
            .load(OBJECT);
        let mut ebpf = loaded.unwrap_or_else(|error| panic!("load the test programs: {error:?}"));
        let program = ebpf.program_mut("probe_send_time").expect("the program");
        let program: &mut SchedClassifier = program.try_into().expect("of tc");
        program.load().expect("load it");
        let at_tcx = TcAttachOptions::TcxOrder(LinkOrder::default());
        let attached = port
            .netns
            .enter(|| program.attach_with_options(&port.name, TcAttachType::Egress, at_tcx));
        attached.unwrap_or_else(|error| panic!("attach to {}: {error:?}", port.name));
        Self(ebpf)
    }

    /// Packets without and with one.
    pub fn counts(&self) -> [u64; 2] {
        let map = self.0.map("SEND_TIMES").expect("its map");
        let map = PerCpuArray::<&MapData, [u64; 2]>::try_from(map).expect("per CPU");
        let cpus = map.get(&0, 0).expect("counts");
        [0, 1].map(|kind| cpus.iter().map(|counts| counts[kind]).sum())
    }
}
