//! The guest's side: process 1 of the virtual machine, started by [`INIT`] when
//! the drivers are loaded.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use nix::unistd::Pid;
use tscap::command::capture::run_summed;
use tscap_testkit::command::wait_for;
use tscap_testkit::cpu_state;
use tscap_testkit::in_process;
use tscap_testkit::lines::Lines;
use tscap_testkit::probes;
use tscap_testkit::wait::until;

use crate::protocol::{Answer, HELLO, PORT, Reply, Request, receive, send};

/// Where this program lies in the guest.
pub const PROGRAM: &str = "/agent";
/// Where tscap lies.
pub const TSCAP: &str = "/bin/tscap";
/// Where our kernel module lies.
pub const MODULE: &str = "/tscap.ko";
/// The same without its types, as when it is built without pahole.
pub const MODULE_WITHOUT_TYPES: &str = "/without-types/tscap.ko";
/// The same built for another kernel.
pub const MODULE_OF_OTHERS: &str = "/of-others/tscap.ko";
/// Where the module of a network interface that stamps frames itself lies.
pub const NIC_MODULE: &str = "/tscap_nic.ko";
/// util-linux's, which can take privileges away; busybox's can't.
pub const SETPRIV: &str = "/setpriv";
/// The loader of libxdp, whose dispatcher runs several XDP programs on an interface.
pub const XDP_LOADER: &str = "/xdp-loader";
/// iproute2's; busybox's knows few queueing disciplines.
pub const TC: &str = "/tc";
/// iproute2's; busybox's knows no tunnels.
pub const IP: &str = "/ip";
/// The first argument of this program as a capture with a test-only XDP program.
pub const PROBE: &str = "probe";
/// The first argument of this program as a sender of frames with the TSC.
pub const TRAFFIC: &str = "traffic";
/// The first argument of this program as a holder of XDP programs.
pub const OTHERS: &str = "others";
/// The first argument of this program as a sender of frames out of an interface.
pub const SEND: &str = "send";
/// The same as a sender of datagrams.
pub const DATAGRAMS: &str = "datagrams";
/// The first argument of this program as a socket that is given receive times.
pub const STAMPED: &str = "stamped";
/// The first argument of this program as a session-reflector whose replies get send times.
pub const REPLIES: &str = "replies";
/// The first argument of this program as a runner of filters.
pub const FILTERS: &str = "filters";
/// The first argument of this program as a measurement that timers interrupt.
pub const INTERRUPTED: &str = "interrupted";

/// Process 1, until it becomes the agent.
pub const INIT: &str = "#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
modprobe -a virtio_pci virtio_console virtio_net vmxnet3 veth sch_ingress cls_bpf sch_fq
ip link set lo up
exec /agent
";

/// Answers the host until it goes, then powers the machine off.
pub fn serve() {
    let path = until("the agent's port", Duration::from_secs(30), port);
    let port = File::options().read(true).write(true).open(path);
    let mut port = port.expect("open the agent's port");
    send(&mut port, &HELLO).expect("greet the host");
    let mut requests = BufReader::new(port.try_clone().expect("the port twice"));
    let mut agent = Agent::default();
    while let Ok(Some(request)) = receive(&mut requests) {
        if send(&mut port, &agent.answer(request)).is_err() {
            break;
        }
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

/// The device of the port: without udev it has a number only.
fn port() -> Option<String> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?.flatten();
    let mut ports = ports.filter(|port| {
        fs::read_to_string(port.path().join("name")).is_ok_and(|name| name.trim() == PORT)
    });
    let name = ports.next()?.file_name().into_string().ok()?;
    Some(format!("/dev/{name}"))
}

/// `agent probe <program> <arguments of tscap>`: a capture with a test-only
/// program.
pub fn probe(arguments: &[String]) {
    let [program, arguments @ ..] = arguments else {
        panic!("the name of a program is missing");
    };
    let mut plan = in_process::plan_of(arguments.iter().map(String::as_str));
    plan.capture.programs = probes::programs(program, None);
    let (exit, _) = run_summed(&plan).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(exit, tscap::command::Exit::Success);
}

#[derive(Default)]
struct Agent {
    programs: BTreeMap<u32, Program>,
}

struct Program {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

impl Agent {
    fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Start(line) => self.start(&line),
            Request::WaitLine {
                pid,
                start,
                limit_ms,
            } => {
                let stderr = &self.program(pid)?.stderr;
                let limit = Duration::from_millis(limit_ms);
                let line = stderr.wait_for(limit, |line| line.starts_with(&start));
                let none = || format!("no line {start:?}; stderr so far:\n{}", stderr.so_far());
                line.map(Answer::Line).ok_or_else(none)
            }
            Request::Signal { pid, signal } => {
                self.program(pid)?;
                let signal = Signal::try_from(signal).map_err(|error| error.to_string())?;
                let sent = kill(Pid::from_raw(pid.cast_signed()), signal);
                done(sent, "send a signal")
            }
            Request::Wait { pid, limit_ms } => {
                let program = self.programs.remove(&pid).ok_or("no such program")?;
                program.end(Duration::from_millis(limit_ms))
            }
            Request::Read(path) => {
                let bytes = fs::read(&path).map_err(|error| format!("read {path}: {error}"))?;
                Ok(Answer::Bytes(bytes))
            }
            Request::Step(ns) => {
                let clock = ClockId::CLOCK_REALTIME;
                let now = clock_gettime(clock).map_err(|error| error.to_string())?;
                let then = now
                    + TimeSpec::from(libc::timespec {
                        tv_sec: ns.div_euclid(1_000_000_000),
                        tv_nsec: ns.rem_euclid(1_000_000_000),
                    });
                done(clock_settime(clock, then), "set the clock")
            }
            Request::Recorded => Ok(Answer::Counts(cpu_state::recorded())),
            Request::Received => Ok(Answer::Counts(cpu_state::received())),
        }
    }

    fn program(&self, pid: u32) -> Result<&Program, String> {
        let none = || format!("no program {pid} that still runs");
        self.programs.get(&pid).ok_or_else(none)
    }

    fn start(&mut self, line: &[String]) -> Reply {
        let [program, arguments @ ..] = line else {
            return Err("an empty command line".into());
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let mut child = child.map_err(|error| format!("start {program}: {error}"))?;
        let program = Program {
            stdout: Lines::collect(child.stdout.take().expect("piped")),
            stderr: Lines::collect(child.stderr.take().expect("piped")),
            child,
        };
        let pid = program.child.id();
        self.programs.insert(pid, program);
        Ok(Answer::Pid(pid))
    }
}

impl Program {
    fn end(mut self, limit: Duration) -> Reply {
        let status = wait_for(&mut self.child, limit);
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let (stdout, stderr) = (self.stdout.finish(), self.stderr.finish());
        let status = status.ok_or_else(|| format!("no end in {limit:?}; stderr:\n{stderr}"))?;
        Ok(Answer::Ended {
            status: status.into_raw(),
            stdout,
            stderr,
        })
    }
}

fn done<E: std::fmt::Display>(result: Result<(), E>, what: &str) -> Reply {
    let failed = |error| format!("{what}: {error}");
    result.map(|()| Answer::Done).map_err(failed)
}
