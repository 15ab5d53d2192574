//! Which stamp sources work, found out by getting ready to stamp with each.

use super::check::{Check, Topic, advice, fix};
use tscap_clock::{StampPath, StampSource};

const KTIME: Topic = Topic {
    id: "stamp_ktime",
    why: "CLOCK_MONOTONIC is the default stamp where there is no kfunc, the cheapest then.",
};
const TAI: Topic = Topic {
    id: "stamp_tai",
    why: "--clock tai stamps with CLOCK_TAI, the kernel's own wall clock without leap seconds.",
};
const TSC: Topic = Topic {
    id: "stamp_tsc",
    why: "--clock tsc stamps with the raw counter, which no time daemon touches.",
};

/// What came of getting ready to stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The program was loaded and its stamps could be turned into wall-clock time.
    Works {
        /// By this path.
        path: StampPath,
        /// Bound of the stamps to this host's clock, ns.
        host_bound_ns: u64,
    },
    /// It was not.
    Refused {
        /// Why.
        why: String,
        /// What would help.
        what_next: String,
    },
    /// This process may not load programs.
    NotTried,
    /// The generator stamps so now, and trying would disturb it: opening a perf
    /// event makes the counts of those that are open pause, unless they are pinned.
    InUse,
}

/// Whether frames can be stamped with `source`. `again` is the command that
/// would try with all privileges.
pub(super) fn stamp(source: StampSource, probe: &Probe, again: &str) -> Check {
    let topic = match source {
        StampSource::Ktime => &KTIME,
        StampSource::Tai => &TAI,
        StampSource::Tsc => &TSC,
    };
    match probe {
        Probe::Works {
            path,
            host_bound_ns,
        } => topic.good(format!(
            "works, by {}: within ±{host_bound_ns} ns of this host's clock",
            path.function()
        )),
        Probe::InUse => {
            topic.good("tscap gen stamps with it now; not tried, which would disturb it")
        }
        Probe::NotTried => {
            topic.warning("not tried: this process may not load programs", fix(again))
        }
        Probe::Refused { why, what_next } => {
            // Without the verifier's log.
            let found = format!("refused: {}", why.lines().next().unwrap_or_default());
            match source {
                // What --clock auto takes.
                StampSource::Ktime => topic.bad(found, advice(what_next)),
                StampSource::Tai | StampSource::Tsc => topic.warning(found, advice(what_next)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Bad, Good, Warning};

    #[test]
    fn what_works_and_what_does_not() {
        let check = |source, probe: &Probe| stamp(source, probe, "sudo tscap doctor");
        let works = Probe::Works {
            path: StampPath::Tai,
            host_bound_ns: 20,
        };
        let refused = Probe::Refused {
            why: "the kernel refused\n0: R1=ctx".into(),
            what_next: "boot a younger kernel".into(),
        };
        for (source, id, without) in [
            (StampSource::Ktime, "stamp_ktime", Bad),
            (StampSource::Tai, "stamp_tai", Warning),
            (StampSource::Tsc, "stamp_tsc", Warning),
        ] {
            let good = check(source, &works);
            good.is(Good, "±20 ns").is(Good, "bpf_ktime_get_tai_ns");
            assert_eq!(good.id, id);
            let bad = check(source, &refused);
            bad.is(without, "the kernel refused").advises("younger");
            assert!(!bad.found.contains("R1"), "{bad:?}");
            check(source, &Probe::InUse).is(Good, "tscap gen stamps with it now");
            check(source, &Probe::NotTried)
                .is(Warning, "not tried")
                .fixed_by("sudo tscap doctor");
        }
    }
}
