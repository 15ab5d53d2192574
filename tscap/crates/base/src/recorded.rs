//! Recorded machines for tests: trees of procfs and sysfs in a temporary folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::kernel_files::KernelFiles;

/// A tree, removed on drop.
pub struct Recorded {
    root: tempfile::TempDir,
    /// Its procfs and sysfs.
    pub files: KernelFiles,
}

impl Recorded {
    /// A machine whose /proc/interrupts reads so.
    pub fn new(interrupts: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(root.path());
        let recorded = Self { root, files };
        recorded.put("proc/interrupts", interrupts);
        recorded.put("proc/sys/kernel/random/boot_id", "boot-1");
        recorded
    }

    /// The bench machine's own: virtio over PCI, kernel 6.18, a queue added.
    pub fn virtio() -> Self {
        let machine = Self::new(
            "           CPU0       CPU1\n \
             24:          1          0  IO-APIC   5-edge      ACPI:Ged\n \
             36:          0     370756 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
             37:          0          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n \
             38:          0      17646 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
             39:      13424          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0\n \
             40:          0      17646 PCI-MSIX-0000:00:03.0   3-edge      virtio2-input.1\n \
             41:      13424          0 PCI-MSIX-0000:00:03.0   4-edge      virtio2-output.1\n \
             44:       2304          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx\n\
             LOC:     357665     384400   Local timer interrupts\n\
             ERR:          0",
        );
        machine.interface("eth0", 2, 2);
        machine.device("eth0", "pci0000:00/0000:00:03.0/virtio2");
        machine.msi("pci0000:00/0000:00:03.0", &[37, 38, 39, 40, 41]);
        machine
    }

    /// Two ports of an Intel card: a vector for each pair of queues, and one
    /// under the interface's own name for the link.
    pub fn intel() -> Self {
        let machine = Self::new(
            "            CPU0       CPU1       CPU2       CPU3\n\
             120:   1  0  0  0  IR-PCI-MSIX-0000:01:00.0   0-edge  enp1s0f0\n\
             121:   1  0  0  0  IR-PCI-MSIX-0000:01:00.0   1-edge  enp1s0f0-TxRx-0\n\
             122:   1  0  0  0  IR-PCI-MSIX-0000:01:00.0   2-edge  enp1s0f0-TxRx-1\n\
             123:   1  0  0  0  IR-PCI-MSIX-0000:01:00.0   3-edge  enp1s0f0-TxRx-2\n\
             124:   1  0  0  0  IR-PCI-MSIX-0000:01:00.1   1-edge  enp1s0f1-TxRx-0",
        );
        machine.interface("enp1s0f0", 2, 3);
        machine.device("enp1s0f0", "pci0000:00/0000:01:00.0");
        machine.msi("pci0000:00/0000:01:00.0", &[120, 121, 122, 123]);
        machine.interface("enp1s0f1", 3, 1);
        machine.device("enp1s0f1", "pci0000:00/0000:01:00.1");
        machine.msi("pci0000:00/0000:01:00.1", &[124]);
        machine
    }

    /// A Mellanox card: completion vectors that don't name the interface.
    pub fn mlx5() -> Self {
        let machine = Self::new(
            "  90:  1  0  PCI-MSIX-0000:03:00.0  0-edge  mlx5_async0@pci:0000:03:00.0\n  \
             91:  1  0  PCI-MSIX-0000:03:00.0  1-edge  mlx5_comp0@pci:0000:03:00.0\n \
             101:  1  0  PCI-MSIX-0000:03:00.0  11-edge  mlx5_comp10@pci:0000:03:00.0\n  \
             92:  1  0  PCI-MSIX-0000:03:00.0  2-edge  mlx5_comp1@pci:0000:03:00.0",
        );
        machine.interface("ens3np0", 4, 3);
        machine.device("ens3np0", "pci0000:00/0000:03:00.0");
        machine.msi("pci0000:00/0000:03:00.0", &[90, 91, 92, 101]);
        machine
    }

    /// A veth interface: no device, no interrupts.
    pub fn veth() -> Self {
        let machine = Self::new(" 24:          1          0  IO-APIC   5-edge      ACPI:Ged");
        machine.interface("veth0", 5, 1);
        machine
    }

    /// An interface with `queues` receive queues, RPS off, NAPI not threaded.
    pub fn interface(&self, name: &str, ifindex: u32, queues: u32) {
        let folder = format!("sys/class/net/{name}");
        self.put(&format!("{folder}/ifindex"), &ifindex.to_string());
        let address = format!("02:00:00:00:00:{ifindex:02x}");
        self.put(&format!("{folder}/address"), &address);
        self.put(&format!("{folder}/threaded"), "0");
        for queue in 0..queues {
            self.put(&format!("{folder}/queues/rx-{queue}/rps_cpus"), "0");
            self.put(&format!("{folder}/queues/rx-{queue}/rps_flow_cnt"), "0");
        }
    }

    /// Makes `name` an interface of the device at `path` below /sys/devices.
    pub fn device(&self, name: &str, path: &str) {
        let device = self.path("sys/devices").join(path);
        fs::create_dir_all(device.join("net").join(name)).unwrap();
        let class = self.path("sys/class/net").join(name);
        fs::create_dir_all(&class).unwrap();
        symlink(&device, class.join("device")).unwrap();
    }

    /// Gives the device at `path` message-signalled interrupts, all on CPU 0.
    pub fn msi(&self, path: &str, irqs: &[u32]) {
        for irq in irqs {
            self.put(&format!("sys/devices/{path}/msi_irqs/{irq}"), "msix");
            self.put(&format!("proc/irq/{irq}/smp_affinity_list"), "0");
        }
    }

    /// Makes process `pid` run, started at `started`.
    pub fn run(&self, pid: u32, started: u64) {
        let stat = format!("{pid} (tscap) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0");
        self.put(&format!("proc/{pid}/stat"), &stat);
    }

    /// Ends process `pid`.
    pub fn end(&self, pid: u32) {
        fs::remove_dir_all(self.path(&format!("proc/{pid}"))).unwrap();
    }

    /// A path in the tree.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a file with a line.
    pub fn put(&self, path: &str, text: &str) {
        self.put_bytes(path, format!("{text}\n").as_bytes());
    }

    /// Writes these bytes into a file.
    pub fn put_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The line in a file.
    pub fn get(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap().trim().into()
    }

    /// The CPUs of an interrupt.
    pub fn affinity(&self, irq: u32) -> String {
        self.get(&format!("proc/irq/{irq}/smp_affinity_list"))
    }

    /// RPS of a queue.
    pub fn rps(&self, interface: &str, queue: u32) -> String {
        self.get(&format!(
            "sys/class/net/{interface}/queues/rx-{queue}/rps_cpus"
        ))
    }
}
