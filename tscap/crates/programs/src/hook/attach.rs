//! Attaches programs to an interface: for received frames at the earliest hook that there
//! is, for sent ones at tcx egress or before the driver. Kernels before 6.6 have clsact in the place of tcx.

use std::io;
use std::os::fd::AsFd as _;

use tscap_common::hook::{Direction, Hook};

use super::call::Device;
use super::entry::{Entry, NoEntry};
use super::held::{ByFilter, Held, Refusal};
use super::kfunc::{MetadataKfunc, NoKfunc};
use super::load::Loaded;
use super::load_error::LoadError;
use super::place::{Bound, Place};
use super::port::{EgressPoint, HookChoice, Port};
use super::program::Program;
use tscap_base::kernel_files::KernelFiles;
use tscap_network::bpf::{InterfaceLink, LinkPoint, TracingLink, TracingPoint};
use tscap_network::clsact::Side;
use tscap_network::netdev::{AttachedXdp, Link, LinkReader};
use tscap_network::netns::NetnsId;
use tscap_network::packet::Tap;
use tscap_network::xdp_features;

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// To received frames in the driver, before a socket buffer is made.
    NativeXdp,
    /// To received frames at the entry of somebody else's program at native XDP.
    NativeEntry,
    /// To received frames in the network stack: they may be aggregates (GRO), and are
    /// copied for it.
    GenericXdp,
    /// To received frames at the entry of somebody else's program at generic XDP.
    GenericEntry,
    /// To received frames in the network stack, where they may be aggregates.
    TcxIngress,
    /// To frames that are to be sent, before the queueing discipline: they may be
    /// aggregates (GSO), and may be dropped there.
    TcxEgress,
    /// To frames that go to the driver, at a tracepoint of all devices: behind the queueing
    /// discipline, where tcpdump sees them too.
    DriverEgress,
    /// To frames that go to the driver, as a packet socket of the interface gets them: behind
    /// the queueing discipline, where tcpdump sees them.
    Tap,
    /// As [`Self::TcxIngress`], by a filter, which outlives the process if that is killed.
    ClsactIngress,
    /// As [`Self::TcxEgress`], by a filter.
    ClsactEgress,
}

impl AttachPoint {
    /// Its name for people and machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NativeXdp => "native XDP",
            Self::NativeEntry => "fentry at native XDP",
            Self::GenericXdp => "generic XDP",
            Self::GenericEntry => "fentry at generic XDP",
            Self::TcxIngress => "tcx ingress",
            Self::TcxEgress => "tcx egress",
            Self::DriverEgress => "driver egress",
            Self::Tap => "tap",
            Self::ClsactIngress => "clsact ingress",
            Self::ClsactEgress => "clsact egress",
        }
    }

    /// What its programs see.
    pub const fn hook(self) -> Hook {
        match self {
            Self::NativeXdp | Self::GenericXdp => Hook::Xdp,
            Self::NativeEntry | Self::GenericEntry => Hook::XdpEntry,
            Self::TcxIngress | Self::ClsactIngress => Hook::TcIngress,
            Self::TcxEgress | Self::ClsactEgress => Hook::TcEgress,
            Self::DriverEgress => Hook::Transmit,
            Self::Tap => Hook::Tap,
        }
    }

    /// Whether it is the entry of somebody else's program.
    pub const fn is_entry(self) -> bool {
        matches!(self, Self::NativeEntry | Self::GenericEntry)
    }

    /// Whether it is a filter of tc, which the process that made it has to remove.
    pub const fn is_filter(self) -> bool {
        matches!(self, Self::ClsactIngress | Self::ClsactEgress)
    }

    /// Whether frames are seen in the driver, before the network stack.
    pub const fn is_in_driver(self) -> bool {
        matches!(self, Self::NativeXdp | Self::NativeEntry)
    }

    /// Attaches a program here, for its `place`.
    fn attach(
        self,
        program: &Program,
        link: &Link,
        place: &Place<'_>,
        by_filter: &mut ByFilter<'_>,
    ) -> Result<Held, Refusal> {
        let program = program.as_fd();
        let at = match self {
            Self::NativeXdp => LinkPoint::NativeXdp,
            Self::GenericXdp => LinkPoint::GenericXdp,
            Self::TcxIngress => LinkPoint::TcxIngress,
            Self::TcxEgress => LinkPoint::TcxEgress,
            Self::DriverEgress => {
                let held = TracingLink::attach(program, TracingPoint::Tracepoint)?;
                return Ok(Held::Tracepoint(held, LinkReader::here(link.index)?));
            }
            Self::Tap => {
                let tap = Tap::attach(program, link.index)?;
                return Ok(Held::Tap(tap, LinkReader::here(link.index)?));
            }
            Self::NativeEntry | Self::GenericEntry => {
                let entry = place
                    .entry
                    .ok_or("there is no program at whose entry it could be")?;
                return Ok(Held::Entry(Box::new(entry.attach(program)?)));
            }
            Self::ClsactIngress => {
                return by_filter(program, link, Side::Ingress).map(Held::Filter);
            }
            Self::ClsactEgress => return by_filter(program, link, Side::Egress).map(Held::Filter),
        };
        Ok(Held::Link(InterfaceLink::attach(program, link.index, at)?))
    }
}

/// Why a program could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Another program is there already.
    #[error("{interface} already has XDP program {} attached", xdp.ids())]
    Busy {
        /// The interface.
        interface: String,
        /// What is attached.
        xdp: AttachedXdp,
    },
    /// Another program is there, and nothing can be attached to its entry.
    #[error("no fentry on the XDP program of {interface}")]
    NoEntry {
        /// The interface.
        interface: String,
        /// Why.
        source: NoEntry,
    },
    /// The program could not be loaded for it.
    #[error("cannot load the program of {interface} for {}", at.name())]
    Load {
        /// The interface.
        interface: String,
        /// The hook tried.
        at: AttachPoint,
        /// Why.
        source: Box<LoadError>,
    },
    /// The interface's network namespace is not known.
    #[error("cannot tell the network namespace of {interface}")]
    Namespace {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// No program there can ask for hardware stamps.
    #[error("cannot take hardware stamps on {interface}")]
    NoHardwareStamps {
        /// The interface.
        interface: String,
        /// Why.
        source: NoHardwareStamps,
    },
    /// The kernel refused.
    #[error("cannot attach to {interface} at {}", at.name())]
    Refused {
        /// The interface.
        interface: String,
        /// The hook tried.
        at: AttachPoint,
        /// Why.
        source: Refusal,
    },
}

/// Why no program at an interface can ask for hardware stamps.
#[derive(Debug, thiserror::Error)]
pub enum NoHardwareStamps {
    /// Its driver tells XDP programs none.
    #[error("its driver tells XDP programs none")]
    Driver,
    /// The kernel has no function for it.
    #[error(transparent)]
    Kernel(#[from] NoKfunc),
}

/// A program on an interface; detached on drop.
#[derive(Debug)]
pub struct Attachment {
    /// What holds it there.
    pub held: Held,
    /// Where it is attached.
    pub at: AttachPoint,
    /// The program.
    pub program: Program,
    /// Whether VLAN tags that are beside the frames are put back.
    pub reads_vlan_tags: bool,
    /// Whether it asks for the hardware stamp of each frame.
    pub reads_hardware_stamps: bool,
    /// Why it is not at native XDP although that would have been taken.
    pub fallback: Option<AttachError>,
}

impl Attachment {
    /// Whether it is beside a program of somebody else at XDP: at its entry, or behind it
    /// where that was refused.
    pub fn is_beside_others(&self) -> bool {
        let is_refused = |error: &AttachError| match error {
            AttachError::NoEntry { .. } => true,
            AttachError::Load { at, .. } | AttachError::Refused { at, .. } => at.is_entry(),
            AttachError::Busy { .. }
            | AttachError::Namespace { .. }
            | AttachError::NoHardwareStamps { .. } => false,
        };
        self.at.is_entry() || self.fallback.as_ref().is_some_and(is_refused)
    }

    /// Its hook for people and machines.
    pub fn hook(&self) -> String {
        match &self.held {
            Held::Entry(entry) => entry.to_string(),
            Held::Link(_) | Held::Filter(_) | Held::Tracepoint(..) | Held::Tap(..) => {
                self.at.name().to_owned()
            }
        }
    }
}

/// Attaches programs to the hooks of a port.
pub struct Attacher<'a, 'b> {
    /// What is attached.
    pub loaded: &'a Loaded,
    /// By a filter of clsact, which has to be journalled.
    pub by_filter: &'b mut ByFilter<'b>,
}

impl Attacher<'_, '_> {
    /// Attaches a program to what `port` receives.
    ///
    /// # Errors
    /// If the hook that was chosen can't be had, or none.
    pub fn received(
        &mut self,
        port: &Port<'_>,
        choice: HookChoice,
    ) -> Result<Attachment, AttachError> {
        match choice {
            HookChoice::Tcx => self.tcx_ingress(port),
            HookChoice::Xdp => self.native(port),
            HookChoice::Generic => {
                check_free(port)?;
                self.at(port, AttachPoint::GenericXdp)
            }
            HookChoice::Auto if self.loaded.ends_frames() => match self.native(port) {
                Err(error) if error.leaves_others() => Ok(Attachment {
                    fallback: Some(error),
                    ..self.at(port, AttachPoint::GenericXdp)?
                }),
                attached => attached,
            },
            HookChoice::Auto if port.is_in_stack() => self.tcx_ingress(port),
            HookChoice::Auto if port.link.xdp.is_some() => self.beside(port),
            HookChoice::Auto => match self.native(port) {
                Err(error) if error.leaves_others() => Ok(Attachment {
                    fallback: Some(error),
                    ..self.tcx_ingress(port)?
                }),
                attached => attached,
            },
        }
    }

    /// Attaches a program to what `port` is to send.
    ///
    /// # Errors
    /// If it can't be attached.
    pub fn sent(&mut self, port: &Port<'_>, point: EgressPoint) -> Result<Attachment, AttachError> {
        match point {
            EgressPoint::Qdisc => {
                self.first_of(port, AttachPoint::TcxEgress, AttachPoint::ClsactEgress)
            }
            EgressPoint::Driver => {
                let netns = NetnsId::here().map_err(|source| AttachError::Namespace {
                    interface: port.link.name.clone(),
                    source,
                })?;
                let device = Device {
                    index: port.link.index,
                    // The kernel has 32 bits for it.
                    netns: netns.inode as u32,
                };
                let place = Place {
                    device,
                    ..port.place(Direction::Out)
                };
                self.placed(port, AttachPoint::DriverEgress, &place)
            }
        }
    }

    /// Attaches a program to what the driver of `port` gets: behind the queueing discipline.
    ///
    /// # Errors
    /// If it can't be attached.
    pub fn tapped(&mut self, port: &Port<'_>) -> Result<Attachment, AttachError> {
        self.at(port, AttachPoint::Tap)
    }

    /// Attaches a program beside those of others at XDP: at the entry of the one that is
    /// there, else at tcx.
    ///
    /// # Errors
    /// If neither is available.
    pub fn beside(&mut self, port: &Port<'_>) -> Result<Attachment, AttachError> {
        match self.entry(port) {
            Ok(attachment) => Ok(attachment),
            Err(error) => Ok(Attachment {
                fallback: Some(error),
                ..self.tcx_ingress(port)?
            }),
        }
    }

    /// At the entry of the program at XDP.
    fn entry(&mut self, port: &Port<'_>) -> Result<Attachment, AttachError> {
        let entry = entry_of(port)?;
        let at = if entry.is_generic() {
            AttachPoint::GenericEntry
        } else {
            AttachPoint::NativeEntry
        };
        let place = Place {
            entry: Some(&entry),
            device: entry.device(),
            ..port.place(Direction::In)
        };
        self.placed(port, at, &place)
    }

    fn tcx_ingress(&mut self, port: &Port<'_>) -> Result<Attachment, AttachError> {
        self.first_of(port, AttachPoint::TcxIngress, AttachPoint::ClsactIngress)
    }

    fn first_of(
        &mut self,
        port: &Port<'_>,
        first: AttachPoint,
        second: AttachPoint,
    ) -> Result<Attachment, AttachError> {
        match self.at(port, first) {
            Err(error) if error.leaves_others() => self.at(port, second),
            attached => attached,
        }
    }

    /// At native XDP; with a program of its own that reads VLAN tags if the driver tells
    /// them.
    fn native(&mut self, port: &Port<'_>) -> Result<Attachment, AttachError> {
        check_free(port)?;
        match self.bound(port) {
            Some(attachment) => Ok(attachment),
            None => self.at(port, AttachPoint::NativeXdp),
        }
    }

    /// Attaches a program that reads VLAN tags. `None` if the driver or the kernel can't:
    /// one without is attached then.
    fn bound(&mut self, port: &Port<'_>) -> Option<Attachment> {
        let loader = self.loaded.loader();
        let bound = Some(Bound {
            ifindex: port.link.index,
            vlan_tag: Some(loader.vlan_tag_of(port.link)?.call()),
            hardware_stamp: None,
        });
        let place = Place {
            bound,
            ..port.place(Direction::In)
        };
        let attachment = self.placed(port, AttachPoint::NativeXdp, &place).ok()?;
        Some(Attachment {
            reads_vlan_tags: true,
            ..attachment
        })
    }

    /// Attaches a program to what `port` receives that asks for the hardware stamp of each
    /// frame, and for VLAN tags if the driver tells them: at native XDP.
    ///
    /// # Errors
    /// If driver or kernel tell no hardware stamps, or native XDP can't be had.
    pub fn stamped_by_hardware(&mut self, port: &Port<'_>) -> Result<Attachment, AttachError> {
        check_free(port)?;
        let none = |source| AttachError::NoHardwareStamps {
            interface: port.link.name.clone(),
            source,
        };
        let ifindex = port.link.index;
        let features = xdp_features::of(ifindex).ok().flatten();
        let features = features.filter(|it| it.tells_hardware_stamps());
        let features = features.ok_or_else(|| none(NoHardwareStamps::Driver))?;
        let files = KernelFiles::live();
        let hardware_stamp = MetadataKfunc::hardware_stamp(&files);
        let hardware_stamp = hardware_stamp.map_err(|it| none(it.into()))?;
        let vlan_tag = if features.tells_vlan_tags() {
            self.loaded.loader().vlan_tag()
        } else {
            None
        };
        let bound = Some(Bound {
            ifindex,
            vlan_tag: vlan_tag.map(MetadataKfunc::call),
            hardware_stamp: Some(hardware_stamp.call()),
        });
        let place = Place {
            bound,
            ..port.place(Direction::In)
        };
        let attachment = self.placed(port, AttachPoint::NativeXdp, &place)?;
        Ok(Attachment {
            reads_vlan_tags: vlan_tag.is_some(),
            reads_hardware_stamps: true,
            ..attachment
        })
    }

    fn at(&mut self, port: &Port<'_>, at: AttachPoint) -> Result<Attachment, AttachError> {
        self.placed(port, at, &port.place(at.hook().direction()))
    }

    fn placed(
        &mut self,
        port: &Port<'_>,
        at: AttachPoint,
        place: &Place<'_>,
    ) -> Result<Attachment, AttachError> {
        let interface = || port.link.name.clone();
        let program = self.loaded.for_place(at.hook(), place);
        let program = program.map_err(|source| AttachError::Load {
            interface: interface(),
            at,
            source: Box::new(source),
        })?;
        let held = at.attach(&program, port.link, place, self.by_filter);
        let held = held.map_err(|source| AttachError::Refused {
            interface: interface(),
            at,
            source,
        })?;
        Ok(Attachment {
            held,
            at,
            program,
            // A socket buffer has its tag beside it.
            reads_vlan_tags: matches!(at.hook(), Hook::TcIngress | Hook::TcEgress | Hook::Tap),
            reads_hardware_stamps: false,
            fallback: None,
        })
    }
}

/// The entry of somebody else's program at XDP.
fn entry_of(port: &Port<'_>) -> Result<Entry, AttachError> {
    let no_entry = |source| AttachError::NoEntry {
        interface: port.link.name.clone(),
        source,
    };
    let xdp = port.link.xdp.as_ref().ok_or(no_entry(NoEntry::Gone))?;
    Entry::of(port.link, xdp).map_err(no_entry)
}

fn check_free(port: &Port<'_>) -> Result<(), AttachError> {
    match &port.link.xdp {
        Some(xdp) => Err(AttachError::Busy {
            interface: port.link.name.clone(),
            xdp: xdp.clone(),
        }),
        None => Ok(()),
    }
}

impl AttachError {
    /// The operating system's error at the root, if there is one.
    pub fn os_error(&self) -> Option<i32> {
        match self {
            Self::Busy { .. } | Self::NoEntry { .. } | Self::NoHardwareStamps { .. } => None,
            Self::Load { source, .. } => source.os_error(),
            Self::Namespace { source, .. } => source.raw_os_error(),
            Self::Refused { source, .. } => source
                .downcast_ref::<io::Error>()
                .and_then(io::Error::raw_os_error),
        }
    }

    /// Whether another hook may do: the driver can't (rather than may not, or not now), for
    /// want of native XDP, or not at this MTU, with these features or so few queues (veth:
    /// ENOSPC); or somebody else is there, or on the bond above (EEXIST, or EBUSY for a link;
    /// `dev_xdp_attach` in net/core/dev.c), perhaps since the interface was looked at.
    fn leaves_others(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::NoEntry { .. } => true,
            Self::Load { .. } | Self::Namespace { .. } | Self::NoHardwareStamps { .. } => false,
            Self::Refused { .. } => matches!(
                self.os_error(),
                Some(
                    libc::EOPNOTSUPP
                        | libc::EINVAL
                        | libc::ERANGE
                        | libc::EMSGSIZE
                        | libc::ENOSPC
                        | libc::EEXIST
                        | libc::EBUSY
                )
            ),
        }
    }
}
