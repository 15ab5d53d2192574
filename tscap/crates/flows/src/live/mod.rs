//! A measurement while it runs: the programs of a capture record the heads of packets, and a
//! thread of its own gives them to the flows.

mod points;
mod sink;

use self::points::{Interfaces, Point};
use self::sink::{FlowSink, Shown};
use super::flows::places;
use super::schema::{Account, FlowReport, IntervalBasis, Place, SortOrder};
use super::{FlowOptions, Flows, PlaceClock};
use tscap_base::failure::Failure;
use tscap_capture::{ClockChoice, DirectionChoice, Event};
use tscap_clock::StampPath;
use tscap_file::accounting::{Direction, Outcomes};
use tscap_filter::Filter;
use tscap_network::namespaces::Target;
use tscap_references::{Followed, ReferenceSummary};
use tscap_session::{Attached, Draining, EndReason, Live, Machine, Recorded, Session, SessionPlan};
use tscap_streams::DelayBasis;
use tscap_utc::{Roots, UtcReader};

pub use sink::Latest;

/// Bytes of a packet that are recorded: the headers of IPv6 in VXLAN over IPv6 with VLAN tags,
/// and those of TCP or RTP.
const SNAPLEN: u32 = 192;

/// A live measurement, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlan {
    /// The interfaces.
    pub interfaces: Vec<String>,
    /// The network namespace that they are in; `None` for this process's own.
    pub namespace: Option<Target>,
    /// Which packets.
    pub direction: DirectionChoice,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// The reference whose time the times are, which takes stamps of the TSC; `None` for the
    /// host's clock.
    pub reference: Option<Followed>,
    /// Only the packets that match.
    pub filter: Option<Filter>,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// What flows are.
    pub options: FlowOptions,
    /// Which ones come first.
    pub sort: SortOrder,
    /// So many are told each second, and have histogram and series at the end.
    pub top: usize,
    /// Most packets to see.
    pub count: Option<u64>,
}

/// A measurement with its programs attached. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Running {
    plan: LivePlan,
    draining: Draining<FlowSink, Attached<Direction>>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveResult {
    /// How long packets were taken, s.
    pub seconds: f64,
    /// What became of them.
    pub account: Account,
    /// Where they were stamped.
    pub places: Vec<Place>,
    /// The flows.
    pub flows: Vec<FlowReport>,
    /// Whether each packet that the programs saw has an outcome.
    pub adds_up: bool,
    /// The reference of the times, if they are not the host's.
    pub reference: Option<ReferenceSummary>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl LivePlan {
    /// Checks this against the machine, loads the programs, reads the clocks and attaches.
    /// `on_event` is told what a user should know.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(&self, on_event: &mut dyn FnMut(Event)) -> Result<Running, Failure> {
        let machine = Machine::check(self.clock)?;
        let interfaces = Interfaces::find(self)?;
        let plan = SessionPlan {
            recorded: Recorded::Frames { snaplen: SNAPLEN },
            clock: self.clock,
            tsc_path: None,
            reference: self.reference.as_ref(),
            filter: self.filter.as_ref(),
            interfaces: interfaces.count(),
            ring_bytes: self.ring_bytes,
        };
        let session = Session::open(&machine, &plan, on_event).await?;
        let points = points::attach(self, &interfaces, &session.loaded).await?;
        // That of a reference is known once the clock is read.
        let utc_bound_ns = match self.reference {
            Some(_) => None,
            None => UtcReader::open(Roots::live()).read().bound_ns,
        };
        let draining = session.drain(points, |points, beginning| {
            let places = points.all.iter();
            let places = places.map(|point| PlaceClock {
                opposite: points::opposite(points, point),
                ..place_of(
                    point,
                    beginning.path,
                    (utc_bound_ns, self.reference.as_ref()),
                )
            });
            let shown = Shown {
                top: self.top,
                sort: self.sort,
            };
            FlowSink::new(
                (&points.slots(), places.collect()),
                (Flows::new(self.options.clone(), false), shown),
                beginning.start,
            )
        })?;
        Ok(Running {
            plan: self.clone(),
            draining,
        })
    }
}

/// Its bounds are those of the clock, once it is read.
fn place_of(
    point: &Point,
    path: StampPath,
    (utc_bound_ns, reference): (Option<u64>, Option<&Followed>),
) -> PlaceClock {
    PlaceClock {
        place: Place {
            interface: Some(point.interface.clone()),
            sent: point.role == Direction::Out,
            intervals: IntervalBasis {
                clock: path.function().to_owned(),
                step_ns: 1,
                ends_ns: None,
                rate_ppb: 0,
                unbounded: None,
            },
            delays: DelayBasis::Clocks {
                tai_offsets_s: Vec::new(),
                host_bound_ns: 0,
                utc_bound_ns,
                reference: reference.map(|it| it.name().to_owned()),
            },
            streams: None,
        },
        counter: None,
        opposite: None,
    }
}

impl Live for Running {
    type Latest = Latest;

    fn warnings(&self) -> Vec<String> {
        points::warnings(self.draining.points())
    }

    fn ready(&self) -> String {
        self.draining.ready()
    }

    fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        self.draining.give_up_privileges(makes_files, on_event)
    }

    fn supervise(&mut self, on_event: &mut dyn FnMut(Event)) -> Option<EndReason> {
        self.draining.supervise(self.plan.count, on_event)
    }

    fn take_latest(&self) -> Option<Latest> {
        self.draining.take_latest()
    }
}

impl Running {
    /// Ends: detaches, takes out what is left, and accounts for it.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn finish(self) -> Result<LiveResult, Failure> {
        let seconds = self.draining.seconds();
        let mut ended = self.draining.finish()?;
        let (losses, seen) = ended.losses(&ended.points.slots())?;
        let mut sink = ended.sink;
        sink.judge_clocks(&ended.tracker);
        let FlowSink { flows, clocks, .. } = sink;
        let mut account = flows.account().clone();
        for (entry, count) in losses.iter().flat_map(Outcomes::entries) {
            account.note_unrecorded(entry.name, count);
        }
        let mut warnings = points::warnings(&ended.points);
        let lost: u64 = losses.iter().map(Outcomes::lost).sum();
        if lost > 0 {
            warnings.push(format!(
                "{lost} packets did not find room in the rings: packets that flows have lost may be \
                 among them (--ring-size)"
            ));
        }
        warnings.append(&mut ended.warnings);
        let frames = flows.frames();
        let flows = flows.reports(self.plan.top, self.plan.sort, &clocks);
        Ok(LiveResult {
            places: places(clocks, frames),
            flows,
            seconds,
            adds_up: account.seen == seen && account.adds_up(),
            account,
            reference: ended.reference,
            warnings,
        })
    }
}
