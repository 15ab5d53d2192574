//! The account at the end, for people.

use std::fmt::Write as _;

use tscap_base::text::numbers::{counted, grouped, signed, size, span};
use tscap_capture::{
    ClockSummary, DirectionSummary, DiskSummary, FilesSummary, FilterSummary, InterfaceSummary,
    Progress, Summary,
};
use tscap_clock::read_order;
use tscap_file::accounting::Outcomes;
use tscap_file::pcapng::HardwareStatistics;
use tscap_host::cpu_list;
use tscap_references::ReferenceSummary;
use tscap_utc::UtcBounds;

/// So many interfaces have a line; of more those with the most frames.
const MOST_LINES: usize = 20;

pub(super) const DOES_NOT_ADD_UP: &str =
    "  DOES NOT ADD UP: frames are missing from this account; please report this";
pub(super) const STACK_SAW_NOTHING: &str =
    "  --tap: frames ended here, the network stack saw nothing of them";

pub(super) fn one_line(summary: &Summary) -> String {
    let mut line = format!(
        "{} seen = {} written{}",
        summary.seen,
        summary.written,
        on_disk(summary)
    );
    for (outcome, count) in summary.outcomes.entries() {
        if count > 0 {
            let _ = write!(line, " + {count} {}", outcome.name);
        }
    }
    if summary.tap {
        line += "; the network stack saw nothing";
    }
    if !summary.adds_up {
        line += "  DOES NOT ADD UP";
    }
    line
}

/// The counts while it runs, in one line. Frames that are on their way to the file have no
/// outcome yet.
pub(super) fn so_far(now: &Progress) -> String {
    let mut outcomes = Outcomes::default();
    for interface in &now.account.interfaces {
        outcomes += interface.outcomes;
    }
    let mut line = format!(
        "{:.3} s: {} seen, {} written",
        now.seconds,
        grouped(now.seen),
        grouped(now.written)
    );
    for (outcome, count) in outcomes.entries().filter(|(_, count)| *count > 0) {
        let _ = write!(line, ", {} {}", grouped(count), outcome.name);
    }
    line
}

/// In several lines, with what else there is to know. `is_view`: the frames were only
/// looked at.
pub(super) fn whole(summary: &Summary, is_view: bool) -> String {
    let (seconds, reason) = (summary.seconds, summary.stopped_by.reason());
    let (file, length) = (&summary.file, size(summary.bytes_written));
    let mut lines = vec![if is_view {
        format!("none was kept: {seconds:.3} s, {reason}")
    } else {
        format!("{file}: {length} in {seconds:.3} s, {reason}")
    }];
    let kept = if is_view { "counted" } else { "written" };
    lines.extend(summary.filter.as_ref().map(|filter| {
        let FilterSummary {
            expression,
            compiler,
        } = filter;
        format!("  filter {expression:?} ({compiler})")
    }));
    if summary.tap {
        lines.push(STACK_SAW_NOTHING.into());
    }
    let count = |number, name, note: &str| format!("{:>15} {name}{note}", grouped(number));
    lines.push(count(summary.seen, "seen", &by_direction(summary)));
    lines.push(count(summary.written, kept, on_disk(summary)));
    for (outcome, number) in summary.outcomes.entries() {
        if number > 0 {
            let meaning = format!(" ({})", outcome.meaning);
            lines.push(count(number, outcome.name, &meaning));
        }
    }
    lines.push(if summary.adds_up {
        format!("  seen = {kept} + every named outcome, exactly")
    } else {
        DOES_NOT_ADD_UP.into()
    });
    lines.extend(summary.off_cpu.map(|frames| match frames {
        0 => "  all of them came in on the CPUs given by --rx-cpu".into(),
        frames => off_cpu(frames),
    }));
    lines.extend(several_writers(summary));
    lines.extend(merged(summary));
    lines.extend(summary.priority.map(|it| {
        let (priority, time) = (it.priority, span(it.rested_ns));
        let rests = counted(it.rests, "time");
        format!("  in real time (priority {priority}); rested for others {rests}, {time} in all")
    }));
    lines.extend(summary.files.iter().flat_map(several_files));
    lines.extend(summary.disk.filter(|it| it.spilled_bytes > 0).map(|disk| {
        let (spilled, pause) = (size(disk.spilled_bytes), span(disk.longest_pause_ns));
        format!("  {spilled} by way of the page cache: the disk took up to {pause} for a write")
    }));
    lines.extend(of_each(&summary.interfaces));
    lines.extend(summary.interfaces.iter().filter_map(missed));
    lines.extend(summary.interfaces.iter().filter_map(hardware_stamps));
    lines.extend(clock(summary));
    lines.join("\n")
}

/// Frames that came in elsewhere than they were meant to.
pub(super) fn off_cpu(frames: u64) -> String {
    let frames = grouped(frames);
    format!("  {frames} of them came in on other CPUs than --rx-cpu gives")
}

/// What an interface had to leave out itself.
pub(super) fn missed(interface: &InterfaceSummary) -> Option<String> {
    let missed = interface.ifdrop.filter(|missed| *missed > 0)?;
    let (name, missed) = (interface.whole_name(), counted(missed, "frame"));
    Some(format!("  {name} itself missed {missed} before XDP"))
}

/// What is to be known of the frames that were written.
pub(super) fn on_disk(summary: &Summary) -> &'static str {
    match summary.disk {
        Some(DiskSummary { has_all: false, .. }) => " (not known to be on the disk)",
        _ => "",
    }
}

/// A line for each interface, where there are several.
fn of_each(interfaces: &[InterfaceSummary]) -> Vec<String> {
    let line = |name: &str, seen, written, not| {
        let [seen, written, not] = [seen, written, not].map(grouped);
        format!("  {name}: {seen} seen, {written} written, {not} not")
    };
    let of =
        |it: &InterfaceSummary| line(&it.whole_name(), it.seen, it.written, it.outcomes.total());
    if interfaces.len() <= 1 {
        return Vec::new();
    }
    if interfaces.len() <= MOST_LINES {
        return interfaces.iter().map(of).collect();
    }
    let mut interfaces: Vec<_> = interfaces.iter().collect();
    interfaces.sort_by_key(|it| std::cmp::Reverse(it.seen));
    let (most, others) = interfaces.split_at(MOST_LINES);
    let mut lines: Vec<_> = most.iter().map(|it| of(it)).collect();
    let others_are = format!("{} others", grouped(others.len() as u64));
    lines.push(line(
        &others_are,
        others.iter().map(|it| it.seen).sum(),
        others.iter().map(|it| it.written).sum(),
        others.iter().map(|it| it.outcomes.total()).sum(),
    ));
    lines
}

/// The hardware stamps of an interface's frames, where these were taken.
fn hardware_stamps(interface: &InterfaceSummary) -> Option<String> {
    let hardware = interface.hardware.as_ref()?;
    let HardwareStatistics {
        frames,
        without,
        bound_ns,
    } = hardware.frames;
    let mut line = format!(
        "  {}: hardware stamps on {} of {} received",
        interface.whole_name(),
        grouped(frames.with),
        counted(frames.with + without, "frame"),
    );
    for (number, what) in [
        (frames.unconverted, "not converted"),
        (frames.ambiguous, "without a bound"),
    ] {
        if number > 0 {
            let _ = write!(line, ", {} {what}", grouped(number));
        }
    }
    if let Some(delay) = &hardware.delay {
        let of = |ns| span(u64::try_from(ns).unwrap_or(0));
        let _ = write!(
            line,
            "\n  from there to tscap's stamp: median {}, 99 % within {}, at most {}",
            span(delay.median_ns),
            span(delay.p99_ns),
            of(delay.greatest_ns),
        );
        if let Some(bound_ns) = bound_ns {
            let _ = write!(line, ", ±{}", span(bound_ns));
        }
    }
    Some(line)
}

/// How many frames went each way, where both are captured.
fn by_direction(summary: &Summary) -> String {
    let [one, other] = summary.directions.as_slice() else {
        return String::new();
    };
    let part = |it: &DirectionSummary| format!("{} {}", grouped(it.totals.seen), it.direction);
    format!(" ({}, {})", part(one), part(other))
}

/// A line for each of several writers.
fn several_writers(summary: &Summary) -> Vec<String> {
    let lines = summary.writers.iter().map(|it| {
        let [seen, written, not] = [
            it.totals.seen,
            it.totals.written,
            it.totals.outcomes.total(),
        ]
        .map(grouped);
        let (file, cpus) = (&it.file, cpu_list::list(&it.cpus));
        format!("  {file} (CPUs {cpus}): {seen} seen, {written} written, {not} not")
    });
    lines.collect()
}

/// What makes one file of those of several writers.
pub(super) fn merged(summary: &Summary) -> Option<String> {
    let (writers, whole) = (&summary.writers, &summary.file);
    let parts: Vec<_> = writers.iter().map(|it| it.file.as_str()).collect();
    let is_one_each = !parts.is_empty() && summary.files.is_none();
    is_one_each.then(|| {
        let parts = parts.join(" ");
        format!("  one file of them: tscap merge {parts} -w {whole}")
    })
}

fn several_files(files: &FilesSummary) -> Vec<String> {
    let mut lines = vec![format!(
        "  in {}; from one to the next within {}",
        counted(files.written, "file"),
        span(files.longest_cut_ns)
    )];
    if files.removed > 0 {
        lines.push(format!(
            "  removed of them: {} with {}",
            counted(files.removed, "file"),
            counted(files.frames_removed, "frame")
        ));
    }
    if files.replaced > 0 {
        let replaced = counted(files.replaced, "file");
        lines.push(format!("  replaced: {replaced} of an earlier time"));
    }
    lines.extend(files.commands.as_ref().map(|commands| {
        format!(
            "  -z: {} succeeded, {} failed, {} not ended",
            grouped(commands.succeeded),
            grouped(commands.failed),
            grouped(commands.unfinished)
        )
    }));
    lines
}

fn clock(summary: &Summary) -> Vec<String> {
    let clock = &summary.clock;
    let mut lines = vec![format!(
        "clock {} by {}, {} read (in the kernel, not on the wire):",
        clock.source,
        clock.path,
        read_order(clock.ordered)
    )];
    match &clock.reference {
        Some(reference) => lines.extend(by_reference(reference, clock.host_bound_ns)),
        None => lines.extend([format!(
            "  stamps within ±{} ns of this host's clock",
            clock.host_bound_ns
        )]),
    }
    if clock.reference.is_none() {
        lines.extend(to_utc(clock));
    }
    if clock.steps > 0 {
        let segments = clock.segments_forgotten + clock.segments.len() as u64;
        lines.push(format!(
            "  the clock was set {}: {}",
            counted(clock.steps, "time"),
            counted(segments, "segment")
        ));
    }
    if clock.ambiguous > 0 {
        let stamps = counted(clock.ambiguous, "stamp");
        lines.push(format!(
            "  {stamps} without a bound: at a step or a jump, or after a stall"
        ));
    }
    if clock.bound_raised > 0 {
        let times = counted(clock.bound_raised, "time");
        lines.push(format!(
            "  the bound was raised {times} for what interrupted readings may hide"
        ));
    }
    if clock.segments_forgotten > 0 {
        let segments = counted(clock.segments_forgotten, "segment");
        lines.push(format!(
            "  not told here, as there were too many: the first {segments}"
        ));
    }
    let order = &clock.order;
    if order.stamp_decreases > 0 {
        lines.push(format!(
            "  {} decreased, by {} ns at most",
            counted(order.stamp_decreases, "stamp"),
            grouped(order.largest_decrease_ns)
        ));
    }
    if order.late > 0 {
        lines.push(format!(
            "  behind younger frames of another CPU: {}, late by {} at most",
            counted(order.late, "frame"),
            span(order.largest_lateness_ns)
        ));
    }
    lines
}

/// How far the host's clock is off UTC, and who says so.
fn to_utc(clock: &ClockSummary) -> Vec<String> {
    let utc = clock.utc.as_ref();
    let mut lines = vec![match clock.utc_bound_ns.map(span) {
        Some(bound) => {
            let says = utc.map_or_else(|| "as the kernel says".to_owned(), UtcBounds::says);
            format!("  this host's clock within ±{bound} of UTC, {says}")
        }
        None => "  this host's clock is unsynchronised: no bound to UTC".into(),
    }];
    let sources = utc.map(UtcBounds::sentences).unwrap_or_default();
    lines.extend(sources.iter().map(|it| format!("    {it}")));
    lines
}

fn by_reference(reference: &ReferenceSummary, host_bound_ns: u64) -> Vec<String> {
    let name = &reference.name;
    let bounds = reference.bounds;
    let mut lines = vec![
        format!(
            "  times by {name}, whose latest answer was {} ago",
            span(reference.age_ns)
        ),
        format!("  stamps within ±{host_bound_ns} ns of the clock that followed it"),
        format!(
            "  that clock within ±{} of {name}, ±{} at the end",
            span(bounds.bound_ns),
            span(reference.bound_at_end_ns)
        ),
        match bounds.own_bound_ns.map(span) {
            Some(bound) => format!("  {name} within ±{bound} of UTC, as it says"),
            None => format!("  {name} does not say how far it is off UTC"),
        },
    ];
    let all = reference.stamp_utc_bound_ns;
    lines.extend(all.map(|bound| format!("  together: stamps within ±{} of UTC", span(bound))));
    lines.push(format!(
        "  this host's clock was {} ns ahead of it at the end, and is as it was",
        signed(reference.host_ahead_ns)
    ));
    lines.extend(reference.each().into_iter().map(|it| format!("  {it}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_file::accounting::Outcomes;

    fn interface(number: u64) -> InterfaceSummary {
        InterfaceSummary {
            name: format!("v{number}"),
            namespace: None,
            ifindex: 7,
            seen: number,
            written: number,
            outcomes: Outcomes::default(),
            directions: Vec::new(),
            ifdrop: None,
            hardware: None,
        }
    }

    #[test]
    fn of_many_interfaces_those_with_the_most_frames_are_told() {
        let lines = |count| of_each(&(0..count).map(interface).collect::<Vec<_>>());
        assert!(lines(1).is_empty());
        let all = lines(20);
        assert_eq!(
            (all.len(), all[0].as_str()),
            (20, "  v0: 0 seen, 0 written, 0 not")
        );
        let most = lines(23);
        assert_eq!(most.len(), 21);
        assert_eq!(most[0], "  v22: 22 seen, 22 written, 0 not");
        assert_eq!(most[20], "  3 others: 3 seen, 3 written, 0 not");
    }
}
