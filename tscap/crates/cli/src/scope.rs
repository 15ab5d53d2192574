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
