//! The bounds in words.

use crate::bound::{Parts, UtcBound, UtcBounds};
use tscap_base::text::numbers::{signed, span};

impl UtcBounds {
    /// Who says the bound: "as the kernel says". Empty if there is none.
    pub fn says(&self) -> String {
        match (self.source, self.bound_ns) {
            (Some(source), _) => format!("as {} says", source.name()),
            (None, Some(_)) => "as any of the sources says, which contradict each other".into(),
            (None, None) => String::new(),
        }
    }

    /// A sentence for each source, and one for each contradiction. None if there is no source but
    /// the kernel, of which the caller tells.
    pub fn sentences(&self) -> Vec<String> {
        if self.readings.len() < 2 {
            return Vec::new();
        }
        let contradictions = self.contradictions.iter().map(|[one, other]| {
            let (one, other) = (one.name(), other.name());
            format!("{one} and {other} contradict each other on UTC: one of them is wrong")
        });
        let readings = self.readings.iter().map(UtcBound::sentence);
        readings.chain(contradictions).collect()
    }
}

impl UtcBound {
    /// "chronyd: ±1.2 ms of UTC, …".
    pub fn sentence(&self) -> String {
        let name = self.parts.source().name();
        let bound = match (self.bound_ns, &self.unknown) {
            (Some(bound), _) => format!("±{}", span(bound)),
            (None, Some(why)) => format!("no bound, as {why}"),
            (None, None) => "no bound".into(),
        };
        format!("{name}: {bound} ({})", self.parts.words())
    }
}

impl Parts {
    /// What the bound is made of.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |name: &str, ns: u64| {
            if ns > 0 {
                words.push(format!("{name} {}", span(ns)));
            }
        };
        match self {
            Self::Kernel {
                max_error_ns,
                est_error_ns,
                device_error_ns,
            } => {
                add("maxerror", *max_error_ns);
                add("esterror", *est_error_ns);
                add("error of its device", *device_error_ns);
            }
            Self::Chrony {
                correction_ns,
                root_delay_ns,
                root_dispersion_ns,
                growth_ns,
                device_error_ns,
                stratum,
                reference,
                updated_ago_ns,
                ..
            } => {
                add("correction", correction_ns.unsigned_abs());
                add("half of root delay", root_delay_ns.div_ceil(2));
                add("root dispersion", *root_dispersion_ns);
                add("error of its device", *device_error_ns);
                add("age", *growth_ns);
                words.push(format!("by {reference} at stratum {stratum}"));
                words.push(format!("updated {} ago", span(*updated_ago_ns)));
            }
            Self::ClockBound {
                published_ns,
                growth_ns,
                ..
            } => {
                add("published", *published_ns);
                add("drift since", *growth_ns);
            }
            Self::Phc {
                device,
                offset_ns,
                reading_ns,
                device_error_ns,
                growth_ns,
                ..
            } => {
                add("phc_error_bound", *device_error_ns);
                add("reading", *reading_ns);
                add("age", *growth_ns);
                words.push(format!("{device} is {} ns ahead", signed(*offset_ns)));
            }
            Self::Ptp4l {
                offset_ns,
                path_delay_ns,
                accuracy_ns,
                clock,
                reading_ns,
                growth_ns,
                grandmaster,
                ..
            } => {
                add("offset", offset_ns.unsigned_abs());
                add("path delay", *path_delay_ns);
                add("grandmaster", accuracy_ns.unwrap_or(0));
                add("reading", *reading_ns);
                add("age", *growth_ns);
                words.push(format!("{clock} by {grandmaster}"));
            }
            Self::VmClock {
                offset_ns,
                reading_ns,
                max_error_ns,
                growth_ns,
                ..
            } => {
                add("maxerror", *max_error_ns);
                add("rate", *growth_ns);
                add("reading", *reading_ns);
                words.push(format!("it is {} ns ahead", signed(*offset_ns)));
            }
        }
        words.join(", ")
    }
}
