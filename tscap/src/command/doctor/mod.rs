//! `tscap doctor`: gathers what the checks look at, and prints the report or the plan of
//! what to change.

mod fix;

use std::env;

use super::print::{json_line, print, print_coloured};
use super::{Context as _, Exit, Failure, Hint as _, terminal};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_base::text::escaped::escaped;
use tscap_capture::{ClockChoice, FILE_CAPABILITIES, interface, probe};
use tscap_cli::DoctorPlan;
use tscap_clock::{StampSource, TscPath};
use tscap_doctor::{
    self as doctor, Interface, InterfaceFacts, Machine, MachineFacts, Privileges, Probe, Report,
};
use tscap_filter::libpcap::Libpcap;
use tscap_host::caps::{self, Capability};
use tscap_host::installed::Installed;
use tscap_host::{process, system};
use tscap_live::settings::JournalFolder;
use tscap_network::netdev::Link;
use tscap_network::netns::NetnsId;
use tscap_network::{ethtool, napi, route, xdp_features};
use tscap_programs::hook::{AttachedProgram, Kfunc, generates_by_perf, has_tcx, offloads};
use tscap_time::timex::KernelClock;
use tscap_utc::{Roots, UtcReader};

/// Examines the machine, and an interface if one is given.
pub(super) fn run(plan: &DoctorPlan) -> Result<Exit, Failure> {
    let link = plan.interface.as_deref();
    let link = link
        .map(|name| interface::find(name, "examine"))
        .transpose()?;
    let files = KernelFiles::live();
    let facts = MachineFacts {
        kernel: escaped(&system::os()).into(),
        cpu: escaped(&system::hardware()).into(),
        virtualisation: doctor::hypervisor(&files).unwrap_or(None),
    };
    let mut checks = doctor::machine(&files, &machine(plan)?);
    let interface = link.map(interface);
    if let Some(interface) = &interface {
        checks.extend(doctor::interface(&files, interface));
    }
    if let (Some(interface), Some(choice)) = (&interface, plan.fix) {
        return fix::run(&checks, &interface.link, choice, plan.json);
    }
    let interface = interface.map(|it| InterfaceFacts {
        name: escaped(&it.link.name).into(),
        ifindex: it.link.index,
        driver: it.driver,
    });
    let report = Report::new(facts, interface, checks);
    if plan.json {
        print(&json_line(&report))?;
    } else {
        print_coloured(&report.text(plan.verbose, terminal::width(std::io::stdout())))?;
    }
    Ok(if report.is_bad() {
        Exit::Fault
    } else {
        Exit::Success
    })
}

fn machine(plan: &DoctorPlan) -> Result<Machine, Failure> {
    let program = env::current_exe().map_or("tscap".into(), |path| path.display().to_string());
    let privileges = privileges(&program)?;
    let may_load = privileges.may_load();
    let try_out = |clock, path| {
        if may_load {
            try_out(clock, path)
        } else {
            Probe::NotTried
        }
    };
    let probes = [
        (StampSource::Ktime, try_out(ClockChoice::Ktime, None)),
        (StampSource::Tai, try_out(ClockChoice::Tai, None)),
        (StampSource::Tsc, try_out(ClockChoice::Tsc, None)),
    ];
    let kfuncs = [TscPath::Kernel, TscPath::Module, TscPath::ModuleOrdered];
    let kfuncs = kfuncs.into_iter();
    let kfuncs = kfuncs.filter(|path| Kfunc::find(*path, &KernelFiles::live()).is_ok());
    let kfuncs = kfuncs.map(|path| (path, try_out(ClockChoice::Tsc, Some(path))));
    let interface = plan.interface.as_ref().map(|name| format!(" -i {name}"));
    let mut utc = UtcReader::open(Roots::live());
    let bounds = utc.read();
    let unreadable = utc.unreadable().into_iter();
    let unreadable = unreadable.map(|(source, why)| (source, why.to_owned()));
    Ok(Machine {
        utc: (bounds, unreadable.collect()),
        clock: KernelClock::read().map_err(|error| chain(&error)),
        privileges,
        probes: probes.into(),
        kfuncs: kfuncs.collect(),
        libpcap: Libpcap::open()
            .map(|library| library.version())
            .map_err(|error| chain(&error)),
        journals: JournalFolder::live(),
        again: format!("sudo {program} doctor{}", interface.unwrap_or_default()),
    })
}

fn privileges(program: &str) -> Result<Privileges, Failure> {
    let all = [&caps::XDP[..], &[Capability::NetRaw, Capability::SysAdmin]].concat();
    let lacks = caps::missing(&all).context("cannot read this process's capabilities")?;
    Ok(Privileges {
        lacks,
        in_initial_user_namespace: caps::in_initial_user_namespace()
            .context(format!("cannot look at {}", caps::USER_NAMESPACE))
            .hint("mount procfs at /proc: mount -t proc proc /proc")?,
        is_root: nix::unistd::geteuid().is_root(),
        to_capture: to_capture(&Installed::find(), program),
    })
}

/// The command after which this user may capture: with a copy of the program that nobody else
/// may execute, where there is none for a group.
fn to_capture(installed: &Installed, program: &str) -> String {
    match (&installed.group, &installed.copy) {
        (Some(group), _) => format!("sudo adduser \"$USER\" {group}"),
        (None, _) if installed.is_packaged && installed.is_debian => {
            "sudo dpkg-reconfigure tscap".into()
        }
        (None, Some(copy)) => {
            let copy = copy.display();
            format!(
                "sudo install -D -m 0750 -g \"$(id -gn)\" {program} {copy} && sudo setcap \
                 {FILE_CAPABILITIES} {copy}"
            )
        }
        (None, None) => format!("sudo setcap {FILE_CAPABILITIES} {program}"),
    }
}

fn try_out(clock: ClockChoice, path: Option<TscPath>) -> Probe {
    let is_kfunc = path.is_some_and(|path| path != TscPath::Perf);
    if clock == ClockChoice::Tsc && !is_kfunc && is_generator_reading() {
        return Probe::InUse;
    }
    match super::runtime().and_then(|runtime| runtime.block_on(probe(clock, path))) {
        Ok((path, host_bound_ns)) => Probe::Works {
            path,
            host_bound_ns,
        },
        Err(failure) => Probe::Refused {
            why: failure.chain(),
            what_next: failure.what_next().unwrap_or("dmesg may say more").into(),
        },
    }
}

/// Whether `tscap gen` reads a perf event; where the kernel doesn't tell, whether any
/// other tscap runs.
fn is_generator_reading() -> bool {
    generates_by_perf().unwrap_or_else(|_| {
        let another = process::running(&KernelFiles::live(), &["tscap"]);
        another.map_or(true, |another| another.is_some())
    })
}

fn interface(link: Link) -> Interface {
    let name = &link.name;
    Interface {
        driver: ethtool::driver(name).map(|driver| driver.name),
        features: offloads::read(name),
        coalescing: ethtool::coalescing(name).map_err(|error| chain(&error)),
        ring: ethtool::receive_ring(name).map_err(|error| chain(&error)),
        // A kernel that refuses to tell is one that can't.
        xdp_features: xdp_features::of(link.index).unwrap_or(None),
        occupant: link
            .xdp
            .as_ref()
            .map(AttachedProgram::of)
            .unwrap_or_default(),
        napi_ids: napi::ids(link.index).unwrap_or(None),
        netns: NetnsId::here().ok().and_then(NetnsId::name),
        carries_default_route: route::carriers_of_default()
            .is_ok_and(|carriers| carriers.contains(&link.index)),
        has_tcx: has_tcx(&KernelFiles::live()),
        link,
    }
}
