//! The program attached to each interface, and what goes with that: promiscuous mode,
//! offloads, where frames are received.

use std::os::fd::BorrowedFd;

use super::counter::Counter;
use super::event::Listener;
use super::live_links::{LiveLink, LiveLinks};
use super::load::load_hint;
use super::pinning::Pinning;
use super::plan::{Capture, Offloads};
use super::{foretold, header, offloading};
use crate::capturing::accounting::Direction;
use crate::capturing::clock::StampPath;
use crate::capturing::filter::Filter;
use crate::capturing::hook::{
    AttachError, AttachPoint, AttachedProgram, Attacher, Attachment, HookChoice, Loaded, Port,
    Refusal, offloads,
};
use crate::capturing::host::clsact::{Clsact, Side};
use crate::capturing::host::kernel_files::KernelFiles;
use crate::capturing::host::netdev::Link;
use crate::capturing::host::promisc::Promiscuous;
use crate::capturing::pcapng::{Hooks, InterfaceInfo, StampOption, VlanTags};
use crate::capturing::settings::{JournalFolder, SettingsGuard};
use crate::failure::Failure;
use crate::text::causes::chain;

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

/// Attaches programs to all `interfaces`.
pub(super) fn attach_all(
    plan: &Capture,
    interfaces: &[Link],
    loaded: &Loaded,
    (path, stamp): (StampPath, &StampOption),
    told: &mut Listener<'_>,
) -> Result<Attached, Failure> {
    let mut promiscuous = Vec::new();
    let mut changes = SettingsGuard::new(JournalFolder::live(), KernelFiles::live());
    let mut pinning = plan.rx_cpus.as_deref().map(Pinning::new);
    let mut live = Vec::new();
    let mut described = Vec::new();
    for (number, link) in (0..).zip(interfaces) {
        if plan.promiscuous {
            promiscuous.extend(make_promiscuous(link, told));
        }
        let port = Port {
            link,
            number,
            filter: plan.filter_for(link)?,
        };
        let mut attached = Vec::new();
        let directions = plan.direction.of(link);
        if directions.contains(&Direction::In) {
            attached.push(attach_to_received(
                plan,
                &port,
                loaded,
                path,
                &mut changes,
                told,
            )?);
        }
        let received = attached.first().map(|it| (it.at, it.reads_vlan_tags));
        if directions.contains(&Direction::Out) {
            let sent = {
                let mut by_filter = by_filter(&mut changes);
                let by_filter = &mut by_filter;
                Attacher { loaded, by_filter }.sent(&port)
            };
            attached.push(sent.map_err(|it| attach_failure(it, path))?);
        }
        // After attaching: a driver may make its queues anew for it, with
        // interrupts and poll threads of their own.
        if let (Some(pinning), Some((at, _))) = (&mut pinning, received) {
            pinning.steer(link, at, &mut changes, told)?;
        }
        let in_force = offloads::read(&link.name);
        let tags = received.map_or(VlanTags::Kept, |(_, reads_vlan_tags)| {
            let tags = offloads::vlan_tags(link, &in_force, reads_vlan_tags);
            if plan.filter.as_ref().is_some_and(Filter::asks_for_vlan) && tags != VlanTags::Kept {
                offloading::say_unfiltered_tags(link, told);
            }
            offloading::say_hiding(link, &in_force, tags, told);
            tags
        });
        let live_link = LiveLink::new(link, attached);
        described.push(header::describe(
            plan,
            link,
            hooks(&live_link),
            stamp.clone(),
            offloads::for_file(&in_force),
            tags,
        ));
        live.push(live_link);
    }
    Ok(Attached {
        links: LiveLinks(live),
        described,
        in_force: InForce {
            _promiscuous: promiscuous,
            _changes: changes,
        },
    })
}

/// Attaches programs by filters that are journalled in `changes`.
fn by_filter(
    changes: &mut SettingsGuard,
) -> impl FnMut(BorrowedFd<'_>, &Link, Side) -> Result<Clsact, Refusal> {
    |program, link, side| Ok(changes.attach_filter(program, link, side, "tscap")?)
}

/// The hooks of an interface as the file names them.
pub(super) fn hooks(live: &LiveLink) -> Hooks {
    let name = |direction| live.at(direction).map(|at| at.name().to_owned());
    Hooks {
        received: name(Direction::In),
        sent: name(Direction::Out),
    }
}

/// Attaches the program to received frames, and tells what that changes.
fn attach_to_received(
    plan: &Capture,
    port: &Port<'_>,
    loaded: &Loaded,
    path: StampPath,
    changes: &mut SettingsGuard,
    told: &mut Listener<'_>,
) -> Result<Attachment, Failure> {
    let link = port.link;
    let turns_off = plan.offloads == Offloads::Off;
    if turns_off {
        let in_stack = matches!(plan.hook, HookChoice::Generic | HookChoice::Tcx);
        offloading::turn_off(link, in_stack, changes, told)?;
    }
    let before = offloads::read(&link.name);
    foretold::say(link, plan.hook, &before, told);
    let foreseen = offloading::foresee(link, &before, changes);
    let attachment = {
        let mut by_filter = by_filter(changes);
        let by_filter = &mut by_filter;
        Attacher { loaded, by_filter }.received(port, plan.hook)
    };
    let attachment = attachment.map_err(|it| attach_failure(it, path))?;
    let changed = offloads::changes(&before, &offloads::read(&link.name));
    offloading::say_changes(link, &changed, foreseen, told);
    if attachment.at != AttachPoint::NativeXdp {
        say_later(link, &attachment, turns_off, told);
        if turns_off {
            offloading::turn_off(link, true, changes, told)?;
        }
    }
    Ok(attachment)
}

/// Warns of what a stamp in the network stack is. GRO is on unless `turns_off`.
fn say_later(link: &Link, attachment: &Attachment, turns_off: bool, told: &mut Listener<'_>) {
    let (name, at) = (&link.name, attachment.at.name());
    let why = match &attachment.fallback {
        None => String::new(),
        Some(AttachError::Busy { xdp, .. }) => format!(
            "XDP program {} of somebody else is there, and what it drops or redirects is not \
             seen here; ",
            xdp.ids()
        ),
        Some(refusal) => format!("no native XDP ({}); ", chain(refusal)),
    };
    let advice = match turns_off {
        true => "",
        false => "; --offloads off turns GRO off for the capture",
    };
    told.warning(&format!(
        "{name}: {why}stamps are taken in the network stack, at {at}, where frames may be \
         aggregates (GRO, GSO){advice}"
    ));
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

fn attach_failure(error: AttachError, path: StampPath) -> Failure {
    let hint = match &error {
        AttachError::Busy { interface, xdp } => {
            let removal = AttachedProgram::of(xdp).removal(interface, xdp.mode);
            format!("--hook auto or tcx captures beside it; or {removal}")
        }
        AttachError::Refused {
            at: AttachPoint::NativeXdp,
            ..
        } => "--hook auto or tcx works with every driver, but may show aggregates".into(),
        AttachError::Refused {
            at: AttachPoint::ClsactIngress | AttachPoint::ClsactEgress,
            ..
        } => "-Q in with --hook xdp or generic needs no program of tc".into(),
        AttachError::Load { source, .. } => load_hint(path, source).into(),
        AttachError::Refused { .. } => "dmesg may say more".into(),
    };
    Failure::from_error(error, "cannot attach the program").hint(hint)
}
