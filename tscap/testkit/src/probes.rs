//! The test-only XDP programs, loaded.

use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use tscap::capturing::capture::Programs;

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
    let mut ebpf = EbpfLoader::new()
        .override_global("REDIRECT_TO", &redirect_to, true)
        .load(OBJECT)
        .unwrap_or_else(|error| panic!("load the test programs: {error:?}"));
    program(&mut ebpf, name)
        .load()
        .unwrap_or_else(|error| panic!("load program {name}: {error:?}"));
    ebpf
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
