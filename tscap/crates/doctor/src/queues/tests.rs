use super::*;
use crate::check::Verdict::{Good, Warning};
use tscap_base::recorded::Recorded;
use tscap_live::settings::{Change, InterfaceId, Planned};
use tscap_network::xdp_features::XdpFeatures;

fn interface(name: &str) -> Interface {
    let mut interface = Interface::recorded();
    interface.link.name = name.into();
    interface
}

fn cpus(machine: &Recorded, online: &str, isolated: &str) {
    machine.put("sys/devices/system/cpu/online", online);
    machine.put("sys/devices/system/cpu/isolated", isolated);
}

/// The commands name the recorded tree.
fn live(check: &Check, machine: &Recorded) -> Check {
    let mut check = check.clone();
    if let Some(super::super::Remedy::Fix(command)) = &mut check.remedy {
        *command = command.replace(&machine.path("").display().to_string(), "/");
    }
    check
}

/// Runs the command that fixes it, on the recorded tree: then all is set that tscap would set.
#[track_caller]
fn run_fix(check: &Check, machine: &Recorded, interface: &Interface) {
    let Some(super::super::Remedy::Fix(command)) = &check.remedy else {
        panic!("no command: {check:?}");
    };
    let id = InterfaceId::here(&interface.link).unwrap();
    let plan = |SettingValue { setting, value }: &SettingValue| {
        Change::plan(&machine.files, &id, setting.clone(), value.clone()).unwrap()
    };
    assert!(!check.settings.is_empty(), "{check:?}");
    let status = std::process::Command::new("sh")
        .args(["-c", command])
        .status();
    assert!(status.unwrap().success(), "{command}");
    for setting in &check.settings {
        assert_eq!(plan(setting), Planned::AsWanted, "{setting:?}");
    }
}

#[test]
fn each_queue_is_to_have_a_cpu_of_its_own() {
    let machine = Recorded::intel();
    let card = interface("enp1s0f0");
    let affinity = |irq: u32, cpus: &str| {
        machine.put(&format!("proc/irq/{irq}/smp_affinity_list"), cpus);
    };
    let check = || live(&rx_queues(&machine.files, &card), &machine);

    // As recorded: all on CPU 0.
    cpus(&machine, "0-3", "");
    check()
        .is(Warning, "3 queues: interrupt 121 on CPU 0")
        .fixed_by(
            "echo 0 > /proc/irq/121/smp_affinity_list; echo 1 > /proc/irq/122/smp_affinity_list; \
         echo 2 > /proc/irq/123/smp_affinity_list",
        );
    run_fix(&rx_queues(&machine.files, &card), &machine, &card);
    check().is(Good, "interrupt 122 on CPU 1, interrupt 123 on CPU 2");

    affinity(123, "0-3");
    let effective = "proc/irq/123/effective_affinity_list";
    machine.put(effective, "3");
    cpus(&machine, "0-3", "2");
    check()
        .is(Warning, "interrupt 123 on CPU 3 (may go to 0-3)")
        .fixed_by(
            "echo 2 > /proc/irq/121/smp_affinity_list; \
             echo 2 > /proc/irq/122/smp_affinity_list; echo 2 > /proc/irq/123/smp_affinity_list",
        );
    run_fix(&rx_queues(&machine.files, &card), &machine, &card);
    machine.put(effective, "2");
    check().is(Good, "interrupt 121 on CPU 2, interrupt 122 on CPU 2");
}

#[test]
fn more_queues_than_cpus_must_share() {
    let machine = Recorded::virtio();
    cpus(&machine, "0-1", "");
    let check = || rx_queues(&machine.files, &interface("eth0"));
    // The other CPU is for the converter.
    check().is(Good, "interrupt 38 on CPU 0, interrupt 40 on CPU 0");
    machine.put("proc/irq/38/smp_affinity_list", "0-1");
    live(&check(), &machine)
        .is(Warning, "interrupt 38 on CPU 0 (may go to 0-1)")
        .fixed_by(
            "echo 0 > /proc/irq/38/smp_affinity_list; echo 0 > /proc/irq/40/smp_affinity_list",
        );
}

#[test]
fn an_interface_without_known_interrupts() {
    let machine = Recorded::veth();
    rx_queues(&machine.files, &interface("veth0")).is(Good, "1 queue without interrupts");
    machine.device("veth0", "pci0000:00/0000:09:00.0");
    rx_queues(&machine.files, &interface("veth0"))
        .is(Warning, "not known by their names")
        .advises("/proc/interrupts");
    // One CPU is all there is.
    assert_eq!(receiving_cpus(&[0], &[]), [0]);
}

#[test]
fn rps_matters_where_the_network_stack_stamps() {
    let machine = Recorded::veth();
    let mut veth = interface("veth0");
    let folder = "sys/class/net/veth0/queues/rx-0";
    rps(&machine.files, &veth).is(Good, "off");
    machine.put(&format!("{folder}/rps_cpus"), "2");
    machine.put(&format!("{folder}/rps_flow_cnt"), "512");
    rps(&machine.files, &veth).is(Good, "behind native XDP");
    veth.xdp_features = Some(XdpFeatures::none());
    live(&rps(&machine.files, &veth), &machine)
        .is(Warning, "on")
        .fixed_by(&format!(
            "echo 0 > /{folder}/rps_cpus; echo 0 > /{folder}/rps_flow_cnt"
        ));
    run_fix(&rps(&machine.files, &veth), &machine, &veth);
    rps(&machine.files, &veth).is(Good, "off");
}

#[test]
fn poll_threads_and_held_interrupts() {
    let machine = Recorded::veth();
    let veth = interface("veth0");
    threaded(&machine.files, &veth).is(Good, "off");
    deferred(&machine.files, &veth).is(Good, "none");
    machine.put("sys/class/net/veth0/threaded", "1");
    machine.put("proc/300/comm", "napi/veth0-12");
    machine.run(300, 7);
    live(&threaded(&machine.files, &veth), &machine)
        .is(Warning, "on, 1 poll thread")
        .fixed_by("echo 0 > /sys/class/net/veth0/threaded");
    machine.put("sys/class/net/veth0/gro_flush_timeout", "20000");
    deferred(&machine.files, &veth).is(Good, "none");
    machine.put("sys/class/net/veth0/napi_defer_hard_irqs", "2");
    live(&deferred(&machine.files, &veth), &machine)
        .is(Warning, "for 2 empty polls, up to 20000 ns each")
        .fixed_by("echo 0 > /sys/class/net/veth0/napi_defer_hard_irqs");
}

#[test]
fn the_files_of_another_namespace_are_not_taken_for_these() {
    let machine = Recorded::veth();
    let mut veth = interface("veth0");
    cpus(&machine, "0-1", "");
    assert!(
        all(&machine.files, &veth)
            .iter()
            .all(|it| it.verdict == Good)
    );
    veth.link.index = 6;
    for check in all(&machine.files, &veth) {
        check
            .is(Warning, "another network namespace")
            .advises("ip netns exec");
    }
    veth.netns = Some("lab".into());
    for check in all(&machine.files, &veth) {
        check.fixed_by("ip netns exec lab tscap doctor -i veth0");
    }
}
