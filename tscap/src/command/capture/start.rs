//! From a checked plan to a running capture.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::counter::Counter;
use super::files::Files;
use super::header;
use super::live_links::{LiveLink, LiveLinks};
use super::load::Stamping;
use super::offloading;
use super::opened::Opened;
use super::pinning::Pinning;
use super::prepare::Machine;
use crate::capturing::clock::{HostClocks, Segment, StampPath, StampSource, Tracker, TscPath};
use crate::capturing::engine::{Converter, Event, Finished, Frames, Rotation, Shared};
use crate::capturing::hook::{
    AttachError, Loaded, ModeChoice, Occupant, XdpMode, attach, offloads,
};
use crate::capturing::host::affinity;
use crate::capturing::host::kernel_files::KernelFiles;
use crate::capturing::host::netdev::{self, Link};
use crate::capturing::host::perf::Standing;
use crate::capturing::host::promisc::Promiscuous;
use crate::capturing::pcapng::FileWriter;
use crate::capturing::ring::Consumer;
use crate::capturing::settings::{Changes, JournalFolder};
use crate::cli::{CapturePlan, Offloads};
use crate::command::console::Console;
use crate::command::{Failure, Hint};

/// Some drivers take the link down to attach; it is given this long to come up.
const LINK_UP_WITHIN: Duration = Duration::from_secs(10);

/// A capture with its programs attached.
pub(super) struct Running {
    pub loaded: Loaded,
    /// What stamps.
    pub path: StampPath,
    pub links: Arc<LiveLinks>,
    pub shared: Arc<Shared>,
    pub events: UnboundedReceiver<Event>,
    pub converter: JoinHandle<Finished>,
    pub files: Files,
    pub started: Instant,
    /// For TSC stamps: the events and what is known of them.
    pub counter: Option<Counter>,
    /// What is in force as long as the capture runs; restored on drop.
    pub _in_force: (Vec<Promiscuous>, Changes),
}

/// Attaches, writes the headers and starts the converter.
pub(super) fn start(
    plan: &CapturePlan,
    machine: &Machine,
    stamping: Stamping,
    opened: Opened,
    mut tracker: Tracker,
    console: &mut Console,
) -> Result<Running, Failure> {
    let Stamping {
        mut loaded,
        path,
        refused,
    } = stamping;
    let mut clocks = HostClocks::new(path.source());
    let counter = (path == StampPath::Tsc(TscPath::Perf)).then(|| {
        let standing = Standing::Pinned;
        Counter::open(&machine.ring_cpus, standing, &mut loaded, &mut tracker)
    });
    let counter = counter.transpose();
    let counter = counter.map_err(|failure| refused.and(path, failure))?;
    if let Some(counter) = &counter {
        counter.say(console);
    }

    let mut promiscuous = Vec::new();
    let mut changes = Changes::new(JournalFolder::live(), KernelFiles::live());
    let mut pinning = plan.rx_cpus.as_deref().map(Pinning::new);
    let mut live = Vec::new();
    let mut described = Vec::new();
    for link in &machine.interfaces {
        if plan.promiscuous {
            promiscuous.extend(make_promiscuous(link, console));
        }
        let generic = plan.xdp_mode == ModeChoice::Generic;
        if plan.offloads == Offloads::Off {
            offloading::turn_off(link, generic, &mut changes, console)?;
        }
        let before = offloads::read(&link.name);
        let foreseen = offloading::foresee(link, &before, &mut changes);
        let attachment = attach(&loaded, link, plan.xdp_mode).map_err(attach_failure)?;
        if let Some(refusal) = &attachment.fallback {
            console.warning(&format!(
                "{}: the driver refused native XDP ({refusal}); using generic mode",
                link.name
            ));
        }
        let changed = offloads::changes(&before, &offloads::read(&link.name));
        offloading::say_changes(link, attachment.mode, &changed, foreseen, console);
        let generic = attachment.mode == XdpMode::Generic;
        if generic {
            console.warning(&format!(
                "{}: in generic mode frames may be aggregates (GRO, GSO), not what arrived",
                link.name
            ));
            if plan.offloads == Offloads::Off {
                offloading::turn_off(link, true, &mut changes, console)?;
            }
        }
        // After attaching: a driver may make its queues anew for it, with
        // interrupts and poll threads of their own.
        if let Some(pinning) = &mut pinning {
            pinning.steer(link, attachment.mode, &mut changes, console)?;
        }
        let in_force = offloads::read(&link.name);
        let tags = offloads::vlan_tags(link, &in_force, attachment.reads_vlan_tags);
        offloading::say_hiding(link, &in_force, generic, tags, console);
        let bracket = counter.as_ref().and_then(Counter::bracket);
        let stamp = header::stamp(path, bracket, machine);
        described.push(header::describe(
            plan,
            link,
            attachment.mode,
            stamp,
            offloads::for_file(&in_force),
            tags,
        ));
        live.push(LiveLink::new(link, attachment));
    }
    let links = Arc::new(LiveLinks(live));

    let cross = tracker.read(&mut clocks);
    tracker.observe(&cross);
    let has_tai_offset = tracker.segments().iter().all(Segment::has_tai_offset);
    if path.source() == StampSource::Tai && !has_tai_offset {
        console.note(
            "no time daemon has given the kernel the TAI offset, so that its CLOCK_TAI is UTC: \
             the times in the file are right all the same, and `tscap convert --time-base tai` \
             goes by the leap-second table of tzdata",
        );
    }
    let start = tracker.real_at(cross.mono[1]);
    let mut file =
        FileWriter::new(&header::section(), &described, start).trying("cannot make headers")?;
    let (tell, events) = unbounded_channel();
    let files = Files::new(plan)?;
    let opened = opened.at(start)?;
    let (output, first) = header::write_headers(plan, opened, &mut file, &tell)?;
    let rotation = plan.rotation.as_ref().zip(first);
    let rotation = rotation.map(|(plan, (path, names))| {
        let rotation = Rotation::new(plan, names, path, start, tell.clone());
        rotation.trying("cannot start a thread")
    });
    let rotation = rotation.transpose()?;

    let shared = Arc::new(Shared::default());
    let rings = loaded.rings.take().expect("taken here only");
    let resolver = Arc::clone(&links);
    let mut consumers = Consumer::all(rings);
    let offsets = counter.as_ref().map(Counter::offsets).unwrap_or_default();
    for (consumer, offset) in consumers.iter_mut().zip(offsets) {
        consumer.set_stamp_offset(offset);
    }
    let frames = Frames {
        count: plan.count,
        keep_raw: plan.keep_raw,
    };
    let mut converter = Converter::new(
        consumers,
        clocks,
        tracker,
        output,
        file,
        frames,
        Box::new(move |ifindex| resolver.resolve(ifindex)),
        Arc::clone(&shared),
        tell,
    );
    if let Some(rotation) = rotation {
        converter = converter.rotating(rotation);
    }
    let converter = spawn(converter, machine.converter_cpu)?;
    console.detail(&format!(
        "converter pinned to CPU {}",
        machine.converter_cpu
    ));
    Ok(Running {
        loaded,
        path,
        links,
        shared,
        events,
        converter,
        files,
        started: Instant::now(),
        counter,
        _in_force: (promiscuous, changes),
    })
}

fn make_promiscuous(link: &Link, console: &mut Console) -> Option<Promiscuous> {
    match Promiscuous::enable(link.index) {
        Ok(guard) => Some(guard),
        Err(error) => {
            console.warning(&format!(
                "{}: not promiscuous: {error} (-p leaves it as it is)",
                link.name
            ));
            None
        }
    }
}

fn attach_failure(error: AttachError) -> Failure {
    let hint = match &error {
        AttachError::Busy { interface, xdp } => Occupant::of(xdp).removal(interface, xdp.mode),
        AttachError::Refused {
            mode: XdpMode::Native,
            ..
        } => "--xdp-mode auto or generic works with every driver, but may show aggregates".into(),
        _ => "dmesg may say more".into(),
    };
    Err::<(), _>(error)
        .trying("cannot attach the XDP program")
        .expect_err("it is one")
        .hint(hint)
}

fn spawn(converter: Converter<HostClocks>, cpu: u32) -> Result<JoinHandle<Finished>, Failure> {
    let (pinned, is_pinned) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("tscap-converter".into())
        .spawn(move || {
            // The receiver waits below.
            let _ = pinned.send(affinity::pin_to(cpu));
            converter.run()
        })
        .trying("cannot start the converter thread")?;
    is_pinned
        .recv()
        .unwrap_or_else(|gone| Err(std::io::Error::other(gone)))
        .trying(format!("cannot pin the converter to CPU {cpu}"))?;
    Ok(thread)
}

/// Waits until every link that had carrier has it again.
pub(super) async fn wait_for_links(before: &[Link], console: &mut Console) {
    let deadline = Instant::now() + LINK_UP_WITHIN;
    for link in before.iter().filter(|link| link.has_carrier) {
        let is_up = || match netdev::by_index(link.index) {
            Ok(Some(now)) => now.has_carrier,
            // Gone: the session finds out.
            _ => true,
        };
        while !is_up() {
            if Instant::now() > deadline {
                console.warning(&format!("{}: the link has not come up again", link.name));
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
