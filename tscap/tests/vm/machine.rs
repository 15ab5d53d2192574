//! A virtual machine in QEMU without hardware support: what it does is right,
//! how long it takes means nothing.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tscap_testkit::files;
use tscap_testkit::lines::Lines;
use tscap_testkit::wait::until;

use crate::architecture::Architecture;
use crate::guest::Guest;
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::nic::{Kind, Nic};
use crate::protocol::{self, PORT};

/// More than a boot takes on a loaded machine.
const BOOT: Duration = Duration::from_secs(90);
/// Tries to boot.
const BOOTS: usize = 3;
/// More than QEMU takes to answer.
const ANSWER: Duration = Duration::from_secs(20);
/// How much of the console to show after a failure.
const CONSOLE_LINES: usize = 25;

/// What machines are booted from.
pub struct Rig {
    /// The kernel.
    pub kernel: Kernel,
    /// Its image of programs.
    pub initramfs: Initramfs,
}

impl Rig {
    /// Boots a machine with two CPUs and network interfaces of these kinds:
    /// `eth0`, `eth1`, …
    pub fn boot(&self, kinds: &[Kind]) -> Machine {
        self.boot_on(Processor::VaryingTsc, kinds)
    }

    /// The same with a processor of this kind. In about one boot of a hundred QEMU runs
    /// code that the kernel is patching, and the kernel ends before any of our programs
    /// runs: then it is booted again.
    pub fn boot_on(&self, processor: Processor, kinds: &[Kind]) -> Machine {
        let boots = (0..BOOTS).find_map(|_| self.try_to_boot(processor, kinds));
        boots.expect("the guest ends before it has booted")
    }

    fn try_to_boot(&self, processor: Processor, kinds: &[Kind]) -> Option<Machine> {
        let folder = files::folder();
        let agent = folder.path().join("agent");
        let mut command = self.qemu(processor);
        command.arg("-serial");
        command.arg(format!("file:{}", console(folder.path()).display()));
        command.args(["-device", "virtio-serial-pci", "-chardev"]);
        command.arg(format!(
            "socket,id=agent,path={},server=on,wait=off",
            agent.display()
        ));
        command.args([
            "-device",
            &format!("virtserialport,chardev=agent,name={PORT}"),
        ]);
        let nics = kinds.iter().enumerate();
        let nics: Vec<_> = nics
            .map(|(number, kind)| Nic::new(folder.path(), number, *kind))
            .collect();
        for nic in &nics {
            command.args(nic.qemu_arguments());
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut qemu = child.unwrap_or_else(|error| panic!("start {command:?}: {error}"));
        let monitor = qemu.stdin.take().expect("piped");
        let events = Lines::collect(qemu.stdout.take().expect("piped"));
        let mut processor = Qemu {
            child: qemu,
            monitor,
            events,
            folder,
        };
        processor.command(json!({ "execute": "qmp_capabilities" }));
        let agent = until("QEMU's socket", ANSWER, || {
            match UnixStream::connect(&agent) {
                Ok(stream) => Some(stream),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => panic!("connect to {}: {error}", agent.display()),
            }
        });
        let guest = Guest::greet(agent, BOOT)
            .map_err(|why| eprintln!("{}{why}", processor.console()))
            .ok()?;
        for nic in &nics {
            guest.must(&["ip", "link", "set", &nic.name, "up"]);
        }
        Some(Machine {
            guest,
            nics,
            qemu: processor,
        })
    }

    /// QEMU with everything but the devices. It dies with this process, however
    /// that ends. One thread runs both CPUs in turn: with one each (`thread=multi`)
    /// QEMU 7.2 sometimes runs a breakpoint that the kernel has already taken out
    /// again when it patches its code, which ends the guest by "Oops: int3".
    fn qemu(&self, processor: Processor) -> Command {
        let boot = self.kernel.folder.join("boot");
        let image = boot.join(format!("vmlinuz-{}", self.kernel.release));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        let parameters = match self.kernel.architecture {
            Architecture::Amd64 => {
                command.args(["qemu-system-x86_64", "-cpu", processor.name(), "-m", "512"]);
                "console=ttyS0 tsc=reliable no_timer_check"
            }
            // Without its own instructions for pointer authentication, which take QEMU half of
            // its time.
            Architecture::Arm64 => {
                command.args(["qemu-system-aarch64", "-M", "virt,gic-version=3"]);
                command.args(["-cpu", "max,pauth-impdef=on", "-m", "1024"]);
                "console=ttyAMA0"
            }
        };
        command.args(["-accel", "tcg,thread=single", "-smp", "2"]);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot"]);
        command
            .args(["-display", "none", "-qmp", "stdio", "-kernel"])
            .arg(image);
        command.arg("-initrd").arg(self.initramfs.image());
        let parameters = format!("{parameters} quiet panic=-1 ipv6.disable=1");
        command.args(["-append", &parameters]);
        command
    }
}

/// What processor a machine of x86-64 has: the counter of each arm64 has one rate.
#[derive(Clone, Copy, Debug)]
pub enum Processor {
    /// One whose TSC may change its rate, as far as it says.
    VaryingTsc,
    /// One of a model whose TSC does not (`early_init_intel`,
    /// arch/x86/kernel/cpu/intel.c); it still does not say so.
    ConstantTsc,
}

impl Processor {
    fn name(self) -> &'static str {
        match self {
            Self::VaryingTsc => "max",
            Self::ConstantTsc => "max,vendor=GenuineIntel,family=6,model=94,stepping=3",
        }
    }
}

fn console(folder: &Path) -> std::path::PathBuf {
    folder.join("console")
}

/// A running machine, which ends when this is dropped.
pub struct Machine {
    /// What runs in it.
    pub guest: Guest,
    /// Its network interfaces.
    pub nics: Vec<Nic>,
    /// What it runs in.
    pub qemu: Qemu,
}

fn event(line: &str, name: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    (value["event"] == name).then_some(value)
}

/// The process, and its monitor.
pub struct Qemu {
    child: Child,
    monitor: ChildStdin,
    events: Lines,
    folder: TempDir,
}

impl Qemu {
    /// What the console says at last.
    fn console(&self) -> String {
        let text = fs::read(console(self.folder.path())).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        let from = lines.len().saturating_sub(CONSOLE_LINES);
        format!("the console's last lines:\n{}\n", lines[from..].join("\n"))
    }

    /// Pulls a network interface out.
    pub fn unplug(&mut self, nic: &Nic) {
        let id = nic.id();
        self.command(json!({ "execute": "device_del", "arguments": { "id": id } }));
        let gone = self.events.wait_for(ANSWER, |line| {
            event(line, "DEVICE_DELETED").is_some_and(|event| event["data"]["device"] == id)
        });
        assert!(gone.is_some(), "{id} stays plugged in");
    }

    /// Gives the monitor a command; the first that fails ends the test.
    fn command(&mut self, command: Value) {
        protocol::send(&mut self.monitor, &command).expect("tell QEMU");
        let refused = |line: &str| {
            let answer: Value = serde_json::from_str(line).ok()?;
            answer.get("error").map(ToString::to_string)
        };
        let answer = self.events.wait_for(ANSWER, |line| {
            line.starts_with("{\"return\"") || refused(line).is_some()
        });
        let answer = answer.unwrap_or_else(|| panic!("QEMU says nothing to {command}"));
        assert_eq!(refused(&answer), None, "{command}");
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Both fail for a child that has been waited for: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprint!("{}", self.console());
        }
    }
}
