//! Loads the programs of a capture for their places, some ahead of the moment at which they are
//! attached: the kernel verifies these while it waits for the CPUs after attaching others.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tscap_common::hook::{ClockDomain, Direction, Hook};

use super::code::Code;
use super::kfunc::{ChecksumKfunc, MetadataKfunc, TransmitKernel};
use super::load_error::LoadError;
use super::place::{Bound, Place};
use super::port::{EgressPoint, HookChoice, Port};
use super::program::Program;
use tscap_base::kernel_files::KernelFiles;
use tscap_network::netdev::Link;
use tscap_network::xdp_features;

/// Loads programs for places.
#[derive(Debug)]
pub struct Loader {
    /// Name of the program at XDP.
    pub(super) name: String,
    pub(super) clock: ClockDomain,
    pub(super) code: Code,
    pub(super) checksum: Option<ChecksumKfunc>,
    pub(super) transmit: Option<TransmitKernel>,
    pub(super) ends_frames: bool,
    /// The kernel's types are megabytes: they are looked through once.
    pub(super) vlan_tag: OnceLock<Option<MetadataKfunc>>,
    pub(super) ahead: Mutex<HashMap<Key, Program>>,
}

/// What tells the programs of a capture apart that are loaded ahead.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    hook: &'static str,
    slot: u32,
    /// The device that it is bound to.
    bound_to: Option<u32>,
}

impl Key {
    /// `None` for what is not loaded ahead.
    fn of(hook: Hook, place: &Place<'_>, clock: ClockDomain) -> Option<Self> {
        let is_foreseen = place.entry.is_none() && place.layer.is_none() && place.device.index == 0;
        let asks_for_stamps = place.bound.is_some_and(|it| it.hardware_stamp.is_some());
        (is_foreseen && !asks_for_stamps).then(|| Self {
            hook: hook.program(clock),
            slot: place.slot.0,
            bound_to: place.bound.map(|bound| bound.ifindex),
        })
    }
}

impl Loader {
    /// Loads a program for a place in the capture, unless it has been: at XDP the one that was
    /// asked for, else the one of the same clock.
    pub(super) fn for_place(&self, hook: Hook, place: &Place<'_>) -> Result<Program, LoadError> {
        let key = Key::of(hook, place, self.clock);
        match key.and_then(|key| self.ahead().remove(&key)) {
            Some(program) => Ok(program),
            None => self.load(hook, place),
        }
    }

    fn load(&self, hook: Hook, place: &Place<'_>) -> Result<Program, LoadError> {
        let name = match hook {
            Hook::Xdp => &self.name,
            other => other.program(self.clock),
        };
        let place = Place {
            checksum: self.checksum.as_ref(),
            transmit: self.transmit.as_ref(),
            ends_frames: self.ends_frames,
            ..*place
        };
        self.code.load(name, &place)
    }

    /// Loads the programs that [`Attacher`](super::Attacher) is going to want first for what
    /// `port` receives and sends, in this thread, which is in the port's network namespace. What
    /// is refused is refused again when it is attached, and told then.
    pub fn load_ahead(
        &self,
        port: &Port<'_>,
        directions: &[Direction],
        (choice, point): (HookChoice, EgressPoint),
    ) {
        for direction in directions {
            let hook = match (direction, choice, point) {
                (Direction::Out, _, EgressPoint::Qdisc) => Hook::TcEgress,
                (Direction::Out, _, EgressPoint::Driver) => continue,
                // Beside a program of somebody else: at its entry.
                (Direction::In, _, _) if port.link.xdp.is_some() => continue,
                (Direction::In, HookChoice::Tcx, _) => Hook::TcIngress,
                (Direction::In, HookChoice::Auto, _) if !self.ends_frames && port.is_in_stack() => {
                    Hook::TcIngress
                }
                (Direction::In, ..) => Hook::Xdp,
            };
            let is_native = hook == Hook::Xdp && choice != HookChoice::Generic;
            let vlan_tag = is_native.then(|| self.vlan_tag_of(port.link)).flatten();
            let place = Place {
                bound: vlan_tag.map(|kfunc| Bound {
                    ifindex: port.link.index,
                    vlan_tag: Some(kfunc.call()),
                    hardware_stamp: None,
                }),
                ..port.place(*direction)
            };
            let Some(key) = Key::of(hook, &place, self.clock) else {
                continue;
            };
            if let Ok(program) = self.load(hook, &place) {
                self.ahead().insert(key, program);
            }
        }
    }

    /// Forgets what was loaded ahead and not attached.
    pub fn discard_preloaded(&self) {
        self.ahead().clear();
    }

    /// What tells the VLAN tags of frames of an interface of this thread's network namespace,
    /// if driver and kernel do.
    pub(super) fn vlan_tag_of(&self, link: &Link) -> Option<&MetadataKfunc> {
        let features = xdp_features::of(link.index).ok().flatten()?;
        features
            .tells_vlan_tags()
            .then(|| self.vlan_tag())
            .flatten()
    }

    /// The function of the kernel for that.
    pub(super) fn vlan_tag(&self) -> Option<&MetadataKfunc> {
        let find = || MetadataKfunc::vlan_tag(&KernelFiles::live()).ok();
        self.vlan_tag.get_or_init(find).as_ref()
    }

    fn ahead(&self) -> MutexGuard<'_, HashMap<Key, Program>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
