//! Missing privileges by name, and the base set being enough.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::root_with;

const PROGRAMS: [&str; 3] = ["ip", "ethtool", "setpriv"];

/// Root without `missing` (and without CAP_SYS_ADMIN, which stands in for them).
fn without(missing: &str) -> [String; 2] {
    [
        "setpriv".into(),
        format!("--bounding-set=-sys_admin,{missing}"),
    ]
}

#[test]
fn each_missing_capability_is_named() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("caps");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("-bpf", &["CAP_BPF"], &["CAP_NET_ADMIN", "CAP_PERFMON"]),
        (
            "-net_admin",
            &["CAP_NET_ADMIN"],
            &["CAP_BPF", "CAP_PERFMON"],
        ),
        ("-perfmon", &["CAP_PERFMON"], &["CAP_BPF", "CAP_NET_ADMIN"]),
        (
            "-bpf,-net_admin,-perfmon",
            &["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"],
            &[],
        ),
    ];
    for (missing, named, unnamed) in cases {
        let finished = capture_on(&bench.rx, &path).through(without(missing)).run();
        finished.failure(1, named);
        let error = finished
            .stderr
            .lines()
            .find(|line| line.starts_with("tscap: "));
        let error = error.expect("an error line");
        for name in unnamed {
            assert!(!error.contains(name), "{name} isn't missing:\n{error}");
        }
        assert!(!path.exists(), "a file was left");
    }
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("nobody");
    let folder = files::public_folder();
    let copy = folder.path().join("tscap");
    files::copy_program(tscap_path(), &copy);
    let mut command = bench.rx.netns.command("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy);
    command
        .args(["capture", "-i", "rx0", "-w"])
        .arg(folder.path().join("out.pcapng"));
    let done = run(&mut command, SHORT);
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON", "hint: "] {
        assert!(
            done.stderr.contains(part),
            "{part} is not in\n{}",
            done.stderr
        );
    }
}

#[test]
fn the_base_set_is_enough() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("base");
    let folder = files::public_folder();
    let copy = folder.path().join("tscap");
    files::copy_program(tscap_path(), &copy);
    let path = folder.path().join("out.pcapng");
    let set = "+bpf,+net_admin,+perfmon";
    // CAP_NET_RAW is needed for nothing but promiscuous mode.
    let mut command = bench.rx.netns.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command
        .arg(format!("--inh-caps=-all,{set}"))
        .arg(format!("--ambient-caps=-all,{set}"));
    command.arg(format!("--bounding-set=-all,{set}")).arg(&copy);
    command
        .args(["capture", "-p", "-i", "rx0", "--duration", "0.2", "-w"])
        .arg(&path);
    let done = run(&mut command, SHORT);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert!(path.exists());
}
