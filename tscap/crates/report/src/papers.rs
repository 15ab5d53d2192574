//! The papers' experiments in the order of the papers, beside their figures: [`papers_text`]
//! for a terminal, [`papers_page`] for a browser.
//!
//! Orosz & Skopkó: Multi-threaded Packet Timestamping for End-to-End QoS Evaluation (ICSNC
//! 2013); Skopkó: Loss Analysis of the Software-based Packet Capturing.

use maud::{Markup, html};

use super::figures::{self, Figure};
use super::html::{document, notice_list};
use super::layout::{Layout, Told};
use super::paper::{LOSSLESS, MACHINE};
use super::sweep::{self, first_session, last_session, sessions, tuning_sessions};
use super::table::{Table, columns};
use super::words::{notices, verdicts};
use super::{glossary, tables};
use tscap_base::text::numbers::grouped;
use tscap_lab::compare::schema::Comparison;
use tscap_lab::loss::schema::Sweep;
use tscap_results::machine::Machine;

/// Runs that are told beside the papers.
#[derive(Clone, Copy, Debug)]
pub struct Papers<'a> {
    /// Of stamps, for the paper of 2013.
    pub comparison: Option<&'a Comparison>,
    /// Of loss, for Skopkó's.
    pub sweep: Option<&'a Sweep>,
}

/// Tables, and where the conditions differ.
pub fn papers_text(papers: &Papers<'_>, layout: Layout) -> String {
    let mut told = Told::new(layout, &[]);
    if let Some(comparison) = papers.comparison {
        let tables = [
            Some(tables::beside_paper(comparison)),
            tables::losses(comparison),
        ];
        told.section("Orosz & Skopkó, 2013", &notices(comparison));
        tables
            .into_iter()
            .flatten()
            .for_each(|table| told.table(table));
        told.table(conditions(&comparison.about.machine));
        told.section("Where this differs", &stamp_differences(comparison));
    }
    if let Some(sweep) = papers.sweep {
        let tables = [Some(lossless()), sessions(sweep)];
        told.section("Skopkó, loss analysis", &sweep.warnings);
        tables
            .into_iter()
            .flatten()
            .for_each(|table| told.table(table));
        told.table(conditions(&sweep.about.machine));
        told.section("Where this differs", &loss_differences(sweep));
    }
    told.finish()
}

/// The same with the figures, as one HTML page that asks for nothing from elsewhere.
pub fn papers_page(papers: &Papers<'_>) -> String {
    let body = html! {
        h1 { "The papers' experiments on this machine" }
        @if let Some(comparison) = papers.comparison {
            (stamps(comparison))
        }
        @if let Some(sweep) = papers.sweep {
            (losses(sweep))
        }
        @if papers.comparison.is_some() {
            (glossary::comparison())
        } @else {
            (glossary::sweep())
        }
    };
    document("The papers' experiments on this machine", &body)
}

/// Tables I and II, Figs. 2 to 6.
fn stamps(comparison: &Comparison) -> Markup {
    let costs = figures::pattern_costs(comparison);
    let arrivals = figures::inter_arrivals(comparison);
    let of_pattern = |all: &[Figure], title: &str, pattern: &str| {
        let mut figures = all.iter();
        let figure = figures.find(|figure| figure.is_titled(title, pattern));
        figure.map(Figure::markup)
    };
    let cost = "Density of the cost of a stamp";
    let arrival = "Density of inter-arrival times";
    let shown = [
        (
            "Figure 2: cost of a stamp, pattern 1",
            of_pattern(&costs, cost, "voip"),
        ),
        (
            "Figure 3: inter-arrival times, pattern 1",
            of_pattern(&arrivals, arrival, "voip"),
        ),
        (
            "Figure 4: cost of a stamp, pattern 2",
            of_pattern(&costs, cost, "hd"),
        ),
        (
            "Figure 5: inter-arrival times, pattern 2",
            of_pattern(&arrivals, arrival, "hd"),
        ),
    ];
    html! {
        h2 { "Orosz & Skopkó, 2013: what a stamp costs" }
        (notice_list(&notices(comparison)))
        (crate::table::markup(&conditions(&comparison.about.machine)))
        h3 { "Where this differs" }
        ul {
            @for difference in stamp_differences(comparison) {
                li { (difference) }
            }
        }
        h3 { "Tables I and II" }
        (crate::table::markup(&tables::beside_paper(comparison)))
        @for (title, figure) in shown {
            h3 { (title) }
            (or_absent(figure))
        }
        h3 { "The memory of the overhead (section V.A)" }
        div.figures {
            @for figure in figures::autocorrelation(comparison) {
                (figure.markup())
            }
        }
        h3 { "Figure 6: loss against frame size (a) and gap (b)" }
        @let figures = figures::losses(comparison);
        @if figures.is_empty() {
            (or_absent(None))
        }
        div.figures {
            @for figure in figures {
                (figure.markup())
            }
        }
        h3 { "What the rounds say" }
        ul {
            @for verdict in verdicts(comparison, true) {
                li { (verdict) }
            }
        }
    }
}

/// The four sessions.
fn losses(sweep: &Sweep) -> Markup {
    let [snaplens, buffers] = tuning_sessions(sweep);
    html! {
        h2 { "Skopkó: where a capture loses frames" }
        (notice_list(&sweep.warnings))
        (crate::table::markup(&conditions(&sweep.about.machine)))
        (crate::table::markup(&sweep::environment(sweep)))
        h3 { "Where this differs" }
        ul {
            @for difference in loss_differences(sweep) {
                li { (difference) }
            }
        }
        h3 { "Session 1: kernel and application loss, and the load" }
        @let first = first_session(sweep);
        @if first.is_empty() {
            (or_absent(None))
        }
        div.figures {
            @for figure in first {
                (figure.markup())
            }
        }
        h3 { "Session 2: the snaplen" }
        (or_absent(snaplens.map(|figure| figure.markup())))
        h3 { "Session 3: the buffers" }
        (or_absent(buffers.map(|figure| figure.markup())))
        h3 { "Session 4: least against most tuned" }
        (or_absent(last_session(sweep).map(|figure| figure.markup())))
        h3 { "Smallest sizes without loss" }
        (crate::table::markup(&lossless()))
        @if let Some(sessions) = sessions(sweep) {
            (crate::table::markup(&sessions))
        }
    }
}

fn or_absent(figure: Option<Markup>) -> Markup {
    html! {
        @match figure {
            Some(figure) => div.figures { (figure) },
            None => p.note { "Not in this run: too few points or frames were measured for it." },
        }
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
    let received = match method.receive_cpu == method.sender_cpu {
        true => format!(
            "Frames are received on the sender's CPU {}, so that nothing can be lost before the \
             program: there the sender was another machine (--receive-cpu, or --paper).",
            method.sender_cpu
        ),
        false => format!(
            "Frames are received on CPU {}, and sent from CPU {}: there the sender was another \
             machine.",
            method.receive_cpu, method.sender_cpu
        ),
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

/// What Skopkó found.
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
    use tscap_lab::loss::fixtures;

    #[test]
    fn everything_stands_in_the_order_of_the_papers() {
        let (comparison, sweep) = (whole(), fixtures::sweep());
        let papers = Papers {
            comparison: Some(&comparison),
            sweep: Some(&sweep),
        };
        let page = papers_page(&papers);
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
        let text = papers_text(&papers, Layout::WHOLE);
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
        let page = papers_page(&papers);
        // One snaplen and one ring: neither can be compared, nor both together.
        assert_eq!(page.matches("Not in this run").count(), 3);
        assert!(!page.contains("Figure 2"));
        let text = papers_text(&papers, Layout::WHOLE);
        assert!(
            text.contains("received on the sender") || text.contains("are received on"),
            "{text}"
        );
        assert!(!text.contains("Orosz"), "{text}");
    }
}
