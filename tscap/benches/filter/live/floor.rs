//! Programs at the receiving end that record nothing: the least that a capture by XDP can
//! cost there.

use std::fs::File;
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use aya::programs::XdpMode;
use aya::{Ebpf, EbpfLoader};
use nix::sched::{CloneFlags, setns};
use tscap_testkit::probes;
use tscap_traffic::load::Pair;

use crate::common::programs::{find_program, load_program};

/// An empty program, and one that takes a stamp.
pub const FLOORS: [&str; 2] = ["probe_pass", "probe_stamp"];

/// One of these programs, loaded.
pub struct Floor {
    name: &'static str,
    ebpf: Ebpf,
    netns: File,
    ifindex: u32,
}

impl Floor {
    /// Loads it for the receiving end of `pair`.
    pub fn load(name: &'static str, pair: &Pair) -> Result<Self> {
        let mut ebpf = EbpfLoader::new().load(probes::OBJECT)?;
        load_program(&mut ebpf, name)?;
        Ok(Self {
            name,
            ebpf,
            netns: pair.rx_netns.file().try_clone()?,
            ifindex: pair.rx.index,
        })
    }

    /// Calls `work` while the program is attached.
    pub fn attached<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (netns, ifindex) = (&self.netns, self.ifindex);
        let program = find_program(&mut self.ebpf, self.name)?;
        // The network namespace is that of a thread of its own.
        let attach = || {
            setns(netns, CloneFlags::CLONE_NEWNET)?;
            anyhow::Ok(program.attach_to_if_index(ifindex, XdpMode::Driver)?)
        };
        let link = thread::scope(|scope| scope.spawn(attach).join());
        let link = link.map_err(|_| anyhow!("cannot attach {}", self.name))?;
        let link = link.with_context(|| format!("cannot attach {}", self.name))?;
        let result = work();
        find_program(&mut self.ebpf, self.name)?.detach(link)?;
        result
    }
}
