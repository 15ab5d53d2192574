//! Without `--rx-cpu`: the converter and the receive interrupts. A veth has none, so /proc
//! and /sys are made to show some of a device.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::finished::Finished;
use tscap_testkit::port::Port;
use tscap_testkit::process::cpus;
use tscap_testkit::root::{alone, two_cpus};

use super::JOURNALS;
use super::machine::warning;

/// Number of the first made-up interrupt.
const FIRST: usize = 1000;

/// Makes a folder in which the port has a device, with an interrupt on each of `cpus`.
fn record(port: &Port, cpus: &[usize], root: &Path) {
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        fs::write(path, text).expect("write a file");
    };
    fs::create_dir(root.join("irq")).expect("make a folder");
    let net = format!("net/{}", port.name);
    put(&format!("{net}/ifindex"), &port.index.to_string());
    let mac = port.mac_text();
    put(&format!("{net}/address"), &mac);
    symlink(root.join("device"), root.join(net).join("device")).expect("make a link");
    let mut interrupts = String::new();
    for (queue, cpu) in cpus.iter().enumerate() {
        let irq = FIRST + queue;
        put(&format!("device/msi_irqs/{irq}"), "msix");
        put(&format!("irq/{irq}/smp_affinity_list"), &cpu.to_string());
        interrupts += &format!(
            "{irq}:  1  PCI-MSIX  {queue}-edge  {}-rx-{queue}\n",
            port.name
        );
    }
    put("interrupts", &interrupts);
}

/// A capture without traffic that sees the made-up machine.
fn capture(port: &Port, cpus: &[usize], more: &[&str]) -> Finished {
    let folder = files::folder();
    let root = folder.path();
    record(port, cpus, root);
    let mounts = [
        ("net", "/sys/class/net"),
        ("interrupts", "/proc/interrupts"),
        ("irq", "/proc/irq"),
    ];
    let mounts =
        mounts.map(|(from, to)| format!("mount --bind {} {to}", root.join(from).display()));
    // `ip netns exec` has made a mount namespace.
    let script = format!("{} && exec \"$@\"", mounts.join(" && "));
    let plan = capture_on(port, &root.join("out.pcapng")).through(["sh", "-c", &script, "sh"]);
    let finished = plan.with(more).ready().stop();
    finished.success();
    finished
}

#[test]
fn the_converter_keeps_away_from_interrupts_or_warns() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-irq");
    let all = cpus();
    let (last, others) = all.split_last().expect("a CPU");
    let runs_on = |finished: &Finished, cpu: &usize| {
        let ready = finished.events("ready").remove(0);
        assert_eq!(ready["converter_cpu"], *cpu, "{ready}");
        finished.stderr.contains("receive interrupts")
    };
    let with_none = capture(&bench.rx, &[], &[]);
    assert!(!runs_on(&with_none, last), "{}", with_none.stderr);
    let kept_away = capture(&bench.rx, &[*last], &[]);
    let next = others.last().expect("another CPU");
    assert!(!runs_on(&kept_away, next), "{}", kept_away.stderr);

    let name = last.to_string();
    for beside in [
        capture(&bench.rx, &all, &[]),
        capture(&bench.rx, &[*last], &["--converter-cpu", &name]),
    ] {
        assert!(runs_on(&beside, last));
        let reported = warning(&beside, "receive interrupts");
        assert!(
            reported.contains(&format!("the converter runs on CPU {last}, ")),
            "{reported}"
        );
    }
}
