//! What a capture consists of while it runs.

use std::io;

use tokio::sync::mpsc::UnboundedReceiver;

use super::attach::{Attached, Attaching};
use super::check::Machine;
use super::counter::Counter;
use super::event::{Event, Reporter};
use super::files::{Files, not_intact};
use super::joining::Joining;
use super::live_link::Loss;
use super::live_links::LiveLinks;
use super::plan::{Capture, Target};
use super::selection::{Interfaces, Selected};
use super::state::ReadyInterface;
use super::summary::Stop;
use super::writers::Writers;
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::StampPath;
use tscap_engine::{self as engine, CloseError};
use tscap_file::accounting::{Direction, Observed, ReferenceStanding};
use tscap_programs::hook::Loaded;
use tscap_references::Followed;
use tscap_utc::{DisruptionWatch, UtcReader};

/// Programs, threads and files of a capture, and what was changed for it.
pub(super) struct Parts {
    pub plan: Capture,
    pub machine: Machine,
    pub loaded: Loaded,
    pub path: StampPath,
    pub links: LiveLinks,
    pub writers: Writers,
    pub events: UnboundedReceiver<engine::Event>,
    pub files: Files,
    /// For TSC stamps by perf events: the events and what is known of them.
    pub counter: Option<Counter>,
    /// What attaches programs; until all that it has changed is given back.
    pub attaching: Option<Attaching>,
    pub joining: Joining,
    /// What bounds the host's clock against UTC.
    pub utc: UtcReader,
    /// Tells of disruptions of the counter, where the hypervisor does.
    pub disruptions: Option<DisruptionWatch>,
    /// The process that gives settings back has ended, and that was told.
    pub is_keeper_lost: bool,
}

impl Parts {
    /// Reads what goes into the statistics blocks of each writer.
    pub fn observe(&mut self) -> Result<Vec<Observed>, Failure> {
        let counters = &self.loaded.counters;
        let rx_cpus = self.plan.rx_cpus.as_deref();
        let off_cpu = rx_cpus.map(|cpus| counters.seen_outside(cpus)).transpose();
        let off_cpu = off_cpu.context("cannot account for the frames")?;
        let utc = self.plan.reference.is_none().then(|| self.utc.read());
        let interfaces = self.links.counts(counters, &self.writers.shares);
        let interfaces = interfaces.context("cannot account for the frames")?;
        let observed = interfaces.into_iter().map(|interfaces| Observed {
            interfaces,
            utc_bound_ns: match &self.plan.reference {
                Some(followed) => followed.known().bounds().utc_ns(),
                None => utc.as_ref().and_then(|utc| utc.bound_ns),
            },
            utc: utc.clone(),
            references: self
                .plan
                .reference
                .as_ref()
                .map(standings)
                .unwrap_or_default(),
            off_cpu: off_cpu.map(|seen| seen[Direction::In]),
        });
        let observed: Vec<_> = observed.collect();
        for (writer, observed) in self.writers.each.iter().zip(&observed) {
            if let Ok(mut shared) = writer.shared.observed.lock() {
                shared.clone_from(observed);
            }
        }
        Ok(observed)
    }

    /// Has the converter go on by the offsets of the CPUs' counters as they are now.
    pub fn recheck_counter(&mut self, reporter: &mut Reporter<'_>) {
        if let Some(counter) = &mut self.counter
            && let Some(found) = counter.recheck(self.loaded.object(), reporter)
        {
            self.writers.recalibrate(&found);
        }
    }

    pub fn supervise_links(&mut self, reporter: &mut Reporter<'_>) {
        self.supervise_counter(reporter);
        self.supervise_keeper(reporter);
        self.follow_others(reporter);
        for (live, loss) in self.links.supervise() {
            let name = live.whole_name();
            match loss {
                Loss::Interface if live.is_named => {
                    reporter.error(&format!("interface {name} is gone"));
                }
                Loss::Interface => reporter.tell(Event::Left(ReadyInterface::of(live))),
                Loss::Program(at) => reporter.error(&format!(
                    "{name}: nothing is captured at {} any more: somebody has removed the \
                     program, or a move to another network namespace has",
                    at.name()
                )),
            }
        }
        if self.links.all_gone() && !self.machine.interfaces.selection.is_open() {
            reporter.tell(Event::Stopped(Stop::InterfaceGone));
        }
    }

    /// Tells that the hypervisor says that the counter was disrupted, and has the clocks read at once.
    fn supervise_counter(&mut self, reporter: &mut Reporter<'_>) {
        let disruptions = self.disruptions.as_mut();
        if disruptions.is_some_and(DisruptionWatch::was_disrupted) {
            self.writers.wake();
            reporter.tell(Event::Disrupted);
        }
    }

    /// Tells once that what the capture has changed is nobody's any more.
    fn supervise_keeper(&mut self, reporter: &mut Reporter<'_>) {
        let attaching = self.attaching.as_mut().filter(|_| !self.is_keeper_lost);
        if attaching.is_some_and(Attaching::has_lost_keeper) {
            self.is_keeper_lost = true;
            reporter.error(
                "the process that gives settings back (tscap-keeper) has ended: what this capture \
                 has changed stays changed\nhint: tscap restore, when the capture has ended",
            );
        }
    }

    /// Goes to what is at XDP of others now, where frames are captured beside that.
    fn follow_others(&mut self, reporter: &mut Reporter<'_>) {
        let interfaces = &self.machine.interfaces;
        for changed in self.links.look_beside(&interfaces.scopes) {
            let live = &self.links.0[changed.number as usize];
            if let Some(attaching) = &mut self.attaching {
                let scope = &interfaces.scopes[live.scope()];
                let followed = attaching.follow(live, &changed, scope, &self.loaded, reporter);
                if let Err(failure) = followed {
                    reporter.error(&failure.to_string());
                }
            }
        }
    }

    /// Takes what the converter has to say; gives the reason if it ends the capture.
    pub fn take(&mut self, event: engine::Event, reporter: &mut Reporter<'_>) -> Option<Stop> {
        match event {
            engine::Event::CountReached => Some(Stop::Count),
            engine::Event::PeriodsOver => Some(Stop::Files),
            engine::Event::ReaderGone => Some(Stop::ReaderGone),
            engine::Event::FileClosed { file, error } => {
                if let Some(error) = &error {
                    reporter.error(&not_intact(&file.path.display(), error));
                }
                let failed = error.as_ref().is_some_and(CloseError::is_of_disk);
                self.files.closed(file, error.as_ref(), reporter);
                failed.then_some(Stop::WriteError)
            }
            engine::Event::Flushed { next } => {
                reporter.tell(Event::Flushed { next });
                None
            }
            engine::Event::FileRemoved { path, frames } => {
                self.files.removed(path, frames, reporter);
                None
            }
            engine::Event::NotRemoved { path, error } => {
                reporter.warning(&format!("cannot remove {}: {error}", path.display()));
                None
            }
            engine::Event::NextFileFailed { path, error } => {
                reporter.error(&format!(
                    "cannot begin the next file, {}: {error}\n\
                     hint: the files so far are complete; give -w a place that stays writable",
                    path.display()
                ));
                Some(Stop::WriteError)
            }
            engine::Event::WriteFailed { path, error } => {
                let target = path.map_or_else(|| self.plan.target.clone(), Target::Path);
                reporter.error(&format!(
                    "cannot write to {target}: {error}\n\
                     hint: make room, or give -w another place"
                ));
                Some(Stop::WriteError)
            }
            engine::Event::Corrupt(corrupt) => {
                reporter.error(&format!("{corrupt}: please report this"));
                Some(Stop::InternalError)
            }
            engine::Event::Stepped { step_ns, cause } => {
                reporter.tell(Event::Stepped { step_ns, cause });
                None
            }
            engine::Event::CounterJumped { jump_ns } => {
                reporter.tell(Event::CounterJumped { jump_ns });
                None
            }
        }
    }
}

impl Drop for Parts {
    /// For a capture that nobody has finished: its programs would stay attached for as long as
    /// the converters run.
    fn drop(&mut self) {
        if self.writers.each.iter().any(|it| it.thread.is_some()) {
            // An interface that is gone has no program.
            let _ = self.links.detach();
        }
    }
}

impl Parts {
    /// Hears of the interfaces of a namespace, and has one of those that are to join do so.
    pub fn observe_scope(
        &mut self,
        news: io::Result<Option<usize>>,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        let Interfaces {
            scopes, selection, ..
        } = &self.machine.interfaces;
        let (joining, links) = (&mut self.joining, &self.links);
        if let Some(scope) = news.context("cannot hear of interfaces that join")? {
            joining.observe(scope, scopes, selection, links)?;
        }
        if let Some(selected) = joining.next(scopes, selection, links) {
            self.join(&selected, reporter);
        }
        Ok(())
    }

    fn join(&mut self, selected: &Selected, reporter: &mut Reporter<'_>) {
        let Some(attaching) = &mut self.attaching else {
            return;
        };
        let interfaces = &self.machine.interfaces;
        let scope = interfaces.scope_of(selected);
        let number = self.links.0.len();
        let most = self.machine.most_interfaces();
        let mut usable = interfaces.selection.check_frames(selected);
        if number >= most {
            let failure = format!("the capture has had {most} interfaces already");
            usable = Err(Failure::new(failure).hint("begin another one"));
        }
        let number = number as u32;
        let attached = usable.and_then(|()| {
            self.writers.announce(number);
            attaching.attach(selected, scope, number, &self.loaded, reporter)
        });
        match attached {
            Ok(Attached {
                live,
                described,
                stamps_by,
            }) => {
                self.writers.describe(&described, stamps_by.as_ref());
                reporter.tell(Event::Joined(ReadyInterface::of(&live)));
                self.links.0.push(live);
            }
            Err(failure) => self
                .joining
                .left_out
                .say(selected, scope, &failure, reporter),
        }
    }
}

/// What each reference is to the times.
fn standings(followed: &Followed) -> Vec<ReferenceStanding> {
    let members = followed.members().into_iter();
    let standings = members.map(|it| ReferenceStanding {
        name: it.name,
        state: it.state.name().to_owned(),
    });
    standings.collect()
}
