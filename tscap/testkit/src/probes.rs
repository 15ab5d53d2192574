//! The test-only XDP programs, loaded.

use aya::programs::tc::{TcAttachOptions, TcAttachType};
use aya::programs::{LinkOrder, SchedClassifier, Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use tscap_capture::Programs;

use crate::port::Port;

/// The object with the test-only programs.
pub static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ebpf/probes.bpf.o"));

/// The program `name` for a capture, with rings for `ring_cpus`, all CPUs if `None`.
pub fn programs(name: &str, ring_cpus: Option<Vec<u32>>) -> Programs {
    Programs {
        object: OBJECT.into(),
        name: Some(name.into()),
        ring_cpus,
    }
}

/// Loads the program `name`, which redirects to `redirect_to` if it redirects.
pub fn load(name: &str, redirect_to: u32) -> Ebpf {
    let mut ebpf = object(redirect_to);
    program(&mut ebpf, name)
        .load()
        .unwrap_or_else(|error| panic!("load program {name}: {error:?}"));
    ebpf
}

fn object(redirect_to: u32) -> Ebpf {
    EbpfLoader::new()
        .override_global("REDIRECT_TO", &redirect_to, true)
        .load(OBJECT)
        .unwrap_or_else(|error| panic!("load the test programs: {error:?}"))
}

/// The XDP program `name` of an object.
pub fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> &'a mut Xdp {
    let program = ebpf
        .program_mut(name)
        .unwrap_or_else(|| panic!("no program {name}"));
    program.try_into().expect("an XDP program")
}

/// A program attached to an interface, until it is dropped.
#[derive(Debug)]
pub struct Attached {
    /// Its id in the kernel.
    pub id: u32,
    _ebpf: Ebpf,
}

impl Attached {
    /// Attaches `probe_pass`, which lets every frame pass.
    pub fn pass(port: &Port, mode: XdpMode) -> Self {
        Self::new("probe_pass", port, mode)
    }

    /// Attaches `probe_drop` natively, which drops every frame.
    pub fn dropping(port: &Port) -> Self {
        Self::new("probe_drop", port, XdpMode::Driver)
    }

    fn new(name: &str, port: &Port, mode: XdpMode) -> Self {
        let mut ebpf = load(name, 0);
        let xdp = program(&mut ebpf, name);
        port.netns
            .enter(|| xdp.attach_to_if_index(port.index, mode))
            .unwrap_or_else(|error| panic!("attach to {}: {error:?}", port.name));
        let id = xdp.info().expect("program info").id();
        Self { id, _ebpf: ebpf }
    }
}

/// Sends what one interface receives out of another one of its namespace, by tcx, until it is
/// dropped: behind XDP, and without the network stack.
#[derive(Debug)]
pub struct Forwarding {
    _ebpf: Ebpf,
}

impl Forwarding {
    /// Attaches it.
    pub fn between(from: &Port, to: &Port) -> Self {
        let mut ebpf = object(to.index);
        let forward = ebpf.program_mut("probe_forward").expect("it is there");
        let forward: &mut SchedClassifier = forward.try_into().expect("a program of tc");
        forward.load().expect("load probe_forward");
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        from.netns
            .enter(|| forward.attach_with_options(&from.name, TcAttachType::Ingress, options))
            .unwrap_or_else(|error| panic!("attach to {}: {error:?}", from.name));
        Self { _ebpf: ebpf }
    }
}
