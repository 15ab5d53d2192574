//! A live measurement of one's own: how long the packets are that an interface receives. What
//! is particular to it is [`Lengths`], the sink; the checks, the programs, the clock, the thread
//! and the end are a session's.

use std::time::Duration;

use tscap_base::failure::Failure;
use tscap_capture::ClockChoice;
use tscap_capture::interface::find_usable;
use tscap_clock::{RawStamp, Tracker};
use tscap_filter::LinkType;
use tscap_live::Scope;
use tscap_programs::ring::Block;
use tscap_session::{
    Attached, Beginning, ClockChange, Frames, Machine, Place, Progress, Recorded, SeenWhen,
    Session, SessionPlan, Sink, Times,
};

/// Lengths up to these are counted together, bytes.
const UP_TO: [u32; 4] = [64, 256, 1_024, u32::MAX];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let found = measure("veth0", 10).await?;
    println!("{} of {} packets: {found:?}", found.packets(), found.seen);
    Ok(())
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Packets of each length.
    pub lengths: [u64; UP_TO.len()],
    /// From the first packet to the last, ns.
    pub span_ns: i64,
    /// Packets that the program has seen.
    pub seen: u64,
}

impl Found {
    /// Packets that were recorded.
    pub fn packets(&self) -> u64 {
        self.lengths.iter().sum()
    }
}

/// Measures at `interface` until `most` packets have come.
///
/// # Errors
/// What was tried, why it failed and what to do next. Nothing stays attached.
pub async fn measure(interface: &str, most: u64) -> Result<Found, Failure> {
    let on_event = &mut |event| eprintln!("{event}");
    let machine = Machine::check(ClockChoice::Auto)?;
    let link = find_usable(interface, "measure at", &[LinkType::Ethernet])?;
    let plan = SessionPlan {
        recorded: Recorded::Frames { snaplen: 64 },
        clock: ClockChoice::Auto,
        tsc_path: None,
        reference: None,
        filter: None,
        interfaces: 1,
        ring_bytes: Some(1 << 20),
    };
    let session = Session::open(&machine, &plan, on_event).await?;
    let mut points = Attached::none();
    let place = Place {
        scope: &Scope::open(None, "measure")?,
        link: &link,
        number: 0,
        seen: SeenWhen::Received,
        filter: None,
    };
    points.add(&session.loaded, &place, ())?;
    let mut running = session.drain(points, |_, beginning| Lengths::new(beginning))?;
    running.give_up_privileges(false, on_event)?;
    while running.supervise(Some(most), on_event).is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if let Some(lengths) = running.take_latest() {
            eprintln!("{lengths:?}");
        }
    }
    let ended = running.finish()?;
    let (_, seen) = ended.losses(&ended.points.slots())?;
    Ok(Found {
        lengths: ended.sink.counts,
        span_ns: ended.sink.span_ns,
        seen,
    })
}

/// What is made of packets.
struct Lengths {
    counts: [u64; UP_TO.len()],
    start: RawStamp,
    first: Option<RawStamp>,
    span_ns: i64,
}

impl Lengths {
    fn new(beginning: &Beginning<'_>) -> Self {
        Self {
            counts: [0; UP_TO.len()],
            start: beginning.start,
            first: None,
            span_ns: 0,
        }
    }
}

impl Sink for Lengths {
    const THREAD: &'static str = "lengths";
    const WAITS: bool = false;
    type Records = Frames;
    type Latest = [u64; UP_TO.len()];

    fn begin(&mut self, _: &Tracker) {}

    fn take(&mut self, _: usize, block: Block<'_>, times: &Times) {
        let stamp = block.raw_stamp();
        if stamp < self.start {
            // Before everything was ready.
            return;
        }
        let first = *self.first.get_or_insert(stamp);
        self.span_ns = times.between(first, stamp);
        let class = UP_TO.iter().position(|most| block.origlen() <= *most);
        self.counts[class.unwrap_or(UP_TO.len() - 1)] += 1;
    }

    fn settled(&mut self, _: RawStamp, _: &Times) {}

    fn clock_changed(&mut self, _: ClockChange) -> Option<String> {
        None
    }

    fn progress(&self) -> Progress {
        Progress {
            counted: self.counts.iter().sum(),
            open: 0,
        }
    }

    fn latest(&mut self, _: &Tracker) -> Self::Latest {
        self.counts
    }
}
