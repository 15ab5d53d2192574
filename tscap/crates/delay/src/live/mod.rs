//! A measurement while it runs: programs at both ends record keys of packets, and a thread of
//! its own matches them.

mod plan;
mod points;
mod result;
mod sink;
mod way;

use std::time::Duration;

use self::points::{AttachedPoints, Interfaces};
use self::sink::MatcherSink;
use self::way::WayState;
use crate::schema::Match;
use crate::{Matcher, MatcherOptions, Worst};
use tscap_base::failure::Failure;
use tscap_capture::Event;
use tscap_session::{
    Beginning, Draining, EndReason, Live, Machine, Recorded, Session, SessionPlan,
};

pub use plan::{LivePlan, MeasuredPath, OutPoint};
pub use result::{Result as LiveResult, SlowPacket};
pub use sink::LiveSecond;

/// So long packets that are inside at the end may take to leave, at most.
const LONGEST_SETTLING: Duration = Duration::from_secs(2);
/// What helps where the programs are refused.
const TESTED_WITH: &str = "tscap delay is tested with Linux 6.1, 6.12 and 6.18. If this kernel \
     refuses its programs, capture both interfaces by `tscap capture --keep-raw`, and give the file to \
     `tscap delay --file`";
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A measurement with its programs attached. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Running {
    plan: LivePlan,
    matched_by: Match,
    draining: Draining<MatcherSink, AttachedPoints>,
    warnings: Vec<String>,
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
        let matched_by = self.matched_by.unwrap_or(interfaces.suitable_match());
        let (clock, tsc_path) = self.clock_at_its_points();
        let plan = SessionPlan {
            recorded: Recorded::Keys {
                of: matched_by.key_of(),
                kept: self.kept_bytes() as u32,
            },
            clock,
            tsc_path,
            reference: self.reference.as_ref(),
            // Each program at an interface has it.
            filter: None,
            interfaces: interfaces.most_points(),
            ring_bytes: self.ring_bytes,
        };
        let session = Session::open(&machine, &plan, on_event).await;
        let session = session.map_err(refused)?;
        let points = AttachedPoints::attach(self, &interfaces, &session.loaded).await?;
        let warnings = points.warnings();
        let draining = session.drain(points, |points, beginning| {
            let roles = points.programs.all.iter();
            let roles: Vec<_> = roles.map(|point| (point.slot, point.role)).collect();
            let ways = self.ways(&interfaces, beginning);
            MatcherSink::new(machine.cpus, &roles, ways)
        })?;
        Ok(Running {
            plan: self.clone(),
            matched_by,
            draining,
            warnings,
        })
    }

    /// The matchers, and how much memory they take, bytes. A packet that leaves within a window
    /// from the beginning on may have entered before.
    fn ways(&self, interfaces: &Interfaces, beginning: &Beginning<'_>) -> (Vec<WayState>, u64) {
        let start = beginning.start;
        let is_mirrored = matches!(self.course, MeasuredPath::Mirrored { .. });
        let mut memory_bytes = 0;
        let ways = interfaces.exits().map(|exits| {
            let exits = if is_mirrored { 1 } else { exits };
            let matcher = Matcher::new(MatcherOptions {
                window: beginning.units_of(self.window),
                capacity: self.capacity,
                exits,
                is_mirrored,
                kept_bytes: self.kept_bytes(),
                keeps_exits: self.keeps_packets,
                start,
            });
            memory_bytes += matcher.memory_bytes();
            let worst = self.keeps_packets.then(Worst::default);
            WayState::new(matcher, exits, start, worst)
        });
        (ways.collect(), memory_bytes)
    }
}

/// Without the verifier's log, where it has refused the programs.
fn refused(failure: Failure) -> Failure {
    let why = failure.chain();
    match why.split_once("Verifier output") {
        None => failure,
        Some((why, _)) => {
            Failure::new(why.trim_end().trim_end_matches('.').to_owned()).hint(TESTED_WITH)
        }
    }
}

impl Live for Running {
    type Latest = LiveSecond;

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn ready(&self) -> String {
        let points = self.draining.points().programs.ready();
        format!("{points}, {}", self.draining.clock())
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

    fn take_latest(&self) -> Option<LiveSecond> {
        self.draining.take_latest()
    }
}

impl Running {
    /// Names of the ways.
    pub fn ways(&self) -> &[String] {
        &self.draining.points().ways
    }

    /// Ends: no more packets enter, those inside leave for as long as a window, at most 2 s,
    /// and all is judged. `hurry` ends the waiting.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub async fn finish(self, hurry: impl Future<Output = ()>) -> Result<LiveResult, Failure> {
        let seconds = self.draining.seconds();
        self.draining.points().close_entries();
        let until = tokio::time::Instant::now() + self.plan.window.min(LONGEST_SETTLING);
        tokio::select! {
            () = self.settle(until) => {}
            () = hurry => {}
        }
        let ended = self.draining.finish()?;
        let plan = (self.plan, self.matched_by);
        result::of(plan, ended, (seconds, self.warnings))
    }

    /// Until nothing is inside, or `until`.
    async fn settle(&self, until: tokio::time::Instant) {
        let mut last = u64::MAX;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.draining.progress();
            if now.open == 0 && now.counted == last {
                return;
            }
            last = now.counted;
        }
    }
}
