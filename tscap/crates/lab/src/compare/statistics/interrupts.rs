//! What interrupts off do to a stamp, in words.

use super::sentences::{against, stamp};
use crate::compare::schema::InterruptsOff;

/// Of the read and of the tail: a sentence each, without a full stop.
pub fn interrupt_sentences(of: &InterruptsOff) -> [String; 2] {
    let stamp = stamp(Some(of.source), &of.path);
    let other = "that with them on";
    [
        format!(
            "one read with interrupts turned off around it: {stamp} is {}",
            against(
                &of.read,
                [
                    "cheaper than with them on",
                    "more expensive than with them on",
                    other
                ]
            )
        ),
        format!(
            "the p99 of frames with interrupts off: that of {stamp} is {}",
            against(
                &of.p99,
                ["lower than with them on", "higher than with them on", other]
            )
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixtures;
    use crate::compare::statistics::{Allowance, ratio};

    #[test]
    fn both_in_words() {
        let mut of = fixtures::comparison().interrupts_off.remove(0);
        let words = interrupt_sentences(&of);
        assert_eq!(
            words,
            [
                "one read with interrupts turned off around it: ktime is more expensive than with them on \
                 by 1.25× (1.25–1.25, 99 %)",
                "the p99 of frames with interrupts off: that of ktime is within 3 % of that with \
                 them on (1.01–1.01, 99 %)",
            ]
        );
        of.p99 = ratio(&[50.0; 5], &[100.0; 5], Allowance::NONE);
        let [_, words] = interrupt_sentences(&of);
        assert!(words.ends_with("lower than with them on by 2.00× (2.00–2.00, 99 %)"));
        of.p99 = ratio(&[100.0; 5], &[50.0; 5], Allowance::NONE);
        let [_, words] = interrupt_sentences(&of);
        assert!(words.contains("ktime is higher than"), "{words}");
        of.p99 = ratio(
            &[90.0, 100.0, 110.0, 90.0, 100.0],
            &[100.0; 5],
            Allowance::NONE,
        );
        let [_, words] = interrupt_sentences(&of);
        assert!(words.contains("ktime is undecided (0."), "{words}");
        of.p99 = ratio(&[], &[], Allowance::NONE);
        let [_, words] = interrupt_sentences(&of);
        assert!(words.contains("undecided (fewer than 5 rounds"), "{words}");
    }
}
