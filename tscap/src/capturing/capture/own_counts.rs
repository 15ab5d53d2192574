//! What an interface itself counts while it is captured, beside what the programs see.

use std::sync::Mutex;

use super::event::Listener;
use super::summary::{DirectionSummary, Summary};
use crate::capturing::accounting::{Directed, InterfaceFrames};
use crate::capturing::hook::AttachPoint;
use crate::capturing::host::netdev::{Link, LinkReader};

/// The counters of one interface.
#[derive(Debug)]
pub(super) struct OwnCounts {
    /// `None` if they can't be read.
    reader: Option<LinkReader>,
    before: Directed<InterfaceFrames>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Since the beginning.
    latest: Option<Directed<InterfaceFrames>>,
    has_ended: bool,
}

impl OwnCounts {
    /// Of interface number `index` of this thread's namespace. Begun after the programs are
    /// attached and ended before they are detached: each frame that is counted in between
    /// was to pass them.
    pub fn begin(index: u32) -> Self {
        let reader = LinkReader::here(index).ok();
        let first = reader.as_ref().and_then(read);
        Self {
            reader: reader.filter(|_| first.is_some()),
            before: first.unwrap_or_default(),
            state: Mutex::default(),
        }
    }

    /// Frames since the beginning, until now or the end. Of an interface that has gone from
    /// its namespace, those that were last read.
    pub fn look(&self) -> Option<Directed<InterfaceFrames>> {
        let mut state = self.state.lock().unwrap_or_else(|it| it.into_inner());
        if !state.has_ended
            && let Some(now) = self.reader.as_ref().and_then(read)
        {
            let since = |direction| now[direction].since(self.before[direction]);
            state.latest = Some(Directed::by(since));
        }
        state.latest
    }

    /// Nothing counts any more.
    pub fn end(&self) {
        self.look();
        let mut state = self.state.lock().unwrap_or_else(|it| it.into_inner());
        state.has_ended = true;
    }
}

fn read(reader: &LinkReader) -> Option<Directed<InterfaceFrames>> {
    let link: Link = reader.read().ok()??;
    let (received, sent) = (link.stats?, link.tx_stats?);
    let mut frames = Directed::received(InterfaceFrames {
        frames: received.packets,
        dropped: received.dropped,
    });
    frames += Directed::sent(InterfaceFrames {
        frames: sent.packets,
        dropped: sent.dropped,
    });
    Some(frames)
}

/// Says what the interfaces counted themselves: always where nobody else tells of frames
/// that the program missed.
pub(super) fn tell(summary: &Summary, told: &mut Listener<'_>) {
    for interface in &summary.interfaces {
        for direction in &interface.directions {
            let Some(sentence) = sentence(direction) else {
                continue;
            };
            let text = format!("{}: {sentence}", interface.whole_name());
            if direction.hook.as_deref() == Some(AttachPoint::DriverEgress.name()) {
                told.note(&text);
            } else {
                told.detail(&text);
            }
        }
    }
}

fn sentence(direction: &DirectionSummary) -> Option<String> {
    let (hook, counted) = (direction.hook.as_deref()?, direction.interface?);
    let way = match direction.direction.as_str() {
        "in" => "received",
        _ => "sent",
    };
    let seen = direction.totals.seen;
    let compared = match counted.frames.checked_sub(seen) {
        Some(0) => String::new(),
        Some(more) => format!(
            ": {more} more, which went round the program or are segments of aggregates (see \
             docs/directions.md)"
        ),
        None => format!(": {} fewer", seen - counted.frames),
    };
    let dropped = match counted.dropped {
        0 => String::new(),
        dropped => format!(", and {dropped} dropped"),
    };
    Some(format!(
        "{seen} frames seen at {hook}; the interface counted {} {way}{dropped}{compared}",
        counted.frames
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capturing::accounting::{Direction, Outcomes, Totals};

    fn said(seen: u64, frames: u64, dropped: u64) -> String {
        let totals = Totals::of(seen, Outcomes::default());
        let mut direction = DirectionSummary::of(Direction::Out, Some("driver egress"), totals);
        assert_eq!(sentence(&direction), None, "nobody has counted");
        direction.interface = Some(InterfaceFrames { frames, dropped });
        sentence(&direction).expect("both are known")
    }

    #[test]
    fn both_counts_are_said_and_which_is_greater() {
        let same = "7 frames seen at driver egress; the interface counted 7 sent";
        assert_eq!(said(7, 7, 0), same);
        assert_eq!(said(7, 7, 2), format!("{same}, and 2 dropped"));
        let more = said(7, 10, 0);
        assert!(more.contains("counted 10 sent: 3 more, which"), "{more}");
        assert!(said(7, 5, 1).ends_with("counted 5 sent, and 1 dropped: 2 fewer"));
    }
}
