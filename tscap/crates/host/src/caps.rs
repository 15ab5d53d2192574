//! Privileges of this process: capabilities and its user namespace.

use std::os::unix::fs::MetadataExt;
use std::{fmt, fs, io};

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};

/// Inode number of the initial user namespace: `PROC_USER_INIT_INO`
/// (`linux/proc_ns.h`), the same in every kernel since 3.8.
const INITIAL_USER_NAMESPACE: u64 = 0xEFFF_FFFD;
/// Where procfs tells the user namespace of this process.
pub const USER_NAMESPACE: &str = "/proc/self/ns/user";

/// The capabilities that tscap may need; the values are their bit numbers in
/// the kernel's masks (`linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Capability {
    /// CAP_CHOWN: give a file the group of the one that it replaces.
    Chown = 0,
    /// CAP_DAC_OVERRIDE: make files in folders of others.
    DacOverride = 1,
    /// CAP_FOWNER: replace files of others in folders with the sticky bit.
    Fowner = 3,
    /// CAP_SETGID: become a user of other groups.
    Setgid = 6,
    /// CAP_SETUID: become another user.
    Setuid = 7,
    /// CAP_NET_ADMIN: attach an XDP program, change offloads.
    NetAdmin = 12,
    /// CAP_NET_RAW: open a packet socket (promiscuous mode, frames sent through one).
    NetRaw = 13,
    /// CAP_SYS_ADMIN: run a program that calls a module, make and enter network namespaces;
    /// stands in for CAP_BPF and CAP_PERFMON.
    SysAdmin = 21,
    /// CAP_SYS_NICE: move poll threads of the kernel to other CPUs.
    SysNice = 23,
    /// CAP_PERFMON: load programs that read kernel clocks and use pointers freely.
    Perfmon = 38,
    /// CAP_BPF: create maps and load programs.
    Bpf = 39,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chown => "CAP_CHOWN",
            Self::DacOverride => "CAP_DAC_OVERRIDE",
            Self::Fowner => "CAP_FOWNER",
            Self::Setgid => "CAP_SETGID",
            Self::Setuid => "CAP_SETUID",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysNice => "CAP_SYS_NICE",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        })
    }
}

/// What loading and attaching an XDP program takes.
pub const XDP: [Capability; 3] = [Capability::Bpf, Capability::NetAdmin, Capability::Perfmon];

/// What root's threads need to make, replace and remove files in any folder.
pub const FOR_FILES: [Capability; 3] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::Fowner,
];

/// What becoming another user takes, with a file that is open already.
pub const TO_BECOME: [Capability; 3] = [Capability::Chown, Capability::Setgid, Capability::Setuid];

/// Those of `needed` that are not in effect in this thread.
///
/// # Errors
/// If the kernel does not tell.
pub fn missing(needed: &[Capability]) -> io::Result<Vec<Capability>> {
    Ok(missing_from(capabilities(None)?.effective.bits(), needed))
}

/// Gives up all capabilities of this thread for good but those of `kept` that it has.
/// Threads that it starts have no others. Programs that it executes have none, whoever runs
/// them: for root's, as for those whose files have capabilities or set the user, it takes
/// no_new_privs.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_only(kept: &[Capability]) -> io::Result<()> {
    set_no_new_privs(true)?;
    let kept = set_of(kept) & capabilities(None)?.permitted;
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// Puts into effect only those of `used` that this thread has. It may put the others into
/// effect again.
///
/// # Errors
/// If the kernel refuses.
pub fn use_only(used: &[Capability]) -> io::Result<()> {
    let sets = capabilities(None)?;
    let effective = set_of(used) & sets.permitted;
    set_capabilities(None, CapabilitySets { effective, ..sets })?;
    Ok(())
}

/// Whether this process has its privileges from the file that it executes, and not from who
/// started it: then the kernel has the C library be careful (`AT_SECURE`).
pub fn are_of_file() -> bool {
    // SAFETY: it reads a vector that the kernel gave this process, and takes no pointer.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Does `work`: programs that this thread executes meanwhile inherit those of `lent` that it
/// has. Only who has a capability can have a program inherit it, so that the program can tell
/// by [`has_inherited`] who has started it.
///
/// # Errors
/// If the kernel refuses.
pub fn lending<T>(lent: &[Capability], work: impl FnOnce() -> T) -> io::Result<T> {
    let before = capabilities(None)?;
    let inheritable = before.inheritable | set_of(lent) & before.permitted;
    let during = CapabilitySets {
        inheritable,
        ..before
    };
    set_capabilities(None, during)?;
    let done = work();
    set_capabilities(None, before)?;
    Ok(done)
}

/// Whether who has executed this program had it inherit all of `lent`.
///
/// # Errors
/// If the kernel does not tell.
pub fn has_inherited(lent: &[Capability]) -> io::Result<bool> {
    Ok(capabilities(None)?.inheritable.contains(set_of(lent)))
}

/// Whether this process is in the initial user namespace. The kernel wants
/// CAP_BPF and CAP_PERFMON there (`bpf_capable`, `linux/capability.h`): root
/// inside a rootless container has them in vain. (Its id map would not tell: a
/// namespace can map every id to itself.)
///
/// # Errors
/// If procfs is not mounted.
pub fn in_initial_user_namespace() -> io::Result<bool> {
    Ok(fs::metadata(USER_NAMESPACE)?.ino() == INITIAL_USER_NAMESPACE)
}

fn set_of(capabilities: &[Capability]) -> CapabilitySet {
    let bits = capabilities.iter().map(|it| 1 << *it as u8);
    CapabilitySet::from_bits_retain(bits.fold(0, std::ops::BitOr::bitor))
}

fn missing_from(effective: u64, needed: &[Capability]) -> Vec<Capability> {
    let has = |capability: Capability| effective >> (capability as u8) & 1 != 0;
    let lacks = |capability: &&Capability| match capability {
        Capability::Bpf | Capability::Perfmon => !has(**capability) && !has(Capability::SysAdmin),
        _ => !has(**capability),
    };
    needed.iter().filter(lacks).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{Capability::*, *};

    #[test]
    fn each_capability_has_its_bit() {
        let all = [NetAdmin, NetRaw, SysAdmin, Perfmon, Bpf];
        assert_eq!(missing_from(0, &all), all);
        assert_eq!(missing_from(u64::MAX, &all), []);
        assert_eq!(
            missing_from(1 << 12, &all),
            [NetRaw, SysAdmin, Perfmon, Bpf]
        );
        assert_eq!(missing_from(1 << 39 | 1 << 38 | 3 << 12, &all), [SysAdmin]);
        assert_eq!(set_of(&[Chown, DacOverride, Fowner]).bits(), 0b1011);
        assert_eq!(set_of(&[SysNice]), CapabilitySet::SYS_NICE);
        assert_eq!(set_of(&[Bpf]), CapabilitySet::BPF);
    }

    #[test]
    fn sys_admin_stands_in_for_bpf_and_perfmon_only() {
        let needed = [Bpf, NetAdmin, Perfmon, NetRaw];
        assert_eq!(missing_from(1 << 21, &needed), [NetAdmin, NetRaw]);
    }

    /// Root's programs would have all capabilities of root otherwise.
    #[test]
    fn programs_of_a_thread_without_capabilities_have_none() {
        let status = std::thread::spawn(|| {
            keep_only(&[]).unwrap();
            let mut cat = std::process::Command::new("cat");
            let output = cat.arg("/proc/self/status").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        });
        let status = status.join().unwrap();
        for line in [
            "CapPrm:\t0000000000000000",
            "CapEff:\t0000000000000000",
            "NoNewPrivs:\t1",
        ] {
            assert!(status.lines().any(|it| it == line), "{line} in\n{status}");
        }
    }

    #[test]
    fn what_is_given_up_is_gone_from_this_thread_alone() {
        let all = [Bpf, NetAdmin, Perfmon, NetRaw, SysAdmin];
        let before = missing(&all).unwrap();
        let in_thread = std::thread::spawn(move || {
            use_only(&[NetRaw]).unwrap();
            assert!(missing(&[Bpf]).unwrap() == [Bpf]);
            use_only(&all).unwrap();
            assert_eq!(missing(&all).unwrap(), before);
            keep_only(&[NetRaw]).unwrap();
            use_only(&all).unwrap();
            let left = missing(&all).unwrap();
            assert_eq!(left[..3], [Bpf, NetAdmin, Perfmon]);
            assert_eq!(left.last(), Some(&SysAdmin));
            assert_eq!(left.contains(&NetRaw), before.contains(&NetRaw));
            before
        });
        assert_eq!(missing(&all).unwrap(), in_thread.join().unwrap());
    }
}
