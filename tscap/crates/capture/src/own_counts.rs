//! What an interface itself counts while it is captured, beside what the programs see.

use std::sync::Mutex;

use tscap_file::accounting::{Directed, InterfaceFrames};
use tscap_network::netdev::{Link, LinkReader, RxStats};

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
