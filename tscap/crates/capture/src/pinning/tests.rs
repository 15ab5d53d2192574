use super::*;
use crate::event::nobody;
use crate::plan::plan_of;
use crate::selection::Interfaces;
use tscap_base::recorded::Recorded;
use tscap_live::settings::JournalFolder;
use tscap_network::recorded::link;

fn changes(machine: &Recorded) -> SettingsGuard {
    machine.run(std::process::id(), 1);
    let folder = JournalFolder::at(&machine.path("journals"), &machine.files);
    SettingsGuard::new(folder, machine.files.clone())
}

/// Steers and returns what is in force.
#[track_caller]
fn steer(pinning: &mut Pinning, on: &Link, at: AttachPoint, changes: &mut SettingsGuard) {
    pinning
        .steer(on, at, changes, &mut Reporter::new(&mut nobody))
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn virtio_interrupts_are_steered_and_given_back() {
    let machine = Recorded::virtio();
    let mut changes = changes(&machine);
    let eth0 = link("eth0", 2);
    steer(
        &mut Pinning::new(vec![1]),
        &eth0,
        AttachPoint::NativeXdp,
        &mut changes,
    );
    let affinities = || [37, 38, 39, 40, 41].map(|irq| machine.affinity(irq));
    assert_eq!(affinities(), ["0", "1", "0", "1", "0"]);
    assert_eq!(machine.rps("eth0", 0), "0", "of no use in native mode");
    drop(changes);
    assert_eq!(affinities(), ["0"; 5]);
}

#[test]
fn interfaces_go_on_where_the_last_one_left_off() {
    let machine = Recorded::intel();
    let mut changes = changes(&machine);
    let cpus = [2, 3];
    let mut pinning = Pinning::new(cpus.to_vec());
    steer(
        &mut pinning,
        &link("enp1s0f0", 2),
        AttachPoint::NativeXdp,
        &mut changes,
    );
    steer(
        &mut pinning,
        &link("enp1s0f1", 3),
        AttachPoint::NativeXdp,
        &mut changes,
    );
    let affinities = [121, 122, 123, 124].map(|irq| machine.affinity(irq));
    assert_eq!(affinities, ["2", "3", "2", "3"]);
    assert_eq!(machine.affinity(120), "0", "the link's own");
}

#[test]
fn generic_mode_needs_no_rps_where_interrupts_steer() {
    let machine = Recorded::mlx5();
    let mut changes = changes(&machine);
    machine.put("sys/class/net/ens3np0/queues/rx-2/rps_cpus", "2");
    let on = link("ens3np0", 4);
    steer(
        &mut Pinning::new(vec![0, 5]),
        &on,
        AttachPoint::GenericXdp,
        &mut changes,
    );
    let affinities = [91, 92, 101].map(|irq| machine.affinity(irq));
    assert_eq!(affinities, ["0", "5", "0"]);
    // Queue 2 led frames to CPU 1.
    let rps = [0, 1, 2].map(|queue| machine.rps("ens3np0", queue));
    assert_eq!(rps, ["0", "0", "00000001"]);
}

#[test]
fn a_veth_is_steered_by_rps_in_generic_mode_only() {
    let machine = Recorded::veth();
    let veth0 = link("veth0", 5);
    let mut native = changes(&machine);
    steer(
        &mut Pinning::new(vec![1]),
        &veth0,
        AttachPoint::NativeXdp,
        &mut native,
    );
    assert_eq!(machine.rps("veth0", 0), "0");
    assert!(!machine.path("journals").exists(), "nothing to pin");
    drop(native);
    let mut generic = changes(&machine);
    steer(
        &mut Pinning::new(vec![1]),
        &veth0,
        AttachPoint::GenericXdp,
        &mut generic,
    );
    assert_eq!(machine.rps("veth0", 0), "00000002");
    drop(generic);
    assert_eq!(machine.rps("veth0", 0), "00000000");
}

#[test]
fn what_is_refused_is_counted_and_the_rest_is_done() {
    let machine = Recorded::virtio();
    let mut changes = changes(&machine);
    // Both exist; one can't be written.
    let path = machine.path("proc/irq/38/smp_affinity_list");
    let interface = InterfaceId::here(&link("eth0", 2)).unwrap();
    let wanted = SteeringTargets::read(&machine.files, &link("eth0", 2))
        .unwrap()
        .irqs_on(&[1]);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let outcome = apply(
        &interface,
        wanted,
        &mut changes,
        &mut Reporter::new(&mut nobody),
    )
    .unwrap();
    assert_eq!((outcome.in_force, outcome.refused.len()), (1, 1));
    assert!(outcome.refused[0].contains("interrupt 38"), "{outcome:?}");
    assert_eq!(machine.affinity(40), "1");
}

#[test]
fn what_has_gone_meanwhile_is_not_in_force() {
    let machine = Recorded::virtio();
    let mut changes = changes(&machine);
    let interface = InterfaceId::here(&link("eth0", 2)).unwrap();
    let found = SteeringTargets::read(&machine.files, &link("eth0", 2)).unwrap();
    machine.put("proc/interrupts", " 38:  1  0  PCI-MSIX 1-edge  nvme0q1");
    let outcome = apply(
        &interface,
        found.irqs_on(&[0]),
        &mut changes,
        &mut Reporter::new(&mut nobody),
    );
    let outcome = outcome.unwrap();
    assert_eq!((outcome.in_force, outcome.refused.len()), (0, 2));
    assert!(outcome.refused[0].contains("is gone"), "{outcome:?}");
}

#[test]
fn without_a_journal_nothing_is_steered() {
    let machine = Recorded::virtio();
    let mut changes = changes(&machine);
    machine.put("journals", "a file");
    let eth0 = link("eth0", 2);
    let failure = Pinning::new(vec![1])
        .steer(
            &eth0,
            AttachPoint::NativeXdp,
            &mut changes,
            &mut Reporter::new(&mut nobody),
        )
        .unwrap_err()
        .to_string();
    assert!(failure.contains("journals"), "{failure}");
    assert!(failure.contains("hint: "), "{failure}");
    assert_eq!(machine.affinity(38), "0");
}

#[test]
fn another_namespaces_sysfs_is_refused() {
    let machine = Recorded::virtio();
    assert!(check_sysfs(&machine.files, &link("eth0", 2)).is_ok());
    let failure = check_sysfs(&machine.files, &link("eth0", 3)).unwrap_err();
    let failure = failure.to_string();
    assert!(failure.contains("another network namespace"), "{failure}");
    assert!(failure.contains("hint: "), "{failure}");
}

#[test]
fn a_converter_beside_receive_work_is_told() {
    let reporter = |more: &str, receiving_cpus: &[u32]| {
        let machine = Machine {
            interfaces: Interfaces::default(),
            ring_cpus: vec![0, 1],
            possible_cpus: 2,
            ring_bytes: 1 << 20,
            receiving_cpus: receiving_cpus.into(),
            converter_cpus: vec![1],
            takes_tsc: false,
            untrusted_tsc: None,
        };
        beside_receiving(&plan_of(more), &machine)
    };
    assert_eq!(reporter("", &[]), None);
    assert_eq!(reporter("", &[0]), None);
    let reported_of = |more, part: &str| {
        let reporter = reporter(more, &[0, 1]).expect("a warning");
        assert!(
            reporter.contains("CPU 1") && reporter.contains(part),
            "{reporter}"
        );
    };
    reported_of("", "takes receive interrupts");
    reported_of("", "other (--rx-cpu takes them elsewhere)");
    let reported_beside = reporter("", &[1]).expect("a warning");
    assert!(
        reported_beside.contains("(--converter-cpu gives"),
        "{reported_beside}"
    );
    reported_of("--converter-cpu 1", "takes receive interrupts");
    reported_of("--rx-cpu 0-1", "--rx-cpu gives to receiving");
}
