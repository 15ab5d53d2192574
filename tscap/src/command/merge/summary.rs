//! What was joined, for people.

use std::fmt::Write as _;

use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped, span};
use tscap_cli::MergePlan;
use tscap_file::pcapng::{CaptureReport, InputReport, Merged, Neighbours};

/// Files that are listed.
const MOST_LISTED: usize = 64;

pub(super) fn text(merged: &Merged, plan: &MergePlan) -> String {
    let mut text = format!(
        "{}: {} of {} on {}, in order of time\n",
        plan.output.display(),
        counted(merged.packets, "frame"),
        counted(merged.inputs.len() as u64, "file"),
        counted(merged.interfaces.into(), "interface"),
    );
    for input in merged.inputs.iter().take(MOST_LISTED) {
        let _ = writeln!(
            text,
            "  {}: {}, {}",
            input.file,
            counted(input.packets, "frame"),
            bound(input)
        );
    }
    if merged.inputs.len() > MOST_LISTED {
        let more = (merged.inputs.len() - MOST_LISTED) as u64;
        let _ = writeln!(
            text,
            "  and {}: --json lists them",
            counted(more, "more file")
        );
    }
    for capture in &merged.captures {
        tell_capture(capture, &mut text);
    }
    if merged.neighbours.between_files > 0 {
        tell_neighbours(&merged.neighbours, &mut text);
    }
    text
}

fn bound(input: &InputReport) -> String {
    match input.host_bound_ns {
        Some(ns) => match (&input.reference, input.reference_bound_ns) {
            (Some(reference), Some(more)) => format!(
                "± {} of {}",
                span(ns.saturating_add(more)),
                escaped(reference)
            ),
            (Some(reference), None) => format!("without bounds against {}", escaped(reference)),
            (None, _) => format!("± {} of its host's clock", span(ns)),
        },
        None if input.packets == 0 => "nothing to bound".into(),
        None => "without bounds".into(),
    }
}

fn tell_capture(capture: &CaptureReport, text: &mut String) {
    let given = u64::from(capture.writers) - capture.missing.len() as u64;
    let _ = write!(
        text,
        "  {} of {} of one capture",
        grouped(given),
        counted(capture.writers.into(), "writer")
    );
    match capture.totals {
        Some(totals) => {
            let _ = writeln!(
                text,
                ": {} seen, {} written, {} not written",
                grouped(totals.seen),
                grouped(totals.written),
                grouped(totals.outcomes.total())
            );
            let causes = totals.outcomes.entries().filter(|(_, count)| *count > 0);
            for (entry, count) in causes {
                let _ = writeln!(text, "    {}: {}", entry.name, grouped(count));
            }
        }
        None => *text += "\n",
    }
}

fn tell_neighbours(neighbours: &Neighbours, text: &mut String) {
    let Neighbours {
        between_files,
        undecided,
        against_raw,
        without_bounds,
        of_two_hosts,
    } = *neighbours;
    let pairs = |count| counted(count, "pair");
    let _ = writeln!(
        text,
        "  {} of neighbours from different files:\n    \
         the bounds do not decide the order of {}",
        pairs(between_files),
        grouped(undecided)
    );
    for (count, what) in [
        (against_raw, "stand against the order of their raw stamps"),
        (without_bounds, "have a file without bounds"),
        (
            of_two_hosts,
            "are of two clocks: they go by both bounds against UTC, or the reference;\n    \
             where one is not known, they are not decided",
        ),
    ] {
        if count > 0 {
            let _ = writeln!(text, "    {} {what}", grouped(count));
        }
    }
}

/// What is not as it should be.
pub(super) fn warnings(merged: &Merged) -> String {
    let mut text = String::new();
    let mut warn = |what: String| {
        let _ = writeln!(text, "warning: {what}");
    };
    for input in &merged.inputs {
        let file = &input.file;
        if input.damage.is_torn_end() {
            warn(format!(
                "{file} ends within a block: what comes before it was merged"
            ));
        } else if !input.is_whole {
            let what = input.damage.lines().join("\n  ");
            warn(format!("{file}: not in the copy: {what}"));
        }
        if input.disordered > 0 {
            let back = counted(input.disordered, "frame");
            warn(format!(
                "{file} is not in order of time: {back} earlier than the one before; \
                 nor is the copy there"
            ));
        }
        if input.host_bound_ns.is_none() && input.packets > 0 {
            warn(format!(
                "{file} states no bounds of its times at its end: nobody can tell which of \
                 its frames came before those of other files"
            ));
        }
        for it in &input.contradictions {
            warn(format!(
                "the account of {} in {file} does not add up: {} seen, {} written, {} not \
                 written, and {} in the file",
                it.interface,
                grouped(it.seen),
                grouped(it.written),
                grouped(it.not_written),
                counted(it.packets, "frame")
            ));
        }
    }
    for capture in &merged.captures {
        for writer in &capture.missing {
            warn(format!(
                "the file of writer {writer} of {} is missing: the account is of the others",
                capture.writers
            ));
        }
        for file in &capture.without_account {
            warn(format!(
                "{file} has no account at its end, as when the capture was killed: that of the \
                 whole is not known"
            ));
        }
        if capture.adds_up == Some(false) {
            warn("the account of the capture does not add up: please report this".into());
        }
    }
    text
}
