use super::*;
use tscap_base::recorded::Recorded;

/// As runc, crun, Docker, Podman and containerd write them.
struct Machine(Recorded);

/// A short name for an id of 64 digits.
fn id(digit: char) -> String {
    std::iter::repeat_n(digit, 64).collect()
}

impl Machine {
    fn new() -> Self {
        Self(Recorded::veth())
    }

    /// `state.json` of runc, as version 1.1 writes it, less what is of no use here.
    fn runc(&self, folder: &str, id: &str, pid: u32, labels: &[&str]) {
        self.0.run(pid, u64::from(pid) * 10);
        let state = serde_json::json!({
            "id": id,
            "init_process_pid": pid,
            "init_process_start": pid * 10,
            "created": "2023-11-23T08:32:23.988701148Z",
            "config": {
                "no_pivot_root": false,
                "rootfs": "/rootfs",
                "umask": null,
                "namespaces": [{"type": "NEWNET", "path": ""}],
                "labels": labels,
            },
            "rootless": false,
            "namespace_paths": {"NEWNET": format!("/proc/{pid}/ns/net")},
        });
        self.0
            .put(&format!("{folder}/{id}/state.json"), &state.to_string());
    }

    /// `status` of crun 1.8, as Podman 4.3 has it write it, and the bundle.
    fn crun(&self, id: &str, pid: u32, annotations: &serde_json::Value) {
        self.0.run(pid, u64::from(pid) * 10);
        let bundle = format!("var/lib/containers/storage/overlay-containers/{id}/userdata");
        let status = serde_json::json!({
            "pid": pid,
            "process-start-time": pid * 10,
            "cgroup-path": "",
            "scope": "",
            "rootfs": "/rootfs",
            "systemd-cgroup": false,
            "bundle": format!("/{bundle}"),
            "created": "2026-11-23T11:42:20.731404Z",
            "owner": "root",
            "detached": true,
            "external_descriptors": "[\"/dev/null\",\"pipe:[281898]\",\"pipe:[281899]\"]",
        });
        self.0
            .put(&format!("run/crun/{id}/status"), &status.to_string());
        let config = serde_json::json!({"ociVersion": "1.0.2-dev", "annotations": annotations});
        self.0
            .put(&format!("{bundle}/config.json"), &config.to_string());
    }

    fn docker(&self, id: &str, name: &str, labels: &serde_json::Value) {
        let config = serde_json::json!({
            "StreamConfig": {},
            "State": {"Running": true, "Pid": 1},
            "ID": id,
            "Config": {"Hostname": "web", "Labels": labels},
            "Name": format!("/{name}"),
        });
        let path = format!("var/lib/docker/containers/{id}/config.v2.json");
        self.0.put(&path, &config.to_string());
    }

    fn find(&self, target: &Target) -> Result<Found, NamespaceError> {
        Places::below(&self.0.path("")).find(target)
    }

    #[track_caller]
    fn is(&self, target: &Target, pid: u32) {
        match self.find(target) {
            Ok(Found::Process(process)) => assert_eq!(process.pid, pid),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn refuses(&self, target: &Target, parts: &[&str]) {
        let error = self.find(target).expect_err("nothing to be found");
        let said = format!("{error}\n{}", error.remedy());
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

fn container(text: &str) -> Target {
    Target::Container(text.into())
}

fn pod(namespace: &str, name: &str) -> Target {
    Target::Pod {
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn netns(text: &str) -> Target {
    Target::Netns(text.into())
}

const MOBY: &str = "run/docker/runtime-runc/moby";
const CRI: &str = "run/containerd/runc/k8s.io";

#[test]
fn dockers_containers_have_names_and_ids() {
    let machine = Machine::new();
    machine.runc(MOBY, &id('a'), 71, &["bundle=/run/docker/containerd/a"]);
    machine.docker(&id('a'), "web", &serde_json::json!({}));
    machine.docker(&id('b'), "db", &serde_json::Value::Null);
    for text in ["web", &id('a'), "aaaa"] {
        machine.is(&container(text), 71);
    }
    machine.refuses(&container("db"), &["container db is not running"]);
    let looked = ["no container webb here", "looked in", MOBY, "--netns PID"];
    machine.refuses(&container("webb"), &looked);
    machine.refuses(&container(""), &["--netns PID"]);
    // Under dockershim and cri-dockerd the labels name the pod.
    machine.runc(MOBY, &id('c'), 73, &[]);
    let labels = serde_json::json!({
        "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": "shop-0"
    });
    machine.docker(&id('c'), "k8s_POD_shop-0_default", &labels);
    machine.is(&pod("default", "shop-0"), 73);
}

#[test]
fn podmans_containers_have_names_in_a_list() {
    let machine = Machine::new();
    let none = serde_json::json!({"io.container.manager": "libpod"});
    machine.crun(&id('2'), 81, &none);
    let list = serde_json::json!([
        {"id": id('2'), "names": ["tscapweb"], "image": "", "layer": "b744", "flags": {}},
        {"id": id('3'), "image": "", "layer": "b745"},
    ]);
    let path = "var/lib/containers/storage/overlay-containers/containers.json";
    machine.0.put(path, &list.to_string());
    machine.is(&container("tscapweb"), 81);
    machine.is(&container("22"), 81);
    machine.refuses(&container(&id('3')), &["is not running"]);
}

#[test]
fn pods_are_named_by_every_runtime() {
    let machine = Machine::new();
    let of = |kind: &str, name: &str, pod: &str| {
        vec![
            format!("io.kubernetes.cri.container-type={kind}"),
            format!("io.kubernetes.cri.container-name={name}"),
            format!("io.kubernetes.cri.sandbox-name={pod}"),
            "io.kubernetes.cri.sandbox-namespace=default".to_owned(),
        ]
    };
    for (digit, pid, name, pod) in [('4', 91, "nginx", "web-0"), ('5', 92, "nginx", "web-1")] {
        let labels = of("container", name, pod);
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        machine.runc(CRI, &id(digit), pid, &labels);
        // The task of the same container, without its start.
        let task = format!(
            "run/containerd/io.containerd.runtime.v2.task/k8s.io/{}",
            id(digit)
        );
        machine.0.put(&format!("{task}/init.pid"), &pid.to_string());
    }
    machine.is(&pod("default", "web-0"), 91);
    machine.is(&pod("default", "web-1"), 92);
    machine.refuses(&pod("other", "web-1"), &["no pod other/web-1"]);
    let several = ["several", "444444444444 (pod default/web-0)", "--pod"];
    machine.refuses(&container("nginx"), &several);
    // CRI-O, by crun.
    machine.crun(
        &id('6'),
        93,
        &serde_json::json!({
            "io.kubernetes.cri-o.ContainerType": "container",
            "io.kubernetes.container.name": "proxy",
            "io.kubernetes.pod.namespace": "kube-system",
            "io.kubernetes.pod.name": "proxy-x7",
        }),
    );
    machine.is(&pod("kube-system", "proxy-x7"), 93);
    machine.is(&container("proxy"), 93);
    // A task of a runtime without a state file.
    let task = "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/sandbox";
    machine.0.run(94, 940);
    machine.0.put(&format!("{task}/init.pid"), "94");
    let config = r#"{"annotations": {"io.kubernetes.cri.sandbox-namespace": "default",
        "io.kubernetes.cri.sandbox-name": "kata"}}"#;
    machine.0.put(&format!("{task}/config.json"), config);
    machine.is(&pod("default", "kata"), 94);
}

#[test]
fn a_dead_container_is_not_the_process_with_its_number() {
    let machine = Machine::new();
    machine.runc(MOBY, &id('a'), 71, &[]);
    machine.0.end(71);
    machine.refuses(&container("aaa"), &["is not running"]);
    // The number again.
    machine.0.run(71, 5);
    machine.refuses(&container("aaa"), &["is not running"]);
    machine.runc(MOBY, &id('b'), 0, &[]);
    machine.refuses(&container("bbb"), &["no container bbb"]);
}

#[test]
fn the_beginning_of_an_id_has_to_be_unique_and_a_name_comes_first() {
    let machine = Machine::new();
    machine.runc(MOBY, "abc1", 71, &[]);
    machine.runc(MOBY, "abc2", 72, &["nerdctl/name=ab"]);
    machine.is(&container("abc1"), 71);
    machine.is(&container("ab"), 72);
    machine.refuses(
        &container("abc"),
        &["several", "abc1", "abc2", "more of the id"],
    );
    machine.0.end(71);
    machine.is(&container("abc"), 72);
}

#[test]
fn what_cannot_be_read_is_said() {
    let machine = Machine::new();
    machine.refuses(&container("web"), &["no container runtime was found"]);
    machine.0.put("run/runc/half/state.json", "{\"id\": \"ha");
    machine
        .0
        .put("var/lib/docker/containers/x/config.v2.json", "");
    let said = ["cannot understand", "half/state.json", "x/config.v2.json"];
    machine.refuses(&container("web"), &said);
}

#[test]
fn a_name_of_ip_netns_a_path_and_a_number() {
    let machine = Machine::new();
    machine.0.put("run/netns/lab", "");
    machine.0.put("run/netns/17", "");
    machine.0.run(17, 1);
    machine.0.run(18, 1);
    let file = |path: &str| Found::File(machine.0.path(path));
    assert_eq!(machine.find(&netns("lab")).unwrap(), file("run/netns/lab"));
    assert_eq!(machine.find(&netns("17")).unwrap(), file("run/netns/17"));
    machine.is(&netns("18"), 18);
    let path = Found::File("./somewhere".into());
    assert_eq!(machine.find(&netns("./somewhere")).unwrap(), path);
    machine.refuses(&netns("19"), &["no process has the number 19"]);
    machine.refuses(&netns("lap"), &["is called \"lap\"", "there are: 17, lab"]);
    for text in ["", "..", "."] {
        machine.refuses(&netns(text), &["is called"]);
    }
}
