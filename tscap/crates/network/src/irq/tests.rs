use super::*;
use tscap_base::recorded::Recorded;

fn found(machine: &Recorded, interface: &str) -> Vec<(u32, u32)> {
    let found = of_interface(&machine.files, interface).unwrap();
    found.iter().map(|irq| (irq.irq, irq.queue)).collect()
}

#[test]
fn virtio_interrupts_belong_to_the_device_above() {
    let machine = Recorded::virtio();
    assert_eq!(found(&machine, "eth0"), [(38, 0), (40, 1)]);
    let first = &of_interface(&machine.files, "eth0").unwrap()[0];
    assert_eq!(first.name, "virtio2-input.0");
    assert!(is_named(&machine.files, 38, "virtio2-input.0").unwrap());
    assert!(!is_named(&machine.files, 39, "virtio2-input.0").unwrap());
    assert!(!is_named(&machine.files, 99, "virtio2-input.0").unwrap());
    let path = affinity_file(&machine.files, 38);
    assert_eq!(path, machine.path("proc/irq/38/smp_affinity_list"));
}

#[test]
fn intel_names_a_vector_for_each_pair_of_queues() {
    let machine = Recorded::intel();
    assert_eq!(found(&machine, "enp1s0f0"), [(121, 0), (122, 1), (123, 2)]);
    assert_eq!(found(&machine, "enp1s0f1"), [(124, 0)]);
}

#[test]
fn mlx5_completion_vectors_are_queues_and_async_ones_are_not() {
    let machine = Recorded::mlx5();
    assert_eq!(found(&machine, "ens3np0"), [(91, 0), (92, 1), (101, 10)]);
}

#[test]
fn two_interfaces_of_one_device_are_told_apart_by_name() {
    let machine = Recorded::new(
        " 50:  1  0  PCI-MSIX-0000:04:00.0  1-edge  eth0-0\n \
         51:  1  0  PCI-MSIX-0000:04:00.0  2-edge  eth1-rx-0",
    );
    for interface in ["eth0", "eth1"] {
        machine.device(interface, "pci0000:00/0000:04:00.0");
    }
    machine.msi("pci0000:00/0000:04:00.0", &[50, 51]);
    assert_eq!(found(&machine, "eth0"), [(50, 0)]);
    assert_eq!(found(&machine, "eth1"), [(51, 0)]);
}

#[test]
fn a_single_interrupt_has_the_interfaces_name() {
    let machine = Recorded::new(" 11:  5  0  IO-APIC  11-fasteoi  uhci_hcd:usb1, eth0");
    machine.device("eth0", "pci0000:00/0000:00:19.0");
    machine.put("sys/devices/pci0000:00/0000:00:19.0/irq", "11");
    assert_eq!(found(&machine, "eth0"), [(11, 0)]);
    // A device without a line.
    machine.put("sys/devices/pci0000:00/0000:00:19.0/irq", "0");
    assert!(found(&machine, "eth0").is_empty());
}

#[test]
fn a_veth_has_no_interrupts() {
    let machine = Recorded::veth();
    assert!(found(&machine, "veth0").is_empty());
    assert!(found(&machine, "none").is_empty());
}

#[test]
fn names_say_which_queue() {
    for (name, queue) in [
        ("virtio0-input.7", Some(7)),
        ("virtio0-output.7", None),
        ("virtio0-config", None),
        ("i40e-eth0-TxRx-12", Some(12)),
        ("ice-eth0-TxRx-0", Some(0)),
        ("iavf-eth0-rx-1", Some(1)),
        ("iavf-eth0-tx-1", None),
        ("eth0-Tx-Rx-3", Some(3)),
        ("eth0-rx-0", Some(0)),
        ("eth0-tx-0", None),
        ("eth0-rxtx-2", Some(2)),
        ("eth0-txrx-2", Some(2)),
        ("eth0-fp-5", Some(5)),
        ("eth0-event-4", None),
        ("eth0-5", Some(5)),
        ("eth1-5", None),
        ("eth0", None),
        ("gve-ntfy-blk2@pci:0000:00:04.0", Some(2)),
        ("gve-mgmnt@pci:0000:00:04.0", None),
        ("mana_q1@pci:7870:00:00.0", Some(1)),
        ("mana_hwc@pci:7870:00:00.0", None),
        ("mlx5_async0@pci:0000:03:00.0", None),
        ("ena-mgmnt@pci:0000:00:05.0", None),
        ("PCI-MSIX-0000:00:03.0", None),
        ("1-edge", None),
    ] {
        assert_eq!(queue_of(name, "eth0"), queue, "{name}");
    }
}
