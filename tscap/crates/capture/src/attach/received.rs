//! The program for received frames, and what is said of where it is.

use super::refused::{attach_failure, first_line};
use super::{Selected, by_filter};
use crate::event::Reporter;
use crate::expected_disturbance::{self, DefaultCarriers};
use crate::offloading;
use crate::plan::{Capture, Offloads};
use tscap_base::failure::Failure;
use tscap_base::text::causes::chain;
use tscap_clock::StampPath;
use tscap_live::settings::SettingsGuard;
use tscap_network::netdev::Link;
use tscap_programs::hook::{Attacher, Attachment, HookChoice, Loaded, Port, offloads};

/// Attaches the program to received frames, and tells what that changes.
pub(super) fn attach_to_received(
    plan: &Capture,
    (port, selected): (&Port<'_>, &Selected),
    loaded: &Loaded,
    path: StampPath,
    (changes, carriers): (&mut SettingsGuard, &mut DefaultCarriers),
    reporter: &mut Reporter<'_>,
) -> Result<Attachment, Failure> {
    let link = port.link;
    let turns_off = plan.offloads == Offloads::Off;
    if turns_off {
        let in_stack = matches!(plan.hook, HookChoice::Generic | HookChoice::Tcx);
        offloading::turn_off(link, in_stack, changes, reporter)?;
    }
    let before = offloads::read(&link.name);
    expected_disturbance::say(selected, plan.hook, &before, carriers, reporter);
    let foreseen = offloading::journal_offloads_ahead(link, &before, changes);
    let mut attachment = None;
    if plan.hardware_stamps.is_some() {
        let mut by_filter = by_filter(changes);
        let by_filter = &mut by_filter;
        let stamped = Attacher { loaded, by_filter }.stamped_by_hardware(port);
        match stamped.map_err(|it| attach_failure(it, path)) {
            Err(failure) if !selected.is_named => reporter.warning(&failure.to_string()),
            stamped => attachment = Some(stamped?),
        }
    }
    let attachment = match attachment {
        Some(attachment) => attachment,
        None => {
            let mut by_filter = by_filter(changes);
            let by_filter = &mut by_filter;
            let attached = Attacher { loaded, by_filter }.received(port, plan.hook);
            attached.map_err(|it| attach_failure(it, path))?
        }
    };
    let changed = offloads::changes(&before, &offloads::read(&link.name));
    offloading::say_changes(link, &changed, foreseen, reporter);
    if attachment.at.is_entry() {
        say_beside(link, &attachment, reporter);
    }
    if !attachment.at.is_in_driver() {
        say_later(link, &attachment, turns_off, reporter);
        if turns_off {
            offloading::turn_off(link, true, changes, reporter)?;
        }
    }
    Ok(attachment)
}

/// Says what is captured beside a program of somebody else.
fn say_beside(link: &Link, attachment: &Attachment, reporter: &mut Reporter<'_>) {
    let (name, hook) = (&link.name, attachment.hook());
    reporter.note(&format!(
        "{name}: somebody else's program is at XDP: frames are captured and stamped before it \
         decides about them, by {hook}; of a frame in several buffers the first one is kept"
    ));
}

/// Warns of what a stamp in the network stack is. GRO is on unless `turns_off`.
fn say_later(link: &Link, attachment: &Attachment, turns_off: bool, reporter: &mut Reporter<'_>) {
    let (name, at) = (&link.name, attachment.at.name());
    let why = match (&attachment.fallback, &link.xdp) {
        (None, _) => String::new(),
        (Some(refusal), Some(xdp)) => format!(
            "XDP program {} of somebody else is there, and what it drops or redirects is not \
             seen here ({}); ",
            xdp.ids(),
            first_line(refusal)
        ),
        (Some(refusal), None) => format!("no native XDP ({}); ", chain(refusal)),
    };
    let advice = if turns_off {
        ""
    } else {
        "; --offloads off turns GRO off for the capture"
    };
    reporter.warning(&format!(
        "{name}: {why}stamps are taken in the network stack, at {at}, where frames may be \
         aggregates (GRO, GSO){advice}"
    ));
}
