//! The papers' experiments in the order of the papers, beside their figures.
//!
//! Orosz & Skopkó: Multi-threaded Packet Timestamping for End-to-End QoS Evaluation (ICSNC
//! 2013); Skopkó: Loss Analysis of the Software-based Packet Capturing.

use super::compare::paper::{LOSSLESS, MACHINE};
use super::compare::words::{notices, verdicts};
use super::compare::{figures, tables};
use super::glossary;
use super::sweep::{self, first_session, last_session, sessions, tuning_sessions};
use tscap_base::text::numbers::grouped;
use tscap_document::{Document, Figure, INDENTED, Section, Shown, Table, columns};
use tscap_lab::compare::schema::Comparison;
use tscap_lab::loss::schema::Sweep;
use tscap_results::machine::Machine;

/// Above how a run is not like the paper's.
const DIFFERS: &str = "Where this differs";

/// Runs that are told beside the papers.
#[derive(Clone, Copy, Debug)]
pub struct Papers<'a> {
    /// Of stamps, for the paper of 2013.
    pub comparison: Option<&'a Comparison>,
    /// Of loss, for Skopkó's.
    pub sweep: Option<&'a Sweep>,
}

impl Papers<'_> {
    /// Tables, and where the conditions differ.
    pub fn document(&self) -> Document {
        let title = "The papers' experiments on this machine";
        let mut document = Document::new(title, title);
        if let Some(comparison) = self.comparison {
            add_stamps(&mut document, comparison);
            stamps(&mut document, comparison);
        }
        if let Some(sweep) = self.sweep {
            add_losses(&mut document, sweep);
            losses(&mut document, sweep);
        }
        let words = match self.comparison {
            Some(_) => glossary::comparison(),
            None => glossary::sweep(),
        };
        document.add(Shown::Page, Section::Words(words));
        document
    }
}

/// As text, without the figures.
fn add_stamps(document: &mut Document, comparison: &Comparison) {
    let tables = [
        Some(tables::beside_paper(comparison)),
        tables::losses(comparison),
        Some(conditions(&comparison.about.machine)),
    ];
    let tables = tables.into_iter().flatten().map(Section::Table);
    titled(document, "Orosz & Skopkó, 2013", notices(comparison));
    document.add_all(Shown::Text, tables);
    titled(document, DIFFERS, stamp_differences(comparison));
}

/// The same of losses.
fn add_losses(document: &mut Document, sweep: &Sweep) {
    let conditions = conditions(&sweep.about.machine);
    let tables = [Some(lossless()), sessions(sweep), Some(conditions)];
    let tables = tables.into_iter().flatten().map(Section::Table);
    titled(document, "Skopkó, loss analysis", sweep.warnings.clone());
    document.add_all(Shown::Text, tables);
    titled(document, DIFFERS, loss_differences(sweep));
}

fn titled(document: &mut Document, title: &str, sentences: Vec<String>) {
    let section = Section::Titled(title.to_owned(), sentences);
    document.add(Shown::Text, section);
}

/// A title of the page below the name of the paper.
fn subtitle(document: &mut Document, title: &str) {
    document.add(Shown::Page, Section::Subtitle(title.to_owned()));
}

/// Conditions and differences, before the figures.
fn preamble(
    document: &mut Document,
    notices: Vec<String>,
    tables: impl IntoIterator<Item = Table>,
    differences: Vec<String>,
) {
    document.add(Shown::Page, Section::Notices(notices));
    let tables = tables.into_iter();
    document.add_all(Shown::Page, tables.map(Section::Table));
    subtitle(document, DIFFERS);
    document.add(Shown::Page, Section::Sentences(INDENTED, differences));
}

/// Tables I and II, Figs. 2 to 6.
fn stamps(document: &mut Document, comparison: &Comparison) {
    document.page_title("Orosz & Skopkó, 2013: what a stamp costs");
    let conditions = [conditions(&comparison.about.machine)];
    let differences = stamp_differences(comparison);
    preamble(document, notices(comparison), conditions, differences);
    subtitle(document, "Tables I and II");
    let beside = tables::beside_paper(comparison);
    document.add(Shown::Page, Section::Table(beside));
    let mut costs = figures::pattern_costs(comparison);
    let mut arrivals = figures::inter_arrivals(comparison);
    let of_pattern = |all: &mut Vec<Figure>, title: &str, pattern: &str| {
        let mut figures = all.iter();
        let at = figures.position(|figure| figure.is_titled(title, pattern))?;
        Some(all.swap_remove(at))
    };
    let cost = "Density of the cost of a stamp";
    let arrival = "Density of inter-arrival times";
    let shown = [
        (
            "Figure 2: cost of a stamp, pattern 1",
            of_pattern(&mut costs, cost, "voip"),
        ),
        (
            "Figure 3: inter-arrival times, pattern 1",
            of_pattern(&mut arrivals, arrival, "voip"),
        ),
        (
            "Figure 4: cost of a stamp, pattern 2",
            of_pattern(&mut costs, cost, "hd"),
        ),
        (
            "Figure 5: inter-arrival times, pattern 2",
            of_pattern(&mut arrivals, arrival, "hd"),
        ),
    ];
    for (title, figure) in shown {
        subtitle(document, title);
        document.add(Shown::Page, or_absent(figure));
    }
    subtitle(document, "The memory of the overhead (section V.A)");
    let memory = figures::autocorrelation(comparison);
    document.add(Shown::Page, Section::figures(memory));
    subtitle(
        document,
        "Figure 6: loss against frame size (a) and gap (b)",
    );
    of_session(document, figures::losses(comparison));
    subtitle(document, "What the rounds say");
    let verdicts = verdicts(comparison, true);
    document.add(Shown::Page, Section::Sentences(INDENTED, verdicts));
}

fn losses(document: &mut Document, sweep: &Sweep) {
    document.page_title("Skopkó: where a capture loses frames");
    let tables = [conditions(&sweep.about.machine), sweep::environment(sweep)];
    let differences = loss_differences(sweep);
    preamble(document, sweep.warnings.clone(), tables, differences);
    subtitle(
        document,
        "Session 1: kernel and application loss, and the load",
    );
    of_session(document, first_session(sweep));
    let [snaplens, buffers] = tuning_sessions(sweep);
    let sessions_of = [
        ("Session 2: the snaplen", snaplens),
        ("Session 3: the buffers", buffers),
        ("Session 4: least against most tuned", last_session(sweep)),
    ];
    for (title, figure) in sessions_of {
        subtitle(document, title);
        document.add(Shown::Page, or_absent(figure));
    }
    subtitle(document, "Smallest sizes without loss");
    let tables = [Some(lossless()), sessions(sweep)];
    let tables = tables.into_iter().flatten();
    document.add_all(Shown::Page, tables.map(Section::Table));
}

/// Figures, of which there may be none.
fn of_session(document: &mut Document, figures: Vec<Figure>) {
    if figures.is_empty() {
        document.add(Shown::Page, or_absent(None));
    }
    document.add(Shown::Page, Section::figures(figures));
}

fn or_absent(figure: Option<Figure>) -> Section {
    match figure {
        Some(figure) => Section::figures([figure]),
        None => Section::Remark(
            "Not in this run: too few points or frames were measured for it.".to_owned(),
        ),
    }
}

/// The paper's machine and this one.
fn conditions(machine: &Machine) -> Table {
    let row = |what: &str, here: String| vec![what.to_owned(), here];
    let virtualisation = machine.virtualisation.as_deref();
    let rows = vec![
        row(
            "papers",
            format!("{MACHINE}; frames from an FPGA at 1 Gbit/s"),
        ),
        row(
            "here",
            format!(
                "{}, {} CPUs online, {}, Linux {}; virtualisation: {}; frames from a sender of the \
                 kernel over a veth pair",
                machine.cpu,
                machine.cpus,
                machine.driver,
                machine.kernel.trim_start_matches("Linux "),
                virtualisation.unwrap_or("none"),
            ),
        ),
        row(
            "load here",
            format!(
                "{:.1} before the run; {:.1} % of the CPUs' time stolen",
                machine.load[0], machine.steal_percent
            ),
        ),
    ];
    Table::figures("Conditions", &columns("where | what"), rows).words(&[0, 1])
}

fn stamp_differences(comparison: &Comparison) -> Vec<String> {
    let frames = comparison
        .subjects
        .iter()
        .flat_map(|subject| &subject.precision);
    let fewest = |pattern: &str| {
        let of = frames.clone().filter(|it| it.pattern == pattern);
        of.map(|it| it.sent).min().map_or("no".to_owned(), grouped)
    };
    let loss = match &comparison.method.loss {
        Some(method) => format!(
            "Fig. 6: {} frames a round as there, in {} rounds; received on CPU {}, sent from CPU {}. \
             The text of the paper names neither sizes nor gaps.",
            grouped(method.frames.into()),
            method.rounds,
            method.receive_cpu,
            method.sender_cpu
        ),
        None => {
            "Fig. 6: one burst of 60,000 frames a point, received on the sender's CPU, where a \
                 more expensive stamp slows the sender instead of losing frames (20,000 frames a round \
                 there)."
                .to_owned()
        }
    };
    vec![
        "The paper's stamps are made in the stack (__net_timestamp), ours in a program at native XDP, \
         before it: ktime_get_real there is nearest to tai here, its offloaded TSC to tsc."
            .to_owned(),
        "Its checkpoints are bare RDTSC instructions; ours are readings of CLOCK_MONOTONIC, whose cost \
         is subtracted and whose noise stands beside."
            .to_owned(),
        "Interrupts are on during ours and off during its multi-threaded stamps: --irqs-off measures \
         both."
            .to_owned(),
        format!(
            "Frames of each stamp: {} of pattern 1 and {} of pattern 2 at least; the paper does not \
             say how many (--paper sends 20,000 of each a round).",
            fewest("voip"),
            fewest("hd")
        ),
        loss,
    ]
}

fn loss_differences(sweep: &Sweep) -> Vec<String> {
    let method = &sweep.method;
    let received = if method.receive_cpu == method.sender_cpu {
        format!(
            "Frames are received on the sender's CPU {}, so that nothing can be lost before the \
         program: there the sender was another machine (--receive-cpu, or --paper).",
            method.sender_cpu
        )
    } else {
        format!(
            "Frames are received on CPU {}, and sent from CPU {}: there the sender was another \
         machine.",
            method.receive_cpu, method.sender_cpu
        )
    };
    let unreached = sweep
        .points
        .iter()
        .filter(|point| !point.is_reached())
        .count();
    let programs = match &method.peers[..] {
        [] => {
            "No dumpcap, the paper's subject, was measured (--peer dumpcap, or --paper).".to_owned()
        }
        peers => format!("Beside tscap: {}.", peers.join("; ")),
    };
    vec![
        received,
        programs,
        format!(
            "{} s a point; at least 5 s there. {} of {} points were not sent at 99 % of the rate asked \
             for, and are in no curve; there hardware kept the rate.",
            method.point_seconds,
            grouped(unreached as u64),
            grouped(sweep.points.len() as u64)
        ),
        "Its buffers are those of the kernel (Tables I and II: `tscap doctor` shows this machine's) and \
         dumpcap's; here each program has as much memory as tscap's rings together."
            .to_owned(),
        "The kernel's load is by its ticks, as mpstat shows it; a kernel thread that receives counts as \
         system."
            .to_owned(),
    ]
}

fn lossless() -> Table {
    let rows = LOSSLESS.iter().map(|row| row.map(str::to_owned).to_vec());
    Table::figures(
        "In the paper: dumpcap at 1 Gbit/s, gap 12",
        &columns("session | snaplen | buffers | what was lost"),
        rows.collect(),
    )
    .words(&[0, 1, 2, 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::papers::whole;
    use tscap_document::Layout;
    use tscap_lab::loss::fixtures;

    #[test]
    fn everything_stands_in_the_order_of_the_papers() {
        let (comparison, sweep) = (whole(), fixtures::sweep());
        let papers = Papers {
            comparison: Some(&comparison),
            sweep: Some(&sweep),
        };
        let page = papers.document().page();
        let parts = [
            "Tables I and II",
            "Figure 2: ",
            "Density of the cost of a stamp, voip",
            "Figure 3: ",
            "Density of inter-arrival times, voip",
            "Figure 4: ",
            "Density of the cost of a stamp, hd",
            "Figure 5: ",
            "Density of inter-arrival times, hd",
            "Figure 6: ",
            "Loss against frame size",
            "Loss against the gap between frames",
            "Session 1: ",
            "Kernel and application: ",
            "CPU load: ",
            "Session 2: ",
            "Loss over the snaplen",
            "Session 3: ",
            "Session 4: ",
            "most tuned",
            "Smallest frame sizes without loss",
        ];
        let mut at = 0;
        for part in parts {
            let next = page[at..].find(part);
            at += next.unwrap_or_else(|| panic!("{part} is not behind the others"));
        }
        for (theirs, ours) in [("195.3", "here"), ("352", "lossless from")] {
            assert!(page.contains(theirs) && page.contains(ours), "{theirs}");
        }
        for part in ["http:", "https:", "src=", "url(", "<script"] {
            assert!(!page.contains(part), "{part}");
        }
        let text = papers.document().text(Layout::WHOLE);
        for part in [
            "Orosz & Skopkó, 2013",
            "Skopkó, loss analysis",
            "Where this differs",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// Of a run without some of it the page says so.
    #[test]
    fn what_a_run_does_not_have_is_said() {
        let mut sweep = fixtures::sweep();
        sweep.points.retain(|point| point.snaplen == 96);
        let papers = Papers {
            comparison: None,
            sweep: Some(&sweep),
        };
        let page = papers.document().page();
        // One snaplen and one ring: neither can be compared, nor both together.
        assert_eq!(page.matches("Not in this run").count(), 3);
        assert!(!page.contains("Figure 2"));
        let text = papers.document().text(Layout::WHOLE);
        assert!(
            text.contains("received on the sender") || text.contains("are received on"),
            "{text}"
        );
        assert!(!text.contains("Orosz"), "{text}");
    }
}
