//! Verdicts in words.

use std::fmt;

use crate::clock::{StampPath, StampSource, TscPath};
use crate::compare::schema::{Metric, Outcome, Verdict};

/// What makes a TSC path that is dearer than `ktime` cheaper.
const CHEAPER_TSC: &str = "tsc by perf costs more than ktime here: for each stamp the kernel goes through \
     its perf event code, which costs more than reading the counter. A function that only reads it \
     makes it cheaper: tscap's kernel module offers one to BPF programs (a kfunc), which --clock tsc \
     and auto then take; or a kernel with bpf_get_cpu_time_counter(), proposed but in no release \
     known. Until then ktime is the cheaper stamp";

/// What to do about a TSC path that is dearer than `ktime` by any metric, if there
/// is no better one.
pub fn advice(verdicts: &[Verdict]) -> Option<&'static str> {
    let mut of_tsc = verdicts
        .iter()
        .filter(|it| it.source == Some(StampSource::Tsc));
    let has_kfunc = of_tsc.clone().any(|it| !is_by_perf(it));
    let is_dearer = of_tsc.any(|it| it.outcome == Outcome::Dearer);
    (is_dearer && !has_kfunc).then_some(CHEAPER_TSC)
}

/// Among verdicts on the TSC; one of an earlier tscap names no path, of which there
/// was this one only.
fn is_by_perf(verdict: &Verdict) -> bool {
    let path = StampPath::by_function(&verdict.path);
    path.is_none_or(|path| path == StampPath::Tsc(TscPath::Perf))
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "one read",
            Self::Frame => "the stamp of a frame",
            Self::Program => "the whole program for a frame",
        })
    }
}

/// How a stamp is called in a sentence.
pub(super) fn stamp(source: Option<StampSource>, path: &str) -> &'static str {
    let Some(source) = source else {
        return "no stamp";
    };
    match StampPath::by_function(path) {
        Some(StampPath::Tsc(TscPath::Kernel)) => "tsc by the kernel's kfunc",
        Some(StampPath::Tsc(TscPath::Module)) => "tsc by the module's kfunc",
        Some(StampPath::Tsc(TscPath::ModuleOrdered)) => "tsc by the module's ordered kfunc",
        _ if source == StampSource::Tsc => "tsc by perf",
        _ => source.name(),
    }
}

/// So many times as much.
pub(super) fn times(ratio: f64, [low, high]: [f64; 2]) -> String {
    format!("{ratio:.2}× ({low:.2}–{high:.2}, 99 %)")
}

/// One sentence, without the metric and without a full stop.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stamp = stamp(self.source, &self.path);
        let (Some(ratio), Some([low, high])) = (self.ratio, self.interval) else {
            return write!(
                f,
                "{stamp} against ktime is undecided (fewer than 3 rounds, or a cost of 0 or \
                 less): run longer"
            );
        };
        match self.outcome {
            Outcome::Dearer => {
                let by = times(ratio, [low, high]);
                write!(f, "{stamp} is dearer than ktime by {by}")
            }
            Outcome::Cheaper => {
                let by = times(1.0 / ratio, [1.0 / high, 1.0 / low]);
                write!(f, "{stamp} is cheaper than ktime by {by}")
            }
            Outcome::WithinMargin => write!(
                f,
                "{stamp} is within {} of ktime ({low:.2}–{high:.2}, 99 %)",
                Margin(self.margin)
            ),
            Outcome::Undecided => write!(
                f,
                "{stamp} against ktime is undecided ({low:.2}–{high:.2}, 99 %): run longer"
            ),
        }
    }
}

/// A margin above 3 % is that of 1 ns.
pub(super) struct Margin(pub f64);

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.0;
        match percent > 3.0 {
            true => write!(f, "1 ns ({percent:.1} %)"),
            false => write!(f, "{percent:.0} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Stamp;
    use crate::compare::statistics::verdict;

    /// Three rounds whose ratios to a cost of 50 ns lie around one.
    fn of(stamp: Stamp, ratio: f64, spread: f64) -> Verdict {
        let costs = [-spread, 0.0, spread].map(|off: f64| 50.0 * ratio * off.exp());
        verdict(Metric::Read, stamp, &costs, &[50.0; 3])
    }

    #[test]
    fn verdicts_in_words() {
        let tsc = Some(StampPath::Tsc(TscPath::Perf));
        let tai = Some(StampPath::Tai);
        let ours = |path| Some(StampPath::Tsc(path));
        for (verdict, words) in [
            (
                of(tsc, 1.33, 0.004),
                "tsc by perf is dearer than ktime by 1.33× (1.30–1.36, 99 %)",
            ),
            (
                of(ours(TscPath::Module), 0.33, 0.004),
                "tsc by the module's kfunc is cheaper than ktime by 3.03× (2.96–3.10, 99 %)",
            ),
            (
                of(ours(TscPath::ModuleOrdered), 1.0, 0.001),
                "tsc by the module's ordered kfunc is within 3 % of ktime (0.99–1.01, 99 %)",
            ),
            (
                of(ours(TscPath::Kernel), 1.0, 0.001),
                "tsc by the kernel's kfunc is within 3 % of ktime (0.99–1.01, 99 %)",
            ),
            (
                of(None, 0.4, 0.004),
                "no stamp is cheaper than ktime by 2.50× (2.44–2.56, 99 %)",
            ),
            (
                of(tai, 1.0, 0.001),
                "tai is within 3 % of ktime (0.99–1.01, 99 %)",
            ),
            (
                of(tai, 1.01, 0.01),
                "tai against ktime is undecided (0.95–1.07, 99 %): run longer",
            ),
            (
                verdict(Metric::Read, tai, &[10.2; 3], &[10.0; 3]),
                "tai is within 1 ns (10.0 %) of ktime (1.02–1.02, 99 %)",
            ),
            (
                verdict(Metric::Frame, tsc, &[-1.0; 3], &[50.0; 3]),
                "tsc by perf against ktime is undecided (fewer than 3 rounds, or a cost of 0 or \
                 less): run longer",
            ),
        ] {
            assert_eq!(verdict.to_string(), words);
        }
    }

    #[test]
    fn a_dearer_tsc_comes_with_what_makes_it_cheaper() {
        let perf = Some(StampPath::Tsc(TscPath::Perf));
        let dearer = of(perf, 1.5, 0.0);
        let others = [of(Some(StampPath::Tai), 1.5, 0.0), of(perf, 0.5, 0.0)];
        assert_eq!(advice(&others), None);
        let [tai, cheaper] = others;
        let mut all = vec![tai, dearer, cheaper];
        let said = advice(&all).unwrap();
        assert!(said.contains("module") && said.contains("bpf_get_cpu_time_counter()"));
        // Not to one who has it.
        all.push(of(Some(StampPath::Tsc(TscPath::Module)), 0.3, 0.0));
        assert_eq!(advice(&all), None);
    }
}
