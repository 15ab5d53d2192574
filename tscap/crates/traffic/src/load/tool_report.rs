//! What a program says of the frames at its end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::Tool;
use tscap_file::accounting::Outcome;

/// Where a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before the program saw it.
    Before,
    /// Between kernel and program: no room, or no copy.
    Ring,
    /// On the way to the file.
    Writer,
}

/// Frames lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The program's own name of it.
    pub name: String,
    /// Where that is.
    pub stage: Stage,
    /// Frames that were lost for it.
    pub frames: u64,
}

/// What a program says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReport {
    /// Frames that reached it or its buffer, also those lost after that.
    pub seen: u64,
    /// Frames that it took out of its buffer and, it says, wrote.
    pub written: u64,
    /// Frames of those seen that its filter rejected; only tscap counts them.
    pub filtered: u64,
    /// The reasons that it counts.
    pub losses: Vec<Loss>,
}

impl ToolReport {
    /// Frames lost at a stage.
    pub fn lost(&self, stage: Stage) -> u64 {
        let losses = self.losses.iter().filter(|loss| loss.stage == stage);
        losses.map(|loss| loss.frames).sum()
    }

    /// Understands the lines of a program that has ended; `None` if what is
    /// needed is not among them.
    pub(super) fn understand(tool: Tool, lines: &[String]) -> Option<Self> {
        match tool {
            Tool::Tscap => Self::of_tscap(lines),
            Tool::Tcpdump => {
                // `pcap_stats` on Linux: what is received includes what is dropped.
                let written = before(lines, " packets captured")?;
                let dropped = before(lines, " packets dropped by kernel")?;
                let seen = before(lines, " packets received by filter")?;
                Some(Self::new(
                    seen,
                    written,
                    &[("kernel", Stage::Ring, dropped)],
                ))
            }
            Tool::Dumpcap => Self::of_dumpcap(lines),
            Tool::NetsniffNg => {
                let written = before(lines, "  packets incoming")?;
                // With those dropped (`sock_rx_net_stats`, netsniff-ng's sock.c).
                let unread = lines.iter().find_map(|line| {
                    let (_, from) = line.split_once("packets incoming (")?;
                    number(from)
                });
                let dropped = before(lines, "  packets failed filter")?;
                let losses = [("out of space", Stage::Ring, dropped)];
                Some(Self::new(written + unread?, written, &losses))
            }
            Tool::Xdpdump => {
                let written = before(lines, " packets captured")?;
                let dropped = before(lines, " packets dropped by perf ring")?;
                let losses = [("perf ring", Stage::Ring, dropped)];
                Some(Self::new(written + dropped, written, &losses))
            }
        }
    }

    fn new(seen: u64, written: u64, losses: &[(&str, Stage, u64)]) -> Self {
        let losses = losses.iter().map(|&(name, stage, frames)| Loss {
            name: name.to_owned(),
            stage,
            frames,
        });
        Self {
            seen,
            written,
            filtered: 0,
            losses: losses.collect(),
        }
    }

    /// What its filter rejected is an outcome, and no loss.
    fn of_tscap(lines: &[String]) -> Option<Self> {
        const FILTERED: &str = Outcome::Filtered.entry().name;
        let summary = lines.iter().find_map(|line| event(line, "summary"))?;
        let count = |value: &Value| value.as_u64();
        let outcomes = summary["outcomes"].as_object()?;
        let others = outcomes.iter().filter(|(name, _)| *name != FILTERED);
        let losses = others.filter_map(|(name, frames)| {
            let outcome = Outcome::ALL
                .into_iter()
                .find(|it| it.entry().name == name)?;
            let stage = if outcome.entry().is_in_kernel() {
                Stage::Ring
            } else {
                Stage::Writer
            };
            Some((name.as_str(), stage, count(frames)?))
        });
        let losses: Vec<_> = losses.filter(|(.., frames)| *frames > 0).collect();
        let [seen, written] = ["seen", "written"].map(|name| count(&summary[name]));
        Some(Self {
            filtered: outcomes.get(FILTERED).and_then(count).unwrap_or(0),
            ..Self::new(seen?, written?, &losses)
        })
    }

    /// `Packets received/dropped on interface 'rx': 7/3 (pcap:2/dumpcap:1/flushed:0/…)`:
    /// what is received leaves out what is dropped (`report_packet_drops`, dumpcap.c).
    fn of_dumpcap(lines: &[String]) -> Option<Self> {
        let line = lines
            .iter()
            .rfind(|line| line.contains("received/dropped"))?;
        let (_, counts) = line.split_once("': ")?;
        let (received, rest) = counts.split_once('/')?;
        let (_, reasons) = rest.split_once('(')?;
        let reason = |name: &str| {
            let (_, from) = reasons.split_once(name)?;
            number(from.strip_prefix(':')?)
        };
        let written = received.parse().ok()?;
        let losses = [
            ("pcap", Stage::Ring, reason("pcap")?),
            ("dumpcap", Stage::Writer, reason("dumpcap")?),
            ("flushed", Stage::Writer, reason("flushed")?),
        ];
        let lost: u64 = losses.iter().map(|(.., frames)| frames).sum();
        Some(Self::new(written + lost, written, &losses))
    }
}

/// The JSON object in a line of tscap's, if it is this event.
pub(super) fn event(line: &str, name: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    (value["event"] == name).then_some(value)
}

/// The number before `what`, the last time that it is said.
fn before(lines: &[String], what: &str) -> Option<u64> {
    lines.iter().rev().find_map(|line| {
        let (text, _) = line.split_once(what)?;
        text.trim().parse().ok()
    })
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(tool: Tool, text: &str) -> Option<(u64, u64, [u64; 3])> {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let said = ToolReport::understand(tool, &lines)?;
        let lost = [Stage::Before, Stage::Ring, Stage::Writer].map(|stage| said.lost(stage));
        Some((said.seen, said.written, lost))
    }

    /// The texts are the programs' own: tcpdump 4.99, dumpcap 4.0, netsniff-ng 0.6.8,
    /// xdpdump 1.3.
    #[test]
    fn each_program_is_understood() {
        let texts = [
            (
                Tool::Tscap,
                r#"{"event":"ready"}
{"event":"summary","seen":10,"written":6,"outcomes":{"ring_full":3,"write_failed":1,"no_ring":0}}"#,
                (10, 6, [0, 3, 1]),
            ),
            (
                Tool::Tcpdump,
                "tcpdump: listening on vb, link-type EN10MB (Ethernet)\n6 packets captured\n\
                 10 packets received by filter\n4 packets dropped by kernel",
                (10, 6, [0, 4, 0]),
            ),
            (
                Tool::Dumpcap,
                "Capturing on 'vb'\nFile: /dev/shm/b.dumpcap\nPackets captured: 6\n\
                 Packets received/dropped on interface 'vb': 6/4 \
                 (pcap:3/dumpcap:1/flushed:0/ps_ifdrop:0) (60.0%)",
                (10, 6, [0, 3, 1]),
            ),
            (
                Tool::NetsniffNg,
                "Running! Hang up with ^C!\n\n           6  packets incoming (4 unread on exit)\n\
                 \x20          6  packets passed filter\n\
                 \x20          4  packets failed filter (out of space)\n\
                 \x20   66.6667% packet droprate",
                (10, 6, [0, 4, 0]),
            ),
            (
                Tool::Xdpdump,
                "\n6 packets captured\n4 packets dropped by perf ring",
                (10, 6, [0, 4, 0]),
            ),
        ];
        for (tool, text, meant) in texts {
            assert_eq!(understood(tool, text), Some(meant), "{tool:?}");
            assert_eq!(understood(tool, "killed"), None, "{tool:?}");
        }
    }

    #[test]
    fn what_was_filtered_is_no_loss() {
        let text =
            r#"{"event":"summary","seen":10,"written":6,"outcomes":{"ring_full":1,"filtered":3}}"#;
        assert_eq!(understood(Tool::Tscap, text), Some((10, 6, [0, 1, 0])));
        let said = ToolReport::understand(Tool::Tscap, &[text.to_owned()]).unwrap();
        assert_eq!(said.filtered, 3);
    }

    #[test]
    fn the_last_word_counts() {
        let text = "1 packets captured\n1 packets dropped by perf ring\n\
                    8 packets captured\n2 packets dropped by perf ring";
        assert_eq!(understood(Tool::Xdpdump, text), Some((10, 8, [0, 2, 0])));
    }
}
