use std::os::unix::fs::symlink;

use super::*;

/// A recorded machine in a temporary folder.
struct Recorded {
    root: tempfile::TempDir,
    files: KernelFiles,
}

impl Recorded {
    fn new(interrupts: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(root.path());
        fs::create_dir_all(files.proc("")).unwrap();
        fs::write(files.proc("interrupts"), interrupts).unwrap();
        Self { root, files }
    }

    /// An interface of the device at `path` below /sys/devices.
    fn interface(&self, name: &str, path: &str) -> PathBuf {
        let device = self.files.sys("devices").join(path);
        fs::create_dir_all(device.join("net").join(name)).unwrap();
        let class = class_net::folder(&self.files, name);
        fs::create_dir_all(&class).unwrap();
        symlink(&device, class.join("device")).unwrap();
        device
    }

    fn msi(&self, device: &Path, irqs: &[u32]) {
        fs::create_dir_all(device.join("msi_irqs")).unwrap();
        for irq in irqs {
            fs::write(device.join(format!("msi_irqs/{irq}")), "msix\n").unwrap();
        }
    }

    fn found(&self, interface: &str) -> Vec<(u32, u32)> {
        let found = of_interface(&self.files, interface).unwrap();
        found.iter().map(|irq| (irq.irq, irq.queue)).collect()
    }
}

/// The bench machine's own (virtio over PCI, kernel 6.18), two queues added.
const VIRTIO: &str = "\
           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0     370756 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 37:          0          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config
 38:          0      17646 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 39:      13424          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
 40:          0      17646 PCI-MSIX-0000:00:03.0   3-edge      virtio2-input.1
 41:      13424          0 PCI-MSIX-0000:00:03.0   4-edge      virtio2-output.1
 44:       2304          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx
LOC:     357665     384400   Local timer interrupts
ERR:          0
";

#[test]
fn virtio_interrupts_belong_to_the_device_above() {
    let machine = Recorded::new(VIRTIO);
    let device = machine.interface("eth0", "pci0000:00/0000:00:03.0/virtio2");
    machine.msi(device.parent().unwrap(), &[37, 38, 39, 40, 41]);
    assert_eq!(machine.found("eth0"), [(38, 0), (40, 1)]);
    let first = &of_interface(&machine.files, "eth0").unwrap()[0];
    assert_eq!(first.name, "virtio2-input.0");
    assert!(is_named(&machine.files, 38, "virtio2-input.0").unwrap());
    assert!(!is_named(&machine.files, 39, "virtio2-input.0").unwrap());
    assert!(!is_named(&machine.files, 99, "virtio2-input.0").unwrap());
    let path = affinity_file(&machine.files, 38);
    assert_eq!(
        path,
        machine.root.path().join("proc/irq/38/smp_affinity_list")
    );
}

#[test]
fn intel_names_a_vector_for_each_pair_of_queues() {
    let machine = Recorded::new(
        "            CPU0       CPU1\n\
         120:   1  0  IR-PCI-MSIX-0000:01:00.0   0-edge  enp1s0f0\n\
         121:   1  0  IR-PCI-MSIX-0000:01:00.0   1-edge  enp1s0f0-TxRx-0\n\
         122:   1  0  IR-PCI-MSIX-0000:01:00.0   2-edge  enp1s0f0-TxRx-1\n\
         123:   1  0  IR-PCI-MSIX-0000:01:00.1   0-edge  enp1s0f1-TxRx-0\n",
    );
    let device = machine.interface("enp1s0f0", "pci0000:00/0000:01:00.0");
    machine.msi(&device, &[120, 121, 122]);
    assert_eq!(machine.found("enp1s0f0"), [(121, 0), (122, 1)]);
}

#[test]
fn mlx5_completion_vectors_are_queues_and_async_ones_are_not() {
    let machine = Recorded::new(
        "  90:  1  0  PCI-MSIX-0000:03:00.0  0-edge  mlx5_async0@pci:0000:03:00.0\n\
         \x20 91:  1  0  PCI-MSIX-0000:03:00.0  1-edge  mlx5_comp0@pci:0000:03:00.0\n\
         \x20101:  1  0  PCI-MSIX-0000:03:00.0  11-edge  mlx5_comp10@pci:0000:03:00.0\n\
         \x20 92:  1  0  PCI-MSIX-0000:03:00.0  2-edge  mlx5_comp1@pci:0000:03:00.0\n",
    );
    let device = machine.interface("ens3np0", "pci0000:00/0000:03:00.0");
    machine.msi(&device, &[90, 91, 92, 101]);
    assert_eq!(machine.found("ens3np0"), [(91, 0), (92, 1), (101, 10)]);
}

#[test]
fn two_interfaces_of_one_device_are_told_apart_by_name() {
    let machine = Recorded::new(
        " 50:  1  0  PCI-MSIX-0000:04:00.0  1-edge  eth0-0\n\
         \x2051:  1  0  PCI-MSIX-0000:04:00.0  2-edge  eth1-rx-0\n",
    );
    let device = machine.interface("eth0", "pci0000:00/0000:04:00.0");
    machine.interface("eth1", "pci0000:00/0000:04:00.0");
    machine.msi(&device, &[50, 51]);
    assert_eq!(machine.found("eth0"), [(50, 0)]);
    assert_eq!(machine.found("eth1"), [(51, 0)]);
}

#[test]
fn a_single_interrupt_has_the_interfaces_name() {
    let machine = Recorded::new(" 11:  5  0  IO-APIC  11-fasteoi  uhci_hcd:usb1, eth0\n");
    let device = machine.interface("eth0", "pci0000:00/0000:00:19.0");
    fs::write(device.join("irq"), "11\n").unwrap();
    assert_eq!(machine.found("eth0"), [(11, 0)]);
    // Without a line: 0.
    fs::write(device.join("irq"), "0\n").unwrap();
    assert!(machine.found("eth0").is_empty());
}

#[test]
fn a_veth_has_no_interrupts() {
    let machine = Recorded::new(VIRTIO);
    fs::create_dir_all(class_net::folder(&machine.files, "veth0")).unwrap();
    assert!(machine.found("veth0").is_empty());
    assert!(machine.found("none").is_empty());
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
