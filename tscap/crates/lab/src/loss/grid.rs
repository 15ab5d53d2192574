//! The points of a sweep.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schema::kept;
use tscap_clock::StampSource;
use tscap_traffic::generator::{LineRate, Pacing, Rate};
use tscap_traffic::load::{Tool, needs_bulks};

/// Longest frame that a veth pair lets through: its MTU, 1500, and the header.
pub const LONGEST_FRAME: u32 = 1514;

/// How frames follow each other, whatever their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as can be.
    FlatOut,
    /// So many byte times after each other on a line.
    Gap {
        /// Byte times.
        gap: u64,
        /// The line.
        line: LineRate,
    },
    /// So many a second.
    Rate(Rate),
}

impl Pace {
    /// For frames of `size` bytes; `None` if no clock could pace it.
    pub fn pacing(self, size: u32) -> Option<Pacing> {
        match self {
            Self::FlatOut => Some(Pacing::FlatOut),
            Self::Gap { gap, line } => line.period(size, gap).map(Pacing::Paced),
            Self::Rate(rate) => rate.period(size).map(Pacing::Paced),
        }
    }

    /// Frames of `size` bytes a second; infinite flat out, and for a pace that none
    /// could keep.
    pub fn rate(self, size: u32) -> f64 {
        match self.pacing(size) {
            Some(Pacing::Paced(period)) => period.rate(),
            Some(Pacing::FlatOut) | None => f64::INFINITY,
        }
    }
}

/// How frames come to the receiver: one costs more by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Several at once, as flat out, or from a card that is polled.
    InBursts,
    /// One by one, as from a sender that keeps a pace.
    Singly,
}

impl Pace {
    /// How frames of `size` bytes come that follow each other so: those that can't be sent
    /// one by one come in bursts.
    pub fn arrival(self, size: u32) -> Arrival {
        match self.pacing(size) {
            Some(pacing) if !needs_bulks(pacing) => Arrival::Singly,
            _ => Arrival::InBursts,
        }
    }
}

/// Every combination of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Frame sizes, bytes.
    pub sizes: Vec<u32>,
    /// How frames follow each other.
    pub paces: Vec<Pace>,
    /// Most bytes of a frame that are kept; 0 for all.
    pub snaplens: Vec<u32>,
    /// Lengths of tscap's ring of each CPU, bytes; other programs get as much memory
    /// in all.
    pub rings: Vec<usize>,
    /// What tscap stamps with.
    pub clocks: Vec<StampSource>,
    /// Programs to hold tscap against.
    pub peers: Vec<Tool>,
    /// How long frames are sent at each point.
    pub duration: Duration,
    /// How often the runs are made by which costs are found out.
    pub rounds: u32,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridPoint {
    /// Who captures.
    pub tool: Tool,
    /// With which stamp, if it is tscap; else the first one.
    pub clock: StampSource,
    /// Frame size, bytes.
    pub size: u32,
    /// How frames follow each other.
    pub pace: Pace,
    /// Most bytes of a frame that are kept; 0 for all.
    pub snaplen: u32,
    /// Length of a ring, bytes.
    pub ring: usize,
}

impl GridPoint {
    /// Bytes of a frame that are kept.
    pub fn caplen(&self) -> u32 {
        kept(self.size, self.snaplen)
    }
}

impl Grid {
    /// Fewer than it has: to see that all works.
    pub fn quick() -> Self {
        Self {
            sizes: vec![64, 256, 1024],
            snaplens: vec![96],
            rings: vec![1 << 20],
            duration: Duration::from_millis(100),
            rounds: 1,
            ..Self::usual()
        }
    }

    /// Less than two minutes.
    pub fn usual() -> Self {
        Self {
            sizes: vec![64, 128, 256, 512, 1024, 1500],
            paces: vec![Pace::FlatOut],
            snaplens: vec![96, 0],
            rings: vec![256 << 10, 1 << 20, 16 << 20],
            clocks: vec![StampSource::Ktime],
            peers: Vec::new(),
            duration: Duration::from_millis(500),
            rounds: 3,
        }
    }

    /// Skopkó's: frames of 72 to 1200 bytes at line rate, at least 5 s each; whole
    /// and with three snaplens; buffers of 2 and of 32 MB on two CPUs; dumpcap beside
    /// tscap.
    pub fn paper() -> Self {
        Self {
            sizes: (72..=1200).step_by(8).collect(),
            paces: vec![Pace::Gap {
                gap: LineRate::LEAST_GAP,
                line: LineRate::GIGABIT,
            }],
            snaplens: vec![0, 256, 128, 96],
            rings: vec![1 << 20, 16 << 20],
            peers: vec![Tool::Dumpcap],
            duration: Duration::from_secs(5),
            ..Self::usual()
        }
    }

    /// What costs have to be found out for: every stamp, with frames that come in
    /// every way that there is.
    pub fn costs(&self) -> Vec<(StampSource, Arrival)> {
        let of_pace = |pace: &Pace| match *pace {
            Pace::FlatOut => vec![Arrival::InBursts],
            pace => self.sizes.iter().map(|size| pace.arrival(*size)).collect(),
        };
        let mut arrivals: Vec<_> = self.paces.iter().flat_map(of_pace).collect();
        arrivals.sort_by_key(|arrival| *arrival as u8);
        arrivals.dedup();
        let each = self.clocks.iter().flat_map(|clock| {
            let arrivals = arrivals.iter();
            arrivals.map(|arrival| (*clock, *arrival))
        });
        each.collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let tools = self.clocks.len() + self.peers.len();
        let settings = self.paces.len() * self.snaplens.len() * self.rings.len();
        self.sizes.len() * settings * tools
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them. Programs take turns at each size: what changes on the machine
    /// meanwhile falls on all of them.
    pub fn grid_points(&self) -> Vec<GridPoint> {
        let mut grid_points = Vec::with_capacity(self.len());
        let first = self.clocks.first().copied().unwrap_or(StampSource::Ktime);
        let ours = self.clocks.iter().map(|clock| (Tool::Tscap, *clock));
        let tools: Vec<_> = ours
            .chain(self.peers.iter().map(|peer| (*peer, first)))
            .collect();
        for &ring in &self.rings {
            for &snaplen in &self.snaplens {
                for &pace in &self.paces {
                    for &size in &self.sizes {
                        grid_points.extend(tools.iter().map(|&(tool, clock)| GridPoint {
                            tool,
                            clock,
                            size,
                            pace,
                            snaplen,
                            ring,
                        }));
                    }
                }
            }
        }
        grid_points
    }

    /// About how long it takes, s: each capture has a beginning and an end, and the
    /// costs are found out first.
    pub fn seconds(&self) -> f64 {
        const OURS: f64 = 0.15;
        const PEERS: f64 = 2.0;
        // Five captures, and six times half a million frames or fewer.
        const CALIBRATION: f64 = 2.0;
        let settings = self.len() / (self.clocks.len() + self.peers.len()).max(1);
        let ours = (settings * self.clocks.len()) as f64 * OURS;
        let peers = (settings * self.peers.len()) as f64 * PEERS;
        let sending = self.len() as f64 * self.duration.as_secs_f64();
        ours + peers + sending + CALIBRATION * (self.costs().len() * self.rounds as usize) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_over_in_its_time() {
        assert_eq!(Grid::quick().seconds().round(), 3.0);
        assert!(Grid::usual().seconds() < 100.0);
        let paper = Grid::paper();
        assert_eq!((paper.len(), paper.sizes.len()), (142 * 8 * 2, 142));
        assert!(paper.seconds() > 5_000.0);
    }

    #[test]
    fn every_combination_once() {
        let grid = Grid {
            sizes: vec![64, 128],
            snaplens: vec![96, 0],
            clocks: vec![StampSource::Ktime, StampSource::Tai],
            peers: vec![Tool::Tcpdump],
            ..Grid::quick()
        };
        let grid_points = grid.grid_points();
        assert_eq!((grid_points.len(), grid.len()), (12, 12));
        let turns = grid_points
            .iter()
            .take(4)
            .map(|grid_point| (grid_point.tool, grid_point.clock, grid_point.size));
        let (ktime, tai) = (StampSource::Ktime, StampSource::Tai);
        let expected = [
            (Tool::Tscap, ktime, 64),
            (Tool::Tscap, tai, 64),
            (Tool::Tcpdump, ktime, 64),
            (Tool::Tscap, ktime, 128),
        ];
        assert!(turns.eq(expected), "{grid_points:?}");
        let caplens: Vec<_> = grid_points.iter().map(GridPoint::caplen).collect();
        assert_eq!(caplens[3..9], [96, 96, 96, 64, 64, 64]);
    }

    #[test]
    fn costs_are_those_of_every_stamp_and_arrival() {
        let (ktime, tai) = (StampSource::Ktime, StampSource::Tai);
        assert_eq!(Grid::quick().costs(), [(ktime, Arrival::InBursts)]);
        let gap = Grid::paper().paces[0];
        let both = Grid {
            paces: vec![gap, Pace::FlatOut, gap],
            clocks: vec![ktime, tai],
            ..Grid::quick()
        };
        let (bursts, singly) = (Arrival::InBursts, Arrival::Singly);
        let expected = [
            (ktime, bursts),
            (ktime, singly),
            (tai, bursts),
            (tai, singly),
        ];
        assert_eq!(both.costs(), expected);
    }

    /// At line rate on 1 Gbit/s 488 bytes and a gap of 12 take 4 µs.
    #[test]
    fn what_cannot_be_sent_singly_is_sent_in_bulks() {
        let gap = Grid::paper().paces[0];
        for (size, arrival) in [
            (72, Arrival::InBursts),
            (487, Arrival::InBursts),
            (488, Arrival::Singly),
            (1200, Arrival::Singly),
        ] {
            assert_eq!(gap.arrival(size), arrival, "{size}");
        }
        assert_eq!(Pace::FlatOut.arrival(1500), Arrival::InBursts);
        let ktime = StampSource::Ktime;
        let both = [(ktime, Arrival::InBursts), (ktime, Arrival::Singly)];
        assert_eq!(Grid::paper().costs(), both);
    }

    #[test]
    fn paces_are_rates() {
        let gap = Pace::Gap {
            gap: 12,
            line: LineRate::GIGABIT,
        };
        assert_eq!(gap.rate(113).round(), 1e6);
        assert_eq!(Pace::FlatOut.rate(64), f64::INFINITY);
    }
}
