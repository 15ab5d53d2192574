//! Privileges of this process: capabilities and its user namespace.

use std::{fmt, fs, io, os::unix::fs::MetadataExt};

/// The file that tells the capabilities of the calling thread's process.
const STATUS: &str = "/proc/self/status";

/// Inode number of the initial user namespace: `PROC_USER_INIT_INO`
/// (`linux/proc_ns.h`), the same in every kernel since 3.8.
const INITIAL_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// The capabilities that tscap may need; the values are their bit numbers in
/// the kernel's masks (`linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Capability {
    /// CAP_NET_ADMIN: attach an XDP program, change offloads.
    NetAdmin = 12,
    /// CAP_NET_RAW: open a packet socket (promiscuous mode, frames sent through one).
    NetRaw = 13,
    /// CAP_SYS_ADMIN: run a program that calls a module, make network namespaces;
    /// stands in for CAP_BPF and CAP_PERFMON.
    SysAdmin = 21,
    /// CAP_PERFMON: load programs that read kernel clocks and use pointers freely.
    Perfmon = 38,
    /// CAP_BPF: create maps and load programs.
    Bpf = 39,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        })
    }
}

/// What loading and attaching an XDP program takes.
pub const XDP: [Capability; 3] = [Capability::Bpf, Capability::NetAdmin, Capability::Perfmon];

/// Why the capabilities are not known.
#[derive(Debug, thiserror::Error)]
pub enum CapsError {
    /// The file could not be read.
    #[error("cannot read the capabilities of this process from {STATUS}")]
    Read(#[source] io::Error),
    /// The file has no `CapEff` line with a hexadecimal number.
    #[error("cannot find CapEff in {STATUS}")]
    Parse,
}

/// Those of `needed` that are not in effect in this process.
///
/// # Errors
/// If /proc does not tell (it may not be mounted).
pub fn missing(needed: &[Capability]) -> Result<Vec<Capability>, CapsError> {
    let status = fs::read_to_string(STATUS).map_err(CapsError::Read)?;
    let effective = effective(&status).ok_or(CapsError::Parse)?;
    Ok(missing_from(effective, needed))
}

/// Whether this process is in the initial user namespace. The kernel wants
/// CAP_BPF and CAP_PERFMON there (`bpf_capable`, `linux/capability.h`): root
/// inside a rootless container has them in vain. (Its id map would not tell: a
/// namespace can map every id to itself.) `false` if /proc does not tell.
pub fn in_initial_user_namespace() -> bool {
    fs::metadata("/proc/self/ns/user").is_ok_and(|ns| ns.ino() == INITIAL_USER_NAMESPACE)
}

/// The effective set in the text of `/proc/self/status`.
fn effective(status: &str) -> Option<u64> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
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
    fn the_effective_set_is_found() {
        let status = "Name:\tcat\nCapPrm:\t000001ffffffffff\nCapEff:\t000000c000003000\n";
        assert_eq!(effective(status), Some(0x00c0_0000_3000));
        assert_eq!(effective("Name:\tcat\n"), None);
        assert_eq!(effective("CapEff:\tmany\n"), None);
    }

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
    }

    #[test]
    fn sys_admin_stands_in_for_bpf_and_perfmon_only() {
        let needed = [Bpf, NetAdmin, Perfmon, NetRaw];
        assert_eq!(missing_from(1 << 21, &needed), [NetAdmin, NetRaw]);
    }

    #[test]
    fn this_process_can_be_asked() {
        let missing = missing(&[Bpf]).expect("/proc is mounted");
        assert!(missing.is_empty() || missing == [Bpf]);
    }
}
