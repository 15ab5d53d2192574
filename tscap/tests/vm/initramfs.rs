//! What the guest boots into: busybox, tscap, the agent, what these two link to,
//! and the drivers of its devices.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tscap_testkit::command::must;

use crate::agent;
use crate::architecture::named_by;
use crate::kernel::Kernel;

/// Names a busybox of this machine that links to nothing.
const BUSYBOX: &str = "TSCAP_VM_BUSYBOX";
/// Names our kernel module, built for the kernel.
const MODULE: &str = "TSCAP_VM_MODULE";
/// Names the module of a network interface that stamps frames itself, if there is one for the
/// kernel.
const NIC: &str = "TSCAP_VM_NIC";
/// The drivers, and what clsact and a qdisc take, that [`agent::INIT`] loads; then devices of
/// other types, which checks load.
const DRIVERS: [&str; 16] = [
    "virtio_pci",
    "virtio_console",
    "virtio_net",
    "vmxnet3",
    "veth",
    "bonding",
    "sch_ingress",
    "cls_bpf",
    "sch_fq",
    "ipip",
    "ip_gre",
    "ip_vti",
    "ipvlan",
    "nlmon",
    "vsockmon",
    "vrf",
];

/// The image, and what goes into it, until it is dropped.
pub struct Initramfs {
    folder: PathBuf,
}

impl Initramfs {
    /// Makes the image for a kernel.
    pub fn build(kernel: &Kernel) -> Self {
        let name = format!("vm-{}", kernel.release);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if folder.exists() {
            // A run that was killed left it.
            fs::remove_dir_all(&folder).expect("remove the image of an earlier run");
        }
        let this = Self { folder };
        let busybox = named_by(BUSYBOX);
        this.copy(&kernel.architecture.busybox(&busybox), "/bin/busybox");
        this.module(&named_by(MODULE), kernel);
        if let Some(nic) = std::env::var_os(NIC) {
            this.copy(Path::new(&nic), agent::NIC_MODULE);
        }
        let architecture = kernel.architecture;
        let [tscap, agent] = architecture.built();
        for (program, to) in [
            (tscap, agent::TSCAP),
            (agent, agent::PROGRAM),
            (architecture.found("setpriv"), agent::SETPRIV),
            (architecture.found("xdp-loader"), agent::XDP_LOADER),
            (architecture.found("tc"), agent::TC),
            (architecture.found("ip"), agent::IP),
        ] {
            // Their debugging information is most of them.
            let mut strip = Command::new(architecture.tool("strip"));
            must(strip.arg("-o").arg(this.place(to)).arg(&program));
            for (library, to) in architecture.libraries(&program) {
                this.copy(&library, &to);
            }
        }
        // libxdp's dispatcher, and a program of xdp-filter.
        for object in ["xdp-dispatcher.o", "xdpfilt_dny_all.o"] {
            let path = format!("usr/lib/{}/bpf/{object}", architecture.triplet());
            this.copy(&architecture.root().join(&path), &path);
        }
        this.drivers(kernel);
        let init = this.place("/init");
        fs::write(&init, agent::INIT).expect("write init");
        fs::set_permissions(init, Permissions::from_mode(0o755)).expect("make init executable");
        for mount_point in ["proc", "sys", "dev", "run", "tmp"] {
            fs::create_dir(this.root().join(mount_point)).expect("a mount point");
        }
        this.pack(&busybox);
        this
    }

    /// The image.
    pub fn image(&self) -> PathBuf {
        self.folder.join("image")
    }

    fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Where the guest's `path` lies now, in a folder that is there.
    fn place(&self, path: &str) -> PathBuf {
        let place = self.root().join(path.trim_start_matches('/'));
        let parent = place.parent().expect("a file has a folder");
        fs::create_dir_all(parent).unwrap_or_else(|e| panic!("make {}: {e}", parent.display()));
        place
    }

    fn copy(&self, from: &Path, to: &str) {
        let to = self.place(to);
        let copied = fs::copy(from, &to);
        copied.unwrap_or_else(|e| panic!("copy {} to {}: {e}", from.display(), to.display()));
    }

    /// Our module, and two that are not as they should be.
    fn module(&self, module: &Path, kernel: &Kernel) {
        self.copy(module, agent::MODULE);
        let mut objcopy = Command::new(kernel.architecture.tool("objcopy"));
        objcopy.arg("--remove-section=.BTF").arg(module);
        must(objcopy.arg(self.place(agent::MODULE_WITHOUT_TYPES)));
        // What it is for is a string of its own: a release and options that there
        // are not (with CRCs of all symbols the kernel overlooks the release).
        let mut bytes = fs::read(module).expect("read the module");
        let magic = format!("vermagic={} SMP ", kernel.release);
        let at = bytes
            .windows(magic.len())
            .position(|it| it == magic.as_bytes());
        let end = at.expect("its kernel") + magic.len();
        bytes[end - 2] = b'9';
        fs::write(self.place(agent::MODULE_OF_OTHERS), bytes).expect("write a module");
    }

    /// Copies the drivers and what they need.
    fn drivers(&self, kernel: &Kernel) {
        let folder = format!("lib/modules/{}", kernel.release);
        let list = kernel.folder.join(&folder).join("modules.dep");
        let list = fs::read_to_string(&list).unwrap_or_else(|e| panic!("{}: {e}", list.display()));
        let mut wanted = BTreeSet::new();
        for driver in DRIVERS {
            add_with_dependencies(&list, driver, &mut wanted);
        }
        let lists = ["modules.dep", "modules.builtin"].map(str::to_owned);
        for file in wanted.into_iter().chain(lists) {
            let file = format!("{folder}/{file}");
            self.copy(&kernel.folder.join(&file), &file);
        }
    }

    fn pack(&self, busybox: &Path) {
        let image = File::create(self.image()).expect("create the image");
        let script = format!("{0} find . | {0} cpio -o -H newc", busybox.display());
        let status = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.root())
            .stdout(image)
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("run sh").success(), "cannot pack the image");
    }
}

impl Drop for Initramfs {
    fn drop(&mut self) {
        // The next run removes what is left.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Adds a module and what it needs, as `modules.dep` lists it:
/// `kernel/net/a.ko: kernel/net/b.ko kernel/net/c.ko`.
fn add_with_dependencies(list: &str, name: &str, wanted: &mut BTreeSet<String>) {
    let found = list.lines().find_map(|line| {
        let (module, needs) = line.split_once(':')?;
        (module_name(module) == name).then_some((module, needs))
    });
    // What is not in the list is built in.
    let Some((module, needs)) = found else {
        return;
    };
    if wanted.insert(module.to_owned()) {
        for need in needs.split_whitespace() {
            add_with_dependencies(list, module_name(need), wanted);
        }
    }
}

fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file)
}
