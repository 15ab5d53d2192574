//! From a plan to a running capture: check, open, load, read the clocks, attach, write the
//! headers, start the converters.

use tokio::sync::mpsc::unbounded_channel;
use tokio::task::yield_now;
use tscap_common::hook::ClockDomain;

use super::attach::{self, Attaching};
use super::attach_all::{AllAttached, attach_all};
use super::beginning::Beginning;
use super::check::{self, Machine};
use super::clocks::Clocks;
use super::counter::Counter;
use super::event::{Event, Reporter};
use super::files::Files;
use super::hardware::PtpClocks;
use super::joining::Joining;
use super::left_out::LeftOut;
use super::load::{self, Stamping};
use super::opened::Opened;
use super::parts::Parts;
use super::plan::{Capture, ClockChoice, Target};
use super::privileges::Identity;
use super::running::Running;
use super::{first_brackets, opened, pinning, stale_journals};
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::{RealNs, Segment, StampPath, StampSource, Tracker};
use tscap_engine::NewName;
use tscap_file::pcapng::pcap_name;
use tscap_host::access::Owner;
use tscap_host::caps;
use tscap_host::perf::EventPriority;
use tscap_host::readable::Readable;
use tscap_programs::hook::{Loaded, Shares};
use tscap_programs::ring::Consumer;
use tscap_time::timex::ClockSetWatch;
use tscap_utc::{Roots, UtcReader, Watched};

/// What stamps, and how its stamps become times.
struct Clock {
    stamping: Stamping,
    clocks: Clocks,
    tracker: Tracker,
    counter: Option<Counter>,
}

impl Capture {
    /// Checks this against the machine, opens the output and attaches the programs. When
    /// the future is dropped before it is ready, nothing stays attached or changed.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached or changed.
    pub async fn start(&self, on_event: &mut dyn FnMut(Event)) -> Result<Running, Failure> {
        let reporter = &mut Reporter::new(on_event);
        let mut machine = check::check(self)?;
        pinning::check(self, &machine, reporter)?;
        warn_of_name(&self.target, reporter);
        let identity = Identity::of(self, reporter)?;
        let opened = opened::open(self, reporter).await?;
        yield_now().await;
        let clock = self.find_clock(&mut machine, reporter).await?;
        yield_now().await;
        let ptp_clocks = self.find_ptp_clocks(&machine).await?;
        // Two captures must not change the same settings.
        let turn = stale_journals::turn(self, reporter).await?;
        stale_journals::look_at_journals(self, &machine, reporter)?;
        let running = self.run(machine, (clock, ptp_clocks), (opened, identity), reporter);
        let running = running.await?;
        drop(turn);
        Ok(running)
    }

    /// Loads the program and reads the clocks; by another clock where the TSC can't be
    /// read and nobody has asked for it.
    async fn find_clock(
        &self,
        machine: &mut Machine,
        reporter: &mut Reporter<'_>,
    ) -> Result<Clock, Failure> {
        loop {
            let stamping = load::load(self, machine, reporter)?;
            let source = stamping.path.source();
            let mut clocks = Clocks::of(self.reference.as_ref(), source);
            match first_brackets(source, &mut clocks).await {
                Err(failure) if self.clock == ClockChoice::Auto && source == StampSource::Tsc => {
                    reporter.note(&format!("no stamps by the TSC: {}", failure.chain()));
                    machine.takes_tsc = false;
                }
                tracker => {
                    return Ok(Clock {
                        stamping,
                        clocks,
                        tracker: tracker?,
                        counter: None,
                    });
                }
            }
        }
    }

    /// Starts to read the clocks of hardware stamps, and waits until their rates are known.
    async fn find_ptp_clocks(&self, machine: &Machine) -> Result<PtpClocks, Failure> {
        let mut clocks = PtpClocks::default();
        if self.hardware_stamps.is_none() {
            return Ok(clocks);
        }
        for selected in &machine.interfaces.now {
            let scope = machine.interfaces.scope_of(selected);
            // Those that can't be read are told where programs are attached.
            let _ = scope.visit(|| clocks.of(&selected.link))?;
        }
        clocks.settle().await;
        Ok(clocks)
    }

    /// Attaches, writes the headers and starts the converters.
    async fn run(
        &self,
        mut machine: Machine,
        (mut clock, ptp_clocks): (Clock, PtpClocks),
        (opened, identity): (Vec<Opened>, Identity),
        reporter: &mut Reporter<'_>,
    ) -> Result<Running, Failure> {
        clock.open_counter(&machine, reporter)?;
        // While there are privileges for it.
        let utc = UtcReader::open(Roots::live());
        let clock_set = ClockSetWatch::new().and_then(Readable::new);
        let clock_set = clock_set.context("cannot watch the system clock for steps")?;
        let Clock {
            stamping,
            clocks,
            mut tracker,
            counter,
        } = clock;
        let mut clocks = Watched::new(clocks, utc.disruptions());
        let (mut loaded, path) = (stamping.loaded, stamping.path);
        let mut attaching = self.attaching(&machine, path, counter.as_ref(), ptp_clocks);
        let mut left_out = LeftOut::default();
        let on = (self, &machine.interfaces);
        let attached = attach_all(on, &mut attaching, &loaded, (&mut left_out, reporter)).await?;
        let AllAttached {
            links,
            described,
            stamps_by,
        } = attached;

        let (cross, _) = tracker.look(&mut clocks);
        note_tai(path, &tracker, reporter);
        let start = tracker.real_at(cross.mono[1]);
        let (tell, events) = unbounded_channel();
        let owner = identity.owner();
        let mut opened = self.name_files(opened, start, owner)?;
        let names: Vec<_> = opened
            .iter_mut()
            .filter_map(Opened::take_new_name)
            .collect();
        let beginning = Beginning {
            plan: self,
            start,
            clocks,
            tracker,
            described,
            stamps_by,
            next_owner: identity.next_owner(),
            tell,
        };
        let begun = beginning.write_headers(opened.into_iter())?;
        let (on, by) = ((&machine.interfaces, &links), (&loaded, path));
        let kept = identity.drop_other_privileges(self, on, by, &mut attaching, reporter)?;
        let files = Files::new(self)?;
        let shares = Shares::new(&machine.ring_cpus, self.writers as usize);
        let consumers = consumers(&mut loaded, counter.as_ref());
        let outputs = begun
            .into_iter()
            .zip(machine.converter_cpus.iter().copied());
        let writers = beginning.start(outputs, consumers, shares, reporter)?;
        names.into_iter().for_each(NewName::keep);
        if let Some(kept) = kept {
            caps::keep_only(&kept).context("cannot give up capabilities")?;
        }
        let watches = std::mem::take(&mut machine.interfaces.watches);
        let joining = Joining::new(watches, left_out)?;
        let parts = Parts {
            plan: self.clone(),
            machine,
            loaded,
            path,
            links,
            writers,
            events,
            files,
            counter,
            attaching: Some(attaching),
            joining,
            disruptions: utc.disruptions(),
            utc,
            is_keeper_lost: false,
        };
        Ok(Running::new(parts, clock_set))
    }
}

impl Capture {
    /// What attaches the programs, with stamps by `path`.
    fn attaching(
        &self,
        machine: &Machine,
        path: StampPath,
        counter: Option<&Counter>,
        ptp_clocks: PtpClocks,
    ) -> Attaching {
        let untrusted = machine.untrusted_tsc.as_ref().map(ToString::to_string);
        let untrusted = untrusted.filter(|_| path.source() == StampSource::Tsc);
        let stamp = attach::stamp(path, counter, untrusted);
        let who = (self, machine.interfaces.is_elsewhere());
        Attaching::new(who, path, stamp, ptp_clocks)
    }

    /// Gives files that are named by the start their names, and all of them to their owner.
    fn name_files(
        &self,
        opened: Vec<Opened>,
        start: RealNs,
        owner: Owner,
    ) -> Result<Vec<Opened>, Failure> {
        let opened: Result<Vec<_>, _> = opened.into_iter().map(|it| it.at(start)).collect();
        let opened = opened?;
        for (opened, target) in opened.iter().zip(self.targets()) {
            let given = opened.give_to(owner);
            given.context(format!("cannot give {target} to its owner"))?;
        }
        Ok(opened)
    }
}

impl Clock {
    /// For stamps by a perf event: opens it on each CPU and finds its offset.
    fn open_counter(
        &mut self,
        machine: &Machine,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        let path = self.stamping.path;
        if path.domain() != ClockDomain::CpuTsc {
            return Ok(());
        }
        let (cpus, priority) = (&machine.ring_cpus, EventPriority::Pinned);
        let object = self.stamping.loaded.object();
        let counter = Counter::open(cpus, priority, object, &mut self.tracker);
        let refused = std::mem::take(&mut self.stamping.refused);
        let counter = counter.map_err(|failure| refused.and(path, failure))?;
        counter.say(reporter);
        self.counter = Some(counter);
        Ok(())
    }
}

/// Warns of a name that promises another format.
fn warn_of_name(target: &Target, reporter: &mut Reporter<'_>) {
    let Target::Path(path) = target else {
        return;
    };
    if let Some(what) = pcap_name(path) {
        reporter.warning(&what);
    }
}

fn note_tai(path: StampPath, tracker: &Tracker, reporter: &mut Reporter<'_>) {
    let has_tai_offset = tracker.segments().iter().all(Segment::has_tai_offset);
    if path.source() == StampSource::Tai && !has_tai_offset {
        reporter.note(
            "no time daemon has given the kernel the TAI offset, so that its CLOCK_TAI is UTC: \
             the times in the file are right all the same, and `tscap convert --time-base tai` \
             goes by the leap-second table of tzdata",
        );
    }
}

/// The rings of the program, with the offset that each CPU's stamps have.
fn consumers(loaded: &mut Loaded, counter: Option<&Counter>) -> Vec<Consumer> {
    let rings = loaded.rings.take().expect("taken here only");
    let mut consumers = Consumer::all(rings);
    let offsets = counter.map(Counter::offsets).unwrap_or_default();
    for (consumer, offset) in consumers.iter_mut().zip(offsets) {
        consumer.set_stamp_offset(offset);
    }
    consumers
}
