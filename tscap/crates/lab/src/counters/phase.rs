//! What the machine does while its counters are watched (IV-B).

use serde::{Deserialize, Serialize};

/// What it does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Stress {
    /// Nothing else.
    #[value(skip)]
    Idle,
    /// A loop on every CPU
    Cpu,
    /// A capture at full rate on a veth pair in namespaces of its own
    Net,
}

impl Stress {
    /// Its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Cpu => "cpu",
            Self::Net => "net",
        }
    }

    /// The phases of the paper with these loads: each between idle ones, that of the CPUs twice.
    pub fn cycle(loads: &[Self]) -> Vec<Self> {
        let mut phases = vec![Self::Idle];
        for (load, times) in [(Self::Cpu, 2), (Self::Net, 1)] {
            if loads.contains(&load) {
                phases.extend([load, Self::Idle].repeat(times));
            }
        }
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phases_are_the_papers() {
        use Stress::{Cpu, Idle, Net};
        assert_eq!(Stress::cycle(&[]), [Idle]);
        assert_eq!(Stress::cycle(&[Net]), [Idle, Net, Idle]);
        let all = [Idle, Cpu, Idle, Cpu, Idle, Net, Idle];
        assert_eq!(Stress::cycle(&[Net, Cpu]), all);
    }

    #[test]
    fn names_are_those_of_the_json() {
        for stress in [Stress::Idle, Stress::Cpu, Stress::Net] {
            assert_eq!(serde_json::to_value(stress).unwrap(), stress.name());
        }
    }
}
