//! Programs at an interface that stamp NTP packets: received ones in XDP, sent ones behind the
//! queueing discipline.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tscap_common::hook::{Direction, Slot};
use tscap_common::key::KeyOf;

use super::waiting::{Sighting, Waiting};
use tscap_base::failure::{Context as _, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::going_on::drop_other_privileges;
use tscap_capture::interface::find_usable;
use tscap_capture::{ClockChoice, Counter, Event, Reporter, Stamping, first_of};
use tscap_clock::{RawStamp, StampPath, Tracker, TscCycles, TscPath};
use tscap_filter::{Filter, LinkType};
use tscap_live::settings::{JournalFolder, SettingsGuard};
use tscap_network::clsact::Side;
use tscap_network::netdev::Link;
use tscap_programs::hook::{
    AttachError, Attacher, Attachment, HookChoice, KEY_PROGRAMS, Keys, LoadOptions, Loaded, Port,
    Presence, Shares,
};
use tscap_programs::ring::{Consumer, CorruptBlock};
use tscap_references::ntp::{Datagram, PacketStamp};
use tscap_session::{Machine, by_filter, open_counter};
use tscap_time::tsc;

/// What is to be done with the interface, in errors.
const TASK: &str = "stamp NTP packets at";
/// Ring of each CPU, bytes: a thousand packets.
const RING_BYTES: usize = 1 << 18;
/// A filter of clsact would have to be taken off by a process that has given up its privileges.
const NO_TCX: &str = "beside a capture it takes tcx (Linux 6.6)";
/// Kept of a frame: the headers of two VLAN tags, IPv6 and UDP, and what of the payload is
/// looked at.
const KEPT: u32 = 22 + 40 + 8 + PAYLOAD as u32 + 2;
/// Bytes of a payload that are looked at: more than a header of NTP, so that a length that is
/// none shows.
const PAYLOAD: usize = 72;
/// Where the counter can be read, best first: the perf event behind the queueing discipline
/// too, a kfunc before it.
const PATHS: [StampPath; 3] = [
    StampPath::Tsc(TscPath::Perf),
    StampPath::Tsc(TscPath::Kernel),
    StampPath::Tsc(TscPath::Module),
];
/// The offset of each CPU's counter is looked at this often, also if nothing passes.
const CALIBRATE_EVERY: Duration = Duration::from_secs(10);
/// The interface is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The programs, attached. When this is dropped, nothing stays.
pub(super) struct Hooks {
    interface: String,
    path: StampPath,
    loaded: Loaded,
    counter: Option<Counter>,
    consumers: Vec<Consumer>,
    received: Attachment,
    sent: Attachment,
    changes: SettingsGuard,
    waiting: Waiting,
    /// Another's counters were opened: that ours have paused is as expected.
    has_to_move: bool,
    has_told_of_pauses: bool,
    calibrated: Instant,
    looked: Instant,
}

/// What else is at the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWith {
    /// Nothing that tscap knows of: received packets are stamped in XDP, sent ones behind the
    /// queueing discipline.
    Nothing,
    /// A capture is to be attached, which is to have XDP: both are stamped at tcx.
    Capture,
}

/// Why no more packets will be seen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The interface is gone, or a program from it.
    #[error("the interface is gone, or a program from it")]
    Interface,
    /// A ring held something that is no record.
    #[error("{0}: please report this")]
    Corrupt(CorruptBlock),
}

impl Hooks {
    /// Loads the programs for the packets that `expression` matches, and attaches them; requests
    /// have the direction `asking`. `host` has the counter's rate.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub fn attach(
        interface: &str,
        (expression, asking): (&str, Direction),
        beside: SharedWith,
        host: &Tracker,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        // The path to the TSC is chosen below.
        let machine = Machine::check(ClockChoice::Auto)?;
        let link = find_usable(interface, TASK, &[LinkType::Ethernet])?;
        let filter = Filter::from_expression(expression)?;
        let rings = (RING_BYTES, &*machine.cpus);
        let mut options = LoadOptions::new(KEY_PROGRAMS, rings, machine.possible_cpus);
        options.keys = Some(Keys {
            of: KeyOf::Bridge,
            kept: KEPT.next_multiple_of(4),
            process_producers: None,
        });
        let Stamping {
            mut loaded, path, ..
        } = first_of(&PATHS, &options, &KernelFiles::live()).map_err(no_counter)?;
        // The errors of these stamps are none of the host's clock.
        let mut tracker = host.clone();
        let counter = open_counter(path, &machine.cpus, loaded.object(), &mut tracker);
        let counter = counter.map_err(no_counter)?;
        let rate = host.counter().expect("settled").rate();
        let rings = loaded.rings.take().expect("taken here only");
        let mut changes = SettingsGuard::new(JournalFolder::live(), KernelFiles::live());
        let [received, sent] = attach(&loaded, &link, &filter, (path, beside), &mut changes)?;
        let mut hooks = Self {
            interface: link.name,
            path,
            loaded,
            consumers: Consumer::all(rings),
            received,
            sent,
            changes,
            waiting: Waiting::new(asking, rate),
            counter,
            has_to_move: false,
            has_told_of_pauses: false,
            calibrated: Instant::now(),
            looked: Instant::now(),
        };
        if let Some(counter) = &hooks.counter {
            counter.say(&mut Reporter::new(on_event));
            let offsets = counter.offsets();
            hooks.set_offsets(&offsets);
        }
        Ok(hooks)
    }

    /// Where packets are stamped, for people.
    pub fn ready(&self) -> String {
        format!(
            "{} (received at {}, sent at {}), clock tsc by {}",
            self.interface,
            self.received.hook(),
            self.sent.hook(),
            self.path.function()
        )
    }

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` later. Threads that run already keep theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        let counters = &self.loaded.counters;
        let reads = || counters.seen().is_ok();
        let changes = (Some(&mut self.changes), false);
        let reporter = &mut Reporter::new(on_event);
        drop_other_privileges(changes, makes_files, &reads, reporter)
    }

    /// Packets that the programs saw and could not record.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn lost(&self) -> Result<u64, Failure> {
        let slots = [Direction::In, Direction::Out].map(|direction| Slot::of(0, direction));
        let losses = self.loaded.counters.losses(&slots, &Shares::all());
        let losses = losses.context("cannot read the counters of the programs")?;
        Ok(losses.iter().flatten().map(|it| it.lost()).sum())
    }

    /// Gives each packet that has passed, in the order of time, and looks after the programs.
    /// A reply is never given before its request.
    ///
    /// # Errors
    /// If no more will come.
    pub fn turn(
        &mut self,
        on_event: &mut dyn FnMut(Event),
        see: &mut dyn FnMut(Direction, &Datagram<'_>, PacketStamp),
    ) -> Result<(), Lost> {
        self.supervise()?;
        // A packet that was stamped before this has recorded all that led to it before this:
        // its request is in the rings, if any is.
        let settled = tsc::read();
        let heads: Vec<u64> = self.consumers.iter().map(Consumer::head).collect();
        let error_ns = self.counter.as_ref().map_or(0, Counter::offset_error_ns);
        for (consumer, head) in self.consumers.iter_mut().zip(heads) {
            drain(consumer, head, error_ns, &mut self.waiting).map_err(Lost::Corrupt)?;
        }
        self.waiting.taken_out();
        if self.waiting.is_unknown() || self.calibrated.elapsed() >= CALIBRATE_EVERY {
            self.calibrate(on_event);
        }
        for sighting in self.waiting.settled(settled) {
            if let Some(datagram) = Datagram::of(&sighting.frame, PAYLOAD) {
                see(sighting.direction, &datagram, sighting.at);
            }
        }
        Ok(())
    }

    fn supervise(&mut self) -> Result<(), Lost> {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            let mut programs = [&self.received, &self.sent].into_iter();
            if programs.any(|it| it.held.look() == Presence::Gone) {
                return Err(Lost::Interface);
            }
        }
        Ok(())
    }

    /// Another's counters were opened: that these programs' pause then is not told.
    pub fn others_came(&mut self) {
        self.has_to_move = true;
    }

    /// Finds the offset of each CPU's counter anew: where somebody has opened such a counter,
    /// that of these programs paused, and what was stamped since the look before is off by as
    /// much. Between two looks right before a request and behind its reply hardly anybody does.
    pub fn calibrate(&mut self, on_event: &mut dyn FnMut(Event)) {
        self.calibrated = Instant::now();
        let Some(counter) = &mut self.counter else {
            self.waiting.looked(0, tsc::read());
            return;
        };
        let is_reported = !std::mem::take(&mut self.has_to_move) && !self.has_told_of_pauses;
        let mut on_event = |event| {
            if is_reported {
                on_event(event)
            }
        };
        let before_ns = counter.offset_error_ns();
        let moved_ns = counter.look(self.loaded.object(), &mut Reporter::new(&mut on_event));
        if moved_ns == 0 {
            self.waiting.looked(0, tsc::read());
            return;
        }
        self.waiting.looked(moved_ns + before_ns, tsc::read());
        self.has_told_of_pauses |= is_reported;
        let offsets = counter.offsets();
        self.set_offsets(&offsets);
    }

    fn set_offsets(&mut self, offsets: &[i64]) {
        for (consumer, offset) in self.consumers.iter_mut().zip(offsets) {
            consumer.set_stamp_offset(*offset);
        }
    }
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hooks").field(&self.interface).finish()
    }
}

fn drain(
    consumer: &mut Consumer,
    head: u64,
    error_ns: u64,
    waiting: &mut Waiting,
) -> Result<(), CorruptBlock> {
    while let Some(mut run) = consumer.run(head, RawStamp::NEVER) {
        while let Some(record) = run.next_key() {
            let record = record?;
            waiting.push(Sighting {
                at: PacketStamp {
                    tsc: TscCycles(record.stamp.0),
                    error_ns,
                },
                direction: if record.slot == Slot::of(0, Direction::In) {
                    Direction::In
                } else {
                    Direction::Out
                },
                frame: record.kept.to_vec(),
            });
        }
        let length = run.taken();
        consumer.take(length);
    }
    consumer.release();
    Ok(())
}

/// The program of sent packets first: a reply that is seen had a request that was.
fn attach(
    loaded: &Loaded,
    link: &Link,
    filter: &Filter,
    (path, beside): (StampPath, SharedWith),
    changes: &mut SettingsGuard,
) -> Result<[Attachment; 2], Failure> {
    let port = Port {
        link,
        number: 0,
        filter: Some(filter.program_for(LinkType::Ethernet, None)?),
    };
    let mut by_clsact = by_filter(changes);
    let by_filter = &mut |program: BorrowedFd<'_>, link: &Link, side: Side| match beside {
        SharedWith::Capture => Err(NO_TCX.into()),
        SharedWith::Nothing => by_clsact(program, link, side),
    };
    let mut attacher = Attacher { loaded, by_filter };
    let sent = match path {
        StampPath::Tsc(TscPath::Perf) if beside == SharedWith::Nothing => attacher.tapped(&port),
        _ => attacher.sent(&port, Default::default()),
    };
    let sent = sent.map_err(refused)?;
    let hook = match beside {
        SharedWith::Nothing => HookChoice::Auto,
        SharedWith::Capture => HookChoice::Tcx,
    };
    let received = attacher.received(&port, hook);
    Ok([received.map_err(refused)?, sent])
}

/// No program can read the raw counter. The verifier's log is left out.
fn no_counter(failure: Failure) -> Failure {
    let why = failure.chain();
    let why = why.split_once("Verifier output").map_or(&*why, |it| it.0);
    let why = why.trim_end().trim_end_matches('.');
    Failure::new(format!("cannot stamp NTP packets: {why}")).hint(
        "their stamps are of the raw counter: programs can read it with Linux 6.16 or later, or \
         by tscap's kernel module",
    )
}

fn refused(error: AttachError) -> Failure {
    Failure::from_error(error, "cannot attach the program that stamps NTP packets")
        .hint("it needs CAP_NET_RAW and what a capture needs: run as root; dmesg may say more")
}
