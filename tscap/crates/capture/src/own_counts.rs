//! What an interface itself counts while it is captured, beside what the programs see.

use std::sync::Mutex;

use super::event::Reporter;
use super::summary::{DirectionSummary, Summary};
use tscap_file::accounting::{Directed, InterfaceFrames};
use tscap_network::netdev::{Link, LinkReader, RxStats};
use tscap_programs::hook::AttachPoint;

/// The counters of one interface.
#[derive(Debug)]
pub(super) struct OwnCounts {
    /// Frames missed before; `None` if the kernel has no counters of them.
    missed_before: Option<u64>,
    before: Directed<InterfaceFrames>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` if they can't be read, or no more.
    reader: Option<LinkReader>,
    latest: Counted,
}

/// Counted since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    /// Frames that the device missed; `None` if the kernel has no counters of them.
    pub ifdrop: Option<u64>,
    /// Frames by the way that they went; `None` if they can't be read.
    pub frames: Option<Directed<InterfaceFrames>>,
}

impl OwnCounts {
    /// Of an interface of this thread's namespace, which was `before` when it had no
    /// programs. Begun after they are attached and ended before they are detached: each
    /// frame that is counted in between was to pass them.
    pub fn begin(before: &Link) -> Self {
        // Virtual devices (veth, tun, …) have no such counters of their own.
        let stats = before.stats.as_ref().filter(|_| before.kind.is_none());
        let missed_before = stats.map(missed);
        let reader = LinkReader::here(before.index).ok();
        let now = reader.as_ref().and_then(|reader| reader.read().ok()?);
        let first = now.as_ref().and_then(frames);
        Self {
            missed_before,
            before: first.unwrap_or_default(),
            state: Mutex::new(State {
                reader: reader.filter(|_| first.is_some()),
                latest: Counted {
                    ifdrop: missed_before.map(|_| 0),
                    frames: None,
                },
            }),
        }
    }

    /// Until now or the end. Of an interface that has gone from its namespace, what was last
    /// read.
    pub fn look(&self) -> Counted {
        let mut state = self.state.lock().unwrap_or_else(|it| it.into_inner());
        let now = state.reader.as_ref().and_then(|reader| reader.read().ok()?);
        if let Some(now) = now
            && let Some(frames) = frames(&now)
        {
            let since = |direction| frames[direction].since(self.before[direction]);
            let missed = now.stats.as_ref().map_or(0, missed);
            state.latest = Counted {
                ifdrop: self
                    .missed_before
                    .map(|before| missed.saturating_sub(before)),
                frames: Some(Directed::by(since)),
            };
        }
        state.latest
    }

    /// Whether the interface has carrier now; `None` if that can't be read.
    pub fn has_carrier(&self) -> Option<bool> {
        let state = self.state.lock().unwrap_or_else(|it| it.into_inner());
        Some(state.reader.as_ref()?.read().ok()??.has_carrier)
    }

    /// Nothing counts any more.
    pub fn end(&self) {
        self.look();
        let mut state = self.state.lock().unwrap_or_else(|it| it.into_inner());
        state.reader = None;
    }
}

/// Frames that the device had to leave out for want of buffers: as libpcap
/// counts them. Not `rx_dropped`, in which the kernel also counts frames that
/// it drops after XDP has seen them.
fn missed(stats: &RxStats) -> u64 {
    stats.missed + stats.fifo
}

fn frames(link: &Link) -> Option<Directed<InterfaceFrames>> {
    let (received, sent) = (link.stats.as_ref()?, link.tx_stats.as_ref()?);
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
pub(super) fn tell(summary: &Summary, reporter: &mut Reporter<'_>) {
    for interface in &summary.interfaces {
        for direction in &interface.directions {
            let Some(sentence) = sentence(direction) else {
                continue;
            };
            let text = format!("{}: {sentence}", interface.whole_name());
            if direction.hook.as_deref() == Some(AttachPoint::DriverEgress.name()) {
                reporter.note(&text);
            } else {
                reporter.detail(&text);
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
    use tscap_file::accounting::{Direction, Outcomes, Totals};

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
