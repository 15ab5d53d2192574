//! The network namespace that the interfaces of a command are in.

use clap::Args;

use tscap_network::namespaces::Target;

/// One of them at most; without, this process's own.
#[derive(Debug, Args)]
#[group(id = "namespace", multiple = false)]
pub(super) struct ScopeArgs {
    /// The interfaces are in this network namespace: a name of ip netns, a path, or the
    /// number of a process
    #[arg(long, value_name = "NAME|PATH|PID")]
    netns: Option<String>,

    /// The interfaces are in the network namespace of this container: its name, or its id or
    /// the beginning of that (Docker, Podman, containerd, CRI-O)
    #[arg(long, value_name = "NAME|ID")]
    container: Option<String>,

    /// The interfaces are in the network namespace of this pod of Kubernetes on this node
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = pod)]
    pod: Option<Target>,
}

impl ScopeArgs {
    /// What was asked for.
    pub fn target(self) -> Option<Target> {
        let netns = self.netns.map(Target::Netns);
        let container = self.container.map(Target::Container);
        netns.or(container).or(self.pod)
    }
}

/// A pod by the namespace of Kubernetes and its name.
pub(super) fn pod(text: &str) -> Result<Target, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Target::Pod {
            namespace: namespace.into(),
            name: name.into(),
        }),
        _ => Err("a pod is NAMESPACE/NAME, such as default/web-0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, Plan};

    fn plan(line: &str) -> Result<Plan, clap::Error> {
        let words = std::iter::once("tscap").chain(line.split(' '));
        Cli::plan(words.map(Into::into))
    }

    /// Where the interfaces of a plan are.
    fn target(line: &str) -> Option<Target> {
        match plan(line).unwrap_or_else(|error| panic!("{line}: {error}")) {
            Plan::Delay(plan) => plan.live.namespace,
            Plan::Layers(plan) => plan.live.namespace,
            Plan::Stamp(plan) => plan.stamping.namespace,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_measurement_takes_one_place() {
        let commands = ["delay --rtt a", "qos -i a --layers xdp,tcx", "stamp -i a"];
        for command in commands {
            assert_eq!(target(command), None);
            for (option, expected) in [
                ("--netns n", Target::Netns("n".into())),
                ("--container c", Target::Container("c".into())),
                ("--pod s/p", pod("s/p").unwrap()),
            ] {
                let line = format!("{command} {option}");
                assert_eq!(target(&line), Some(expected), "{line}");
                assert!(plan(&format!("{line} --netns other")).is_err(), "{line}");
            }
            assert!(plan(&format!("{command} --pod p")).is_err(), "{command}");
        }
        for file in ["qos f --container c", "delay --file f --rtt a --pod s/p"] {
            assert!(plan(file).is_err(), "{file}");
        }
    }
}
