//! What runtimes note on a container: its name and the pod that it belongs to.

/// Keys of the pod's namespace: of containerd's CRI (pkg/cri/annotations), of CRI-O
/// (pkg/annotations), of the kubelet's labels.
const POD_NAMESPACE: [&str; 3] = [
    "io.kubernetes.cri.sandbox-namespace",
    "io.kubernetes.cri-o.Namespace",
    "io.kubernetes.pod.namespace",
];
/// Keys of the pod's name.
const POD_NAME: [&str; 3] = [
    "io.kubernetes.cri.sandbox-name",
    "io.kubernetes.cri-o.KubeName",
    "io.kubernetes.pod.name",
];
/// Keys of the container's own name: in a pod, or given by nerdctl.
const NAME: [&str; 3] = [
    "io.kubernetes.cri.container-name",
    "io.kubernetes.container.name",
    "nerdctl/name",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub namespace: String,
    pub name: String,
}

/// The pod, by a lookup of annotations or labels.
pub(super) fn pod<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Pod> {
    let first = |keys: [&str; 3]| keys.iter().find_map(|key| get(key)).map(str::to_owned);
    Some(Pod {
        namespace: first(POD_NAMESPACE)?,
        name: first(POD_NAME)?,
    })
}

pub(super) fn name<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    NAME.iter().find_map(|key| get(key)).map(str::to_owned)
}
