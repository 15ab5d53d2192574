//! The program attached to each interface, and what goes with that: promiscuous mode,
//! offloads, where frames are received.

mod received;
mod refused;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use self::received::attach_to_received;
use self::refused::{attach_failure, first_line, not_listening};
use super::counter::Counter;
use super::event::{Event, Reporter};
use super::expected_disturbance::DefaultCarriers;
use super::hardware::{self, PtpClocks};
use super::header::Taken;
use super::live_link::LiveLink;
use super::live_links::ChangedLink;
use super::pinning::Pinning;
use super::plan::{Capture, Privileges};
use super::selection::Selected;
use super::{going_on, header, offloading};
use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_clock::StampPath;
use tscap_engine::PtpClock;
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{HardwareOption, InterfaceInfo, StampOption, VlanTags};
use tscap_filter::Filter;
use tscap_live::Scope;
use tscap_live::settings::{JournalFolder, RestoreSummary, SettingsGuard};
use tscap_network::clsact::{Clsact, Side};
use tscap_network::ethtool::Feature;
use tscap_network::netdev::Link;
use tscap_network::promisc::{Promiscuous, PromiscuousError};
use tscap_programs::hook::{AttachPoint, Attacher, Loaded, Port, Refusal, offloads};

/// Attaches programs, at the start and to interfaces that join, and keeps in force what goes
/// with that. All of it is given back on drop.
pub(super) struct Attaching {
    plan: Capture,
    path: StampPath,
    stamp: StampOption,
    promiscuous: Vec<Promiscuous>,
    changes: SettingsGuard,
    pinning: Option<Pinning>,
    ptp_clocks: PtpClocks,
    default_carriers: DefaultCarriers,
}

/// An interface with its programs attached.
pub(super) struct Attached {
    pub live: LiveLink,
    /// What the file says of it.
    pub described: InterfaceInfo,
    /// The clock of its hardware stamps, where these are taken and it has one.
    pub stamps_by: Option<Arc<PtpClock>>,
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

impl Attaching {
    /// With stamps by `path`, as the file says it in `stamp`; some interfaces are in other
    /// network namespaces if `is_elsewhere`.
    pub fn new(
        (plan, is_elsewhere): (&Capture, bool),
        path: StampPath,
        stamp: StampOption,
        ptp_clocks: PtpClocks,
    ) -> Self {
        let changes = SettingsGuard::new(JournalFolder::live(), KernelFiles::live());
        Self {
            plan: plan.clone(),
            path,
            stamp,
            promiscuous: Vec::new(),
            changes: match plan.privileges {
                Privileges::Keep => changes,
                Privileges::GiveUp { .. } => changes.with_keeper(is_elsewhere),
            },
            pinning: plan.rx_cpus.clone().map(Pinning::new),
            ptp_clocks,
            default_carriers: DefaultCarriers::default(),
        }
    }

    /// Reads the clocks of hardware stamps for the last time.
    pub fn end_ptp_clocks(&mut self) {
        self.ptp_clocks.end();
    }

    /// Whether the process that was to give changes back has ended.
    pub fn has_lost_keeper(&mut self) -> bool {
        self.changes.has_lost_keeper()
    }

    /// Gives everything back, and tells what went wrong. Says whether nothing is left changed.
    pub fn give_back(mut self, reporter: &mut Reporter<'_>) -> bool {
        self.promiscuous.clear();
        let RestoreSummary { problems, is_left } = self.changes.give_back();
        problems
            .iter()
            .for_each(|problem| reporter.warning(problem));
        !is_left
    }

    /// Whether settings have been changed.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Leaves changes, those to come too, to a process that keeps its privileges.
    pub fn leave_to_keeper(&mut self, is_elsewhere: bool) -> Result<(), Failure> {
        going_on::leave_to_keeper(&mut self.changes, is_elsewhere)
    }

    /// Attaches programs to an interface of namespace `scope`, which becomes interface
    /// `number` of the file.
    ///
    /// # Errors
    /// If a program can't be attached. For an interface that was not named, only if none
    /// can: what is captured at least is told.
    pub fn attach(
        &mut self,
        selected: &Selected,
        scope: &Scope,
        number: u32,
        loaded: &Loaded,
        reporter: &mut Reporter<'_>,
    ) -> Result<Attached, Failure> {
        let mut within = |event| {
            reporter.tell(match (event, scope.label()) {
                (Event::Notice(severity, text), Some(label)) => {
                    Event::Notice(severity, format!("{label}: {text}"))
                }
                (event, _) => event,
            });
        };
        let reporter = &mut Reporter::new(&mut within);
        self.plan.filter_in(scope, &selected.link)?;
        scope.visit(|| self.attach_here(selected, scope, number, loaded, reporter))?
    }

    fn attach_here(
        &mut self,
        selected: &Selected,
        scope: &Scope,
        number: u32,
        loaded: &Loaded,
        reporter: &mut Reporter<'_>,
    ) -> Result<Attached, Failure> {
        let (plan, link) = (&self.plan, &selected.link);
        let port = Port {
            link,
            number,
            filter: plan.filter_here(link)?,
        };
        // Given back at once where nothing can be attached.
        let promiscuous = listen(plan, selected, reporter)?;
        let mut attached = Vec::new();
        let directions = plan.direction.of(link);
        let takes_received = directions.contains(&Direction::In);
        let mut hardware = None;
        if takes_received {
            hardware = hardware_stamps(plan, selected, &mut self.changes, reporter)?;
            attached.push(attach_to_received(
                plan,
                (&port, selected),
                loaded,
                self.path,
                (&mut self.changes, &mut self.default_carriers),
                reporter,
            )?);
        }
        let received = attached.first().map(|it| (it.at, it.reads_vlan_tags));
        let mut hardware = hardware.filter(|_| attached.iter().any(|it| it.reads_hardware_stamps));
        let is_needed = |attached: &[_]| selected.is_named || attached.is_empty();
        if directions.contains(&Direction::Out) {
            let by_filter = &mut by_filter(&mut self.changes);
            let sent = Attacher { loaded, by_filter }.sent(&port, plan.egress_point);
            match sent.map_err(|it| attach_failure(it, self.path)) {
                Err(failure) if !is_needed(&attached) => reporter.warning(&format!(
                    "{}: what it sends is not captured: {failure}",
                    link.name
                )),
                sent => attached.push(sent?),
            }
        }
        // After attaching: a driver may make its queues anew for it, with
        // interrupts and poll threads of their own.
        if let (Some(pinning), Some((at, _))) = (&mut self.pinning, received) {
            match pinning.steer(link, at, &mut self.changes, reporter) {
                Err(failure) if !is_needed(&attached) => reporter.warning(&failure.to_string()),
                steered => steered?,
            }
        }
        let in_force = offloads::read(&link.name);
        let tags = received.map_or(VlanTags::Kept, |(_, reads_vlan_tags)| {
            vlan_tags(plan, link, &in_force, reads_vlan_tags, reporter)
        });
        self.promiscuous.extend(promiscuous);
        let stamps_by = match &mut hardware {
            Some(hardware) => name_clock(&mut self.ptp_clocks, selected, hardware, reporter)?,
            None => None,
        };
        let mut live = LiveLink::new(selected, scope, attached);
        live.hardware.clone_from(&hardware);
        let taken = Taken {
            hardware,
            hooks: live.hooks(),
            stamp: self.stamp.clone(),
            offloads: offloads::for_file(&in_force),
            vlan_tags: tags,
            ends_frames: loaded.ends_frames(),
        };
        let described = header::describe(plan, link, scope.label(), taken);
        Ok(Attached {
            live,
            described,
            stamps_by,
        })
    }

    /// Captures what an interface receives beside what is at XDP of others now.
    ///
    /// # Errors
    /// If neither its entry nor tcx is available: its received frames are captured no more.
    pub fn follow(
        &mut self,
        live: &LiveLink,
        changed: &ChangedLink,
        scope: &Scope,
        loaded: &Loaded,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        let link = &changed.link;
        let port = Port {
            link,
            number: changed.number,
            filter: self.plan.filter_in(scope, link)?,
        };
        let was_entry = live.at(Direction::In).is_some_and(AttachPoint::is_entry);
        if !was_entry && link.xdp.is_none() {
            return Ok(());
        }
        // First, or a frame could be captured twice.
        live.lose_received();
        let began = Instant::now();
        let attachment = scope.visit(|| {
            let by_filter = &mut by_filter(&mut self.changes);
            Attacher { loaded, by_filter }.beside(&port)
        })?;
        let attachment = attachment.map_err(|it| attach_failure(it, self.path))?;
        let missing = (changed.since + began.elapsed()).as_millis();
        let hook = attachment.hook();
        let later = match (&link.xdp, &attachment.fallback) {
            (Some(_), Some(refusal)) => format!(
                ", behind it, where what it drops or redirects is not seen ({})",
                first_line(refusal)
            ),
            (None, _) => ", in the network stack".into(),
            (Some(_), None) => String::new(),
        };
        live.replace_received(attachment);
        reporter.warning(&format!(
            "{}: received frames are captured at {hook} from now on{later}: what is at XDP of \
             others has changed; frames received within {missing} ms may be missing",
            live.whole_name()
        ));
        Ok(())
    }
}

/// Makes an interface promiscuous where the plan asks for that, until the value is dropped.
///
/// # Errors
/// For a port that only listens, if the kernel refuses; others are captured without.
fn listen(
    plan: &Capture,
    selected: &Selected,
    reporter: &mut Reporter<'_>,
) -> Result<Option<Promiscuous>, Failure> {
    let link = &selected.link;
    if !plan.promiscuous || !selected.may_be_promiscuous {
        return Ok(None);
    }
    match Promiscuous::enable(link.index) {
        Ok(promiscuous) => Ok(Some(promiscuous)),
        Err(error) if plan.tap.is_some() => Err(not_listening(link, error)),
        Err(error) => {
            say_not_promiscuous(link, &error, reporter);
            Ok(None)
        }
    }
}

/// Which received frames the hardware stamps, where the plan asks for such stamps.
///
/// # Errors
/// For an interface that was named, if it stamps none.
fn hardware_stamps(
    plan: &Capture,
    selected: &Selected,
    changes: &mut SettingsGuard,
    reporter: &mut Reporter<'_>,
) -> Result<Option<HardwareOption>, Failure> {
    let Some(wanted) = plan.hardware_stamps else {
        return Ok(None);
    };
    match hardware::choose_filter(&selected.link, wanted, changes, reporter) {
        Err(failure) if !selected.is_named => {
            reporter.warning(&failure.to_string());
            Ok(Some(HardwareOption::default()))
        }
        chosen => chosen.map(Some),
    }
}

/// What becomes of VLAN tags under the offloads in force; says what these hide.
fn vlan_tags(
    plan: &Capture,
    link: &Link,
    in_force: &BTreeMap<String, Feature>,
    reads_vlan_tags: bool,
    reporter: &mut Reporter<'_>,
) -> VlanTags {
    let tags = offloads::vlan_tags(link, in_force, reads_vlan_tags);
    if plan.filter.as_ref().is_some_and(Filter::asks_for_vlan) && tags != VlanTags::Kept {
        offloading::say_unfiltered_tags(link, reporter);
    }
    offloading::say_hiding(link, in_force, tags, reporter);
    tags
}

/// Opens the clock of an interface's hardware stamps, and names it in `hardware`.
///
/// # Errors
/// For an interface that was named, if its clock can't be opened.
fn name_clock(
    clocks: &mut PtpClocks,
    selected: &Selected,
    hardware: &mut HardwareOption,
    reporter: &mut Reporter<'_>,
) -> Result<Option<Arc<PtpClock>>, Failure> {
    let found = match clocks.of(&selected.link) {
        Err(failure) if !selected.is_named => {
            reporter.warning(&failure.to_string());
            return Ok(None);
        }
        found => found?,
    };
    Ok(found.map(|(path, clock)| {
        hardware.clock = Some(path.display().to_string());
        clock
    }))
}

/// Attaches programs by filters that are journalled in `changes`.
fn by_filter(
    changes: &mut SettingsGuard,
) -> impl FnMut(BorrowedFd<'_>, &Link, Side) -> Result<Clsact, Refusal> {
    |program, link, side| Ok(changes.attach_filter(program, link, side, "tscap")?)
}

fn say_not_promiscuous(link: &Link, error: &PromiscuousError, reporter: &mut Reporter<'_>) {
    let name = &link.name;
    reporter.warning(&format!(
        "{name}: not promiscuous: {error} (-p leaves it as it is)"
    ));
}
