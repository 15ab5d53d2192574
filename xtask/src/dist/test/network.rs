//! A network of this process alone: a veth pair whose other end is in another namespace.

use std::process::Command;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::netns::Namespace;
use crate::sh;

/// Addresses that are reserved for documentation (RFC 5737).
const HERE: &str = "192.0.2.1";
const THERE: &str = "192.0.2.2";
/// Echo requests of one [`Network::ping`].
pub const REQUESTS: u64 = 5;

/// The other end.
pub struct Network {
    peer: Namespace,
}

impl Network {
    /// Takes this process into namespaces of its own for networks and mounts, for good, and
    /// makes the pair.
    pub fn enter() -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)
            .context("cannot make namespaces")?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
            .context("cannot keep mounts to this process")?;
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)
            .context("cannot mount a /run")?;
        let peer = Namespace::new("tscap-dist".into())?;
        for words in [
            "link set lo up".to_owned(),
            format!("link add va type veth peer name vb netns {}", peer.name()),
            format!("address add {HERE}/24 dev va"),
            "link set va up".into(),
        ] {
            sh::output(Command::new("ip").args(words.split_whitespace()))?;
        }
        peer.ip(&format!("address add {THERE}/24 dev vb"))?;
        peer.ip("link set vb up")?;
        Ok(Self { peer })
    }

    /// Sends echo requests, each of which is answered.
    pub fn ping(&self) -> Result<()> {
        let mut ping = self.peer.exec("ping");
        ping.args([
            "-q",
            "-i",
            "0.1",
            "-w",
            "5",
            "-c",
            &REQUESTS.to_string(),
            HERE,
        ]);
        sh::output(&mut ping).map(drop)
    }
}
