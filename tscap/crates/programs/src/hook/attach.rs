//! Attaches programs to an interface: for received frames at the earliest hook that there
//! is, for sent ones at tcx egress or before the driver. Kernels before 6.6 have clsact in the place of tcx.

use tscap_common::hook::{Direction, Hook};

use super::attach_error::{AttachError, NoHardwareStamps};
use super::attach_point::AttachPoint;
use super::call::Device;
use super::entry::{Entry, NoEntry};
use super::held::{ByFilter, Held};
use super::kfunc::MetadataKfunc;
use super::load::Loaded;
use super::place::{Bound, Place};
use super::port::{EgressPoint, HookChoice, Port};
use super::program::Program;
use tscap_base::kernel_files::KernelFiles;
use tscap_network::netns::NetnsId;
use tscap_network::xdp_features;

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
