//! `tscap qos --layers`.

use std::time::Duration;

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use super::QosArgs;
use crate::{Cli, Plan, ResultOutput, Verbosity};
use tscap_flows::layers::live::LivePlan;
use tscap_programs::hook::Layer;

/// Residences between layers, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayersPlan {
    /// What to measure.
    pub live: LivePlan,
    /// Longest time to measure.
    pub duration: Option<Duration>,
    /// How it is told.
    pub output: ResultOutput,
    /// How much to say.
    pub verbosity: Verbosity,
}

impl QosArgs {
    /// The plan of residences between layers.
    pub(super) fn into_layers(mut self) -> Result<Plan, clap::Error> {
        let conflict = |what| Cli::command().error(ErrorKind::ArgumentConflict, what);
        let verbosity = self.output.verbosity();
        self.layers.sort_unstable();
        self.layers.dedup();
        if self.layers.len() < 2 {
            return Err(conflict("--layers takes two layers at least"));
        }
        if self.layers[0] == Layer::Hw && self.layers[1] != Layer::Xdp {
            return Err(conflict(
                "the layer hw is read at xdp: --layers takes that too",
            ));
        }
        if !self.words.is_empty() {
            return Err(conflict("--layers takes no filter: it is of all packets"));
        }
        let Ok([interface]) = <[String; 1]>::try_from(self.interface) else {
            return Err(conflict("--layers takes one interface"));
        };
        Ok(Plan::Layers(Box::new(LayersPlan {
            live: LivePlan {
                interface,
                namespace: self.scope.target(),
                layers: self.layers,
                cgroup: self.cgroup,
                ring_bytes: self.ring_size,
                flow: self.flow,
                looks_inside: self.inner,
                max_flows: self.max_flows,
                top: self.top,
            },
            duration: self.duration,
            output: self.output.output(self.verbose),
            verbosity,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_come_in_their_order_and_once() {
        let layers = |line: &str| {
            let words = format!("tscap qos -i a {line}");
            match Cli::plan(words.split_whitespace().map(Into::into)) {
                Ok(Plan::Layers(plan)) => Ok(*plan),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error.to_string()),
            }
        };
        let plan_of = layers("--layers app,xdp,local-in,xdp --cgroup /c --duration 2").unwrap();
        assert_eq!(
            plan_of.live.layers,
            [Layer::Xdp, Layer::LocalIn, Layer::App]
        );
        assert_eq!(plan_of.live.cgroup, Some("/c".into()));
        for refused in [
            "--layers xdp",
            "--layers hw,tcx",
            "--layers xdp,ip",
            "--layers xdp,tcx -i b",
            "--layers xdp,tcx udp",
            "--layers xdp,tcx -c 5",
            "--layers xdp,tcx -Q in",
            "--cgroup /c",
        ] {
            assert!(layers(refused).is_err(), "{refused}");
        }
        let file = ["tscap", "qos", "f", "--layers", "xdp,tcx"];
        assert!(Cli::plan(file.map(Into::into).into_iter()).is_err());
    }
}
