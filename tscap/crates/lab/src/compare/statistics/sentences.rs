//! Verdicts in words.

use std::fmt;

use super::interval::{FEWEST, MOST_LAG_1};
use crate::compare::schema::{Metric, Outcome, Ratio, Verdict};
use tscap_base::text::numbers::minus;
use tscap_clock::{StampPath, StampSource, TscPath};

/// What makes a TSC path that is more expensive than `ktime` cheaper.
const CHEAPER_TSC: &str = "tsc by perf costs more than ktime here: for each stamp the kernel goes through \
     its perf event code, which costs more than reading the counter. A function that only reads it \
     makes it cheaper: tscap's kernel module offers one to BPF programs (a kfunc), which --clock tsc \
     and auto then take; or a kernel with bpf_get_cpu_time_counter(), proposed but in no release \
     known. Until then ktime is the cheaper stamp";

/// What to do about a TSC path that is more expensive than `ktime` by any metric, if there
/// is no better one.
pub fn advice(verdicts: &[Verdict]) -> Option<&'static str> {
    let mut of_tsc = verdicts
        .iter()
        .filter(|it| it.source == Some(StampSource::Tsc));
    let has_kfunc = of_tsc.clone().any(|it| !is_by_perf(it));
    let is_dearer = of_tsc.any(|it| it.over_ktime.outcome == Outcome::Dearer);
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
        return "a program without a stamp";
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
fn times(ratio: f64, interval: [f64; 2], lag_1: Option<f64>) -> String {
    format!("{ratio:.2}× ({})", Ends(interval, lag_1))
}

/// The ends of an interval, and the lag-1 correlation of its rounds.
struct Ends([f64; 2], Option<f64>);

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([low, high], lag_1) = self;
        write!(f, "{low:.2}–{high:.2}, 99 %")?;
        let lag_1 = lag_1.map(|lag_1| minus(&format!("{lag_1:.2}")));
        lag_1.map_or(Ok(()), |lag_1| write!(f, "; lag 1: {lag_1}"))
    }
}

/// Why there is no interval, and what to do.
fn no_interval(ratio: Option<f64>, lag_1: Option<f64>) -> String {
    match (ratio, lag_1) {
        (Some(_), Some(lag_1)) if lag_1 > MOST_LAG_1 => format!(
            "undecided (withheld: the rounds drift, their lag-1 correlation is {lag_1:.2}): find \
             what else runs on this machine"
        ),
        _ => format!("undecided (fewer than {FEWEST} rounds, or a cost of 0 or less): run longer"),
    }
}

/// What a ratio says of one cost against another: words for less, for more, and for the
/// other cost.
pub fn against(of: &Ratio, [less, more, other]: [&str; 3]) -> String {
    let (Some(ratio), Some([low, high])) = (of.ratio, of.interval) else {
        return no_interval(of.ratio, of.lag_1);
    };
    let ends = Ends([low, high], of.lag_1);
    match of.outcome {
        Outcome::Dearer => format!("{more} by {}", times(ratio, [low, high], of.lag_1)),
        Outcome::Cheaper => {
            let by = times(1.0 / ratio, [1.0 / high, 1.0 / low], of.lag_1);
            format!("{less} by {by}")
        }
        Outcome::WithinMargin => format!("within {} of {other} ({ends})", Margin(of.margin)),
        Outcome::Undecided => format!("undecided ({ends}): run longer"),
    }
}

/// One sentence, without the metric and without a full stop.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.over_ktime;
        let stamp = stamp(self.source, &self.path);
        let subject = match (of.outcome, self.source) {
            (Outcome::Undecided, _) => format!("{stamp} against ktime is"),
            (Outcome::Cheaper, None) => "without a stamp it costs".to_owned(),
            _ => format!("{stamp} is"),
        };
        let less = match self.source {
            None => "less than with ktime",
            Some(_) => "cheaper than ktime",
        };
        let said = against(of, [less, "more expensive than ktime", "ktime"]);
        write!(f, "{subject} {said}")
    }
}

/// A margin above 3 % is that of 1 ns.
struct Margin(f64);

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.0;
        if percent > 3.0 {
            write!(f, "1 ns ({percent:.1} %)")
        } else {
            write!(f, "{percent:.0} %")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Stamp;
    use crate::compare::statistics::verdict::outcome;
    use crate::compare::statistics::{Allowance, verdict};

    /// With an interval of so wide a spread about the ratio.
    fn of(stamp: Stamp, ratio: f64, spread: f64) -> Verdict {
        let costs = [50.0 * ratio; 5];
        let mut of = verdict(Metric::Read, stamp, &costs, &[50.0; 5], Allowance::NONE);
        let interval = [-spread, spread].map(|off| ratio * off.exp());
        of.over_ktime.outcome = outcome(interval, of.over_ktime.margin);
        of.over_ktime.interval = Some(interval);
        of
    }

    #[test]
    fn verdicts_in_words() {
        let tsc = Some(StampPath::Tsc(TscPath::Perf));
        let tai = Some(StampPath::Tai);
        let ours = |path| Some(StampPath::Tsc(path));
        for (verdict, words) in [
            (
                of(tsc, 1.33, 0.0229),
                "tsc by perf is more expensive than ktime by 1.33× (1.30–1.36, 99 %)",
            ),
            (
                of(ours(TscPath::Module), 0.33, 0.0229),
                "tsc by the module's kfunc is cheaper than ktime by 3.03× (2.96–3.10, 99 %)",
            ),
            (
                of(ours(TscPath::ModuleOrdered), 1.0, 0.0057),
                "tsc by the module's ordered kfunc is within 3 % of ktime (0.99–1.01, 99 %)",
            ),
            (
                of(ours(TscPath::Kernel), 1.0, 0.0057),
                "tsc by the kernel's kfunc is within 3 % of ktime (0.99–1.01, 99 %)",
            ),
            (
                of(None, 0.4, 0.0229),
                "without a stamp it costs less than with ktime by 2.50× (2.44–2.56, 99 %)",
            ),
            (
                of(tai, 1.0, 0.0057),
                "tai is within 3 % of ktime (0.99–1.01, 99 %)",
            ),
            (
                of(tai, 1.01, 0.0573),
                "tai against ktime is undecided (0.95–1.07, 99 %): run longer",
            ),
            (
                verdict(Metric::Read, tai, &[10.2; 5], &[10.0; 5], Allowance::NONE),
                "tai is within 1 ns (10.0 %) of ktime (1.02–1.02, 99 %)",
            ),
            (
                verdict(Metric::Frame, tsc, &[-1.0; 5], &[50.0; 5], Allowance::NONE),
                "tsc by perf against ktime is undecided (fewer than 5 rounds, or a cost of 0 or \
                 less): run longer",
            ),
        ] {
            assert_eq!(verdict.to_string(), words);
        }
    }

    #[test]
    fn a_lag_is_said_and_one_that_is_too_long_withholds_the_verdict() {
        let mut of = of(Some(StampPath::Tai), 1.33, 0.0229);
        of.over_ktime.lag_1 = Some(0.123);
        assert_eq!(
            of.to_string(),
            "tai is more expensive than ktime by 1.33× (1.30–1.36, 99 %; lag 1: 0.12)"
        );
        let over_ktime = &mut of.over_ktime;
        (over_ktime.interval, over_ktime.lag_1) = (None, Some(0.95));
        over_ktime.outcome = Outcome::Undecided;
        assert!(
            of.to_string()
                .contains("withheld: the rounds drift, their lag-1 correlation is 0.95")
        );
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
