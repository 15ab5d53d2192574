//! The layers of the network stack that a received packet goes through, and programs there.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tscap_common::hook::{Direction, Hook, Slot};

use super::attach::{Attacher, Attachment};
use super::attach_error::AttachError;
use super::call::Device;
use super::held::Presence;
use super::kfunc::{LayerKernel, NoKfunc};
use super::load::Loaded;
use super::load_error::LoadError;
use super::place::Place;
use super::port::{HookChoice, Port};
use super::program::Program;
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_network::bpf::stack::{Family, NetfilterHook, RunCounts, StackLink, run_counts};
use tscap_network::bpf::{TracingLink, TracingPoint};
use tscap_network::netns::NetnsId;

/// A layer, in the order in which packets get there.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The interface itself, by its hardware stamp of the packet, read at XDP (Linux 6.3)
    Hw,
    /// XDP: in the driver, or in the network stack where the driver has none
    Xdp,
    /// tcx ingress: a socket buffer, before the protocols; clsact before Linux 6.6
    Tcx,
    /// netfilter PRE_ROUTING, before all rules (Linux 6.4)
    Pre,
    /// netfilter LOCAL_IN: packets for this host, before all rules (Linux 6.4)
    LocalIn,
    /// The control group of the socket: packets that it is to get
    Cgroup,
    /// The receive call of an application takes a UDP packet from its socket
    App,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Hw,
        Self::Xdp,
        Self::Tcx,
        Self::Pre,
        Self::LocalIn,
        Self::Cgroup,
        Self::App,
    ];

    /// Its name for people and machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hw => "hw",
            Self::Xdp => "xdp",
            Self::Tcx => "tcx",
            Self::Pre => "pre",
            Self::LocalIn => "local-in",
            Self::Cgroup => "cgroup",
            Self::App => "app",
        }
    }

    /// What its programs see.
    const fn hook(self) -> Hook {
        match self {
            Self::Hw | Self::Xdp => Hook::Xdp,
            Self::Tcx => Hook::TcIngress,
            Self::Pre | Self::LocalIn => Hook::Netfilter,
            Self::Cgroup => Hook::Cgroup,
            Self::App => Hook::Application,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a layer can't be had.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Not on this interface.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The kernel lacks what it takes.
    #[error(transparent)]
    Kernel(#[from] NoKfunc),
    /// The program was refused.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no control group to attach it to.
    #[error(
        "no hierarchy of control groups of version 2 is mounted: --cgroup names a folder of one"
    )]
    NoCgroup,
    /// The kernel allows no program at the end of its functions.
    #[error("this kernel allows no program at the end of its functions (fexit, EPERM)")]
    NoTracing,
    /// Something of the machine is out of reach.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: String,
        /// Why.
        source: io::Error,
    },
}

/// A program at a layer; it is detached on drop.
#[derive(Debug)]
pub struct LayerPoint {
    /// The layer.
    pub layer: Layer,
    /// Where exactly, for people.
    pub hook: String,
    held: HeldLayer,
}

#[derive(Debug)]
enum HeldLayer {
    Interface(Box<Attachment>),
    Stack(Program, Vec<StackLink>),
    Application(Program, TracingLink),
}

impl LayerPoint {
    /// Detaches the program.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn detach(&self) -> io::Result<()> {
        match &self.held {
            HeldLayer::Interface(attachment) => attachment.held.detach(),
            HeldLayer::Stack(_, links) => links.iter().try_for_each(StackLink::detach),
            HeldLayer::Application(_, link) => {
                link.detach();
                Ok(())
            }
        }
    }

    /// Whether the interface is gone, or the program from it.
    pub fn is_gone(&self) -> bool {
        match &self.held {
            HeldLayer::Interface(attachment) => attachment.held.look() == Presence::Gone,
            HeldLayer::Stack(..) | HeldLayer::Application(..) => false,
        }
    }

    /// Whether packets are seen before the stack makes aggregates of them.
    pub fn is_in_driver(&self) -> bool {
        matches!(&self.held, HeldLayer::Interface(attachment) if attachment.at.is_in_driver())
    }

    /// Whether a filter of tc holds the program, which the process that made it has to remove.
    pub fn is_filter(&self) -> bool {
        matches!(&self.held, HeldLayer::Interface(attachment) if attachment.at.is_filter())
    }

    /// What the kernel has counted of the program.
    ///
    /// # Errors
    /// The kernel's.
    pub fn run_counts(&self) -> io::Result<RunCounts> {
        let program = match &self.held {
            HeldLayer::Interface(attachment) => &attachment.program,
            HeldLayer::Stack(program, _) | HeldLayer::Application(program, _) => program,
        };
        run_counts(program.as_fd())
    }
}

/// Attaches programs to layers. To be used in the network namespace of the interface.
pub struct LayerAttacher<'a, 'b> {
    /// To the interface.
    pub attacher: Attacher<'a, 'b>,
    /// The control group whose sockets count.
    pub cgroup: Option<&'a Path>,
}

impl LayerAttacher<'_, '_> {
    /// Attaches the program of `layer` for what `port` receives. Its number in the port is its
    /// slot.
    ///
    /// # Errors
    /// If that layer can't be had.
    pub fn attach(&mut self, layer: Layer, port: &Port<'_>) -> Result<LayerPoint, LayerError> {
        match layer {
            // It has no program of its own: that at XDP reads its stamps.
            Layer::Hw => {
                let attached = self.attacher.stamped_by_hardware(port)?;
                Ok(at_interface(Layer::Xdp, attached))
            }
            Layer::Xdp => {
                let native = self.attacher.received(port, HookChoice::Xdp);
                let attached = match native {
                    Err(AttachError::Refused { .. }) => {
                        self.attacher.received(port, HookChoice::Generic)
                    }
                    attached => attached,
                };
                Ok(at_interface(layer, attached?))
            }
            Layer::Tcx => {
                let attached = self.attacher.received(port, HookChoice::Tcx)?;
                Ok(at_interface(layer, attached))
            }
            Layer::Pre => self.netfilter(layer, port, NetfilterHook::PreRouting),
            Layer::LocalIn => self.netfilter(layer, port, NetfilterHook::LocalIn),
            Layer::Cgroup => self.cgroup(port),
            Layer::App => self.application(port),
        }
    }

    fn netfilter(
        &self,
        layer: Layer,
        port: &Port<'_>,
        hook: NetfilterHook,
    ) -> Result<LayerPoint, LayerError> {
        let program = self.load(layer, port)?;
        let (mut links, mut names) = (Vec::new(), Vec::new());
        for (family, name) in [(Family::V4, "IPv4"), (Family::V6, "IPv6")] {
            match StackLink::netfilter(program.as_fd(), family, hook) {
                Ok(link) => {
                    links.push(link);
                    names.push(name);
                }
                // A kernel without that version of IP.
                Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
                Err(source) => {
                    let what = format!("attach to netfilter for {name}");
                    return Err(LayerError::System { what, source });
                }
            }
        }
        let at = match hook {
            NetfilterHook::PreRouting => "PRE_ROUTING",
            NetfilterHook::LocalIn => "LOCAL_IN",
        };
        Ok(LayerPoint {
            layer,
            hook: format!("netfilter {at} of {}", names.join(" and ")),
            held: HeldLayer::Stack(program, links),
        })
    }

    fn cgroup(&self, port: &Port<'_>) -> Result<LayerPoint, LayerError> {
        let path = self.cgroup.ok_or(LayerError::NoCgroup)?;
        let shown = path.display();
        let folder = File::open(path).map_err(|source| LayerError::System {
            what: format!("open the control group {shown}"),
            source,
        })?;
        let program = self.load(Layer::Cgroup, port)?;
        let link = StackLink::cgroup(program.as_fd(), folder.as_fd());
        let link = link.map_err(|source| LayerError::System {
            what: format!("attach to the control group {shown}"),
            source,
        })?;
        Ok(LayerPoint {
            layer: Layer::Cgroup,
            hook: format!("ingress of the control group {shown}"),
            held: HeldLayer::Stack(program, vec![link]),
        })
    }

    fn application(&self, port: &Port<'_>) -> Result<LayerPoint, LayerError> {
        let program = self.load(Layer::App, port).map_err(|error| match error {
            LayerError::Load(error) if error.os_error() == Some(libc::EPERM) => {
                LayerError::NoTracing
            }
            error => error,
        })?;
        let link = TracingLink::attach(program.as_fd(), TracingPoint::Exit);
        let link = link.map_err(|source| LayerError::System {
            what: "attach to the receive call of UDP".into(),
            source,
        })?;
        Ok(LayerPoint {
            layer: Layer::App,
            hook: "fexit on __skb_recv_udp".into(),
            held: HeldLayer::Application(program, link),
        })
    }

    fn load(&self, layer: Layer, port: &Port<'_>) -> Result<Program, LayerError> {
        let kernel = LayerKernel::find(layer.hook(), &KernelFiles::live())?;
        let netns = NetnsId::here().map_err(|source| LayerError::System {
            what: "tell the network namespace".into(),
            source,
        })?;
        let place = Place {
            slot: Slot::of(port.number, Direction::In),
            layer: Some(&kernel),
            device: Device {
                index: port.link.index,
                // The kernel has 32 bits for it.
                netns: netns.inode as u32,
            },
            ..Place::FIRST
        };
        let loaded: &Loaded = self.attacher.loaded;
        Ok(loaded.for_place(layer.hook(), &place)?)
    }
}

fn at_interface(layer: Layer, attachment: Attachment) -> LayerPoint {
    LayerPoint {
        layer,
        hook: attachment.hook(),
        held: HeldLayer::Interface(Box::new(attachment)),
    }
}

impl LayerError {
    /// In one line.
    pub fn says(&self) -> String {
        let said = chain(self);
        // The verifier's log has lines of its own.
        said.lines().next().unwrap_or_default().to_owned()
    }
}
