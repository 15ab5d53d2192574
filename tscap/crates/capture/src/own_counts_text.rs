//! What the interfaces counted themselves, in sentences.

use super::event::Reporter;
use super::summary::{DirectionSummary, Summary};
use tscap_programs::hook::AttachPoint;

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
    use tscap_file::accounting::{Direction, InterfaceFrames, Outcomes, Totals};

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
