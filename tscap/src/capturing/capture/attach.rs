//! The program attached to each interface, and what goes with that: promiscuous mode,
//! offloads, where frames are received.

use super::counter::Counter;
use super::event::Listener;
use super::live_links::{LiveLink, LiveLinks};
use super::pinning::Pinning;
use super::plan::{Capture, Offloads};
use super::{header, offloading};
use crate::capturing::clock::StampPath;
use crate::capturing::filter::Filter;
use crate::capturing::hook::{
    AttachError, AttachPoint, AttachedProgram, Attachment, Loaded, ModeChoice, XdpMode, attach,
    offloads,
};
use crate::capturing::host::kernel_files::KernelFiles;
use crate::capturing::host::netdev::Link;
use crate::capturing::host::promisc::Promiscuous;
use crate::capturing::pcapng::{InterfaceInfo, StampOption, VlanTags};
use crate::capturing::settings::{JournalFolder, SettingsGuard};
use crate::failure::Failure;

/// All interfaces with the program attached.
pub(super) struct Attached {
    pub links: LiveLinks,
    /// What the file says of each.
    pub described: Vec<InterfaceInfo>,
    pub in_force: InForce,
}

/// What is in force as long as the capture runs; given back on drop.
pub(super) struct InForce {
    _promiscuous: Vec<Promiscuous>,
    _changes: SettingsGuard,
}

/// How stamps are taken, as the file says it.
pub(super) fn stamp(
    path: StampPath,
    counter: Option<&Counter>,
    untrusted: Option<String>,
) -> StampOption {
    StampOption {
        bracket: counter.and_then(Counter::bracket),
        forced: untrusted,
        ..StampOption::new(path)
    }
}

/// Attaches the program to all `interfaces`.
pub(super) fn attach_all(
    plan: &Capture,
    interfaces: &[Link],
    loaded: &Loaded,
    stamp: &StampOption,
    told: &mut Listener<'_>,
) -> Result<Attached, Failure> {
    let mut promiscuous = Vec::new();
    let mut changes = SettingsGuard::new(JournalFolder::live(), KernelFiles::live());
    let mut pinning = plan.rx_cpus.as_deref().map(Pinning::new);
    let mut live = Vec::new();
    let mut described = Vec::new();
    for link in interfaces {
        if plan.promiscuous {
            promiscuous.extend(make_promiscuous(link, told));
        }
        let attachment = attach_one(plan, link, loaded, &mut changes, told)?;
        // After attaching: a driver may make its queues anew for it, with
        // interrupts and poll threads of their own.
        if let Some(pinning) = &mut pinning {
            pinning.steer(link, attachment.at, &mut changes, told)?;
        }
        let in_force = offloads::read(&link.name);
        let tags = offloads::vlan_tags(link, &in_force, attachment.reads_vlan_tags);
        let AttachPoint::Xdp(mode) = attachment.at;
        let generic = mode == XdpMode::Generic;
        if plan.filter.as_ref().is_some_and(Filter::asks_for_vlan)
            && (tags != VlanTags::Kept || attachment.reads_vlan_tags)
        {
            offloading::say_unfiltered_tags(link, told);
        }
        offloading::say_hiding(link, &in_force, generic, tags, told);
        described.push(header::describe(
            plan,
            link,
            attachment.at,
            stamp.clone(),
            offloads::for_file(&in_force),
            tags,
        ));
        live.push(LiveLink::new(link, attachment));
    }
    Ok(Attached {
        links: LiveLinks::new(live),
        described,
        in_force: InForce {
            _promiscuous: promiscuous,
            _changes: changes,
        },
    })
}

/// Attaches the program, and tells what that changes.
fn attach_one(
    plan: &Capture,
    link: &Link,
    loaded: &Loaded,
    changes: &mut SettingsGuard,
    told: &mut Listener<'_>,
) -> Result<Attachment, Failure> {
    let turns_off = plan.offloads == Offloads::Off;
    if turns_off {
        let generic = plan.xdp_mode == ModeChoice::Generic;
        offloading::turn_off(link, generic, changes, told)?;
    }
    let before = offloads::read(&link.name);
    let foreseen = offloading::foresee(link, &before, changes);
    let attachment = attach(loaded, link, plan.xdp_mode).map_err(attach_failure)?;
    if let Some(refusal) = &attachment.fallback {
        told.warning(&format!(
            "{}: the driver refused native XDP ({refusal}); using generic mode",
            link.name
        ));
    }
    let AttachPoint::Xdp(mode) = attachment.at;
    let changed = offloads::changes(&before, &offloads::read(&link.name));
    offloading::say_changes(link, attachment.at, &changed, foreseen, told);
    if mode == XdpMode::Generic {
        told.warning(&format!(
            "{}: in generic mode frames may be aggregates (GRO, GSO), not what arrived",
            link.name
        ));
        if turns_off {
            offloading::turn_off(link, true, changes, told)?;
        }
    }
    Ok(attachment)
}

fn make_promiscuous(link: &Link, told: &mut Listener<'_>) -> Option<Promiscuous> {
    match Promiscuous::enable(link.index) {
        Ok(guard) => Some(guard),
        Err(error) => {
            told.warning(&format!(
                "{}: not promiscuous: {error} (-p leaves it as it is)",
                link.name
            ));
            None
        }
    }
}

fn attach_failure(error: AttachError) -> Failure {
    let hint = match &error {
        AttachError::Busy { interface, xdp } => {
            AttachedProgram::of(xdp).removal(interface, xdp.mode)
        }
        AttachError::Refused {
            mode: XdpMode::Native,
            ..
        } => "--xdp-mode auto or generic works with every driver, but may show aggregates".into(),
        _ => "dmesg may say more".into(),
    };
    Failure::from_error(error, "cannot attach the XDP program").hint(hint)
}
