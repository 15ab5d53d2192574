//! Facts about the machine, for the header of the file and for sizing.

use std::{fs, io, path::Path};

use nix::sys::utsname::{UtsName, uname};

use tscap_base::kernel_files::{self, KernelFileError, KernelFiles, read_if_there};
use tscap_base::text::numbers::counted;

const ONLINE: &str = "/sys/devices/system/cpu/online";
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const MEMINFO: &str = "/proc/meminfo";

/// Why a fact is not known.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The kernel's file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The file does not hold what it should.
    #[error("cannot understand {path}: {content:?}")]
    Parse {
        /// The file.
        path: &'static str,
        /// Its content, or the start of it.
        content: String,
    },
}

/// Model and number of the processors: "AMD EPYC, 2 CPUs". Where the kernel does
/// not name the model (arm64) the architecture stands for it.
pub fn hardware() -> String {
    let model = processor();
    match online_cpus() {
        Ok(cpus) => format!("{model}, {}", counted(cpus.len() as u64, "CPU")),
        Err(_) => model,
    }
}

/// Model of the processors.
pub fn processor() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|cpuinfo| cpu_model(&cpuinfo).map(str::to_owned))
        .or_else(|| uname().ok().map(|uts| lossy(uts.machine())))
        .unwrap_or_else(|| "unknown processor".to_owned())
}

/// Kernel and architecture: "Linux 6.12.0 #1 SMP … x86_64".
pub fn os() -> String {
    uname().map_or_else(|_| "Linux".to_owned(), |uts| describe(&uts))
}

/// Numbers of the CPUs that are switched on, ascending.
///
/// # Errors
/// If /sys is not mounted or not understood.
pub fn online_cpus() -> Result<Vec<u32>, SystemError> {
    cpus(ONLINE)
}

/// How many CPUs this kernel can ever have: the highest possible number plus 1.
///
/// # Errors
/// If /sys is not mounted or not understood.
pub fn possible_cpus() -> Result<u32, SystemError> {
    let last = cpus(POSSIBLE)?.last().copied();
    // `cpus` returns at least one.
    Ok(last.unwrap_or(0) + 1)
}

/// Bytes of memory that programs can still have without swapping
/// (`MemAvailable`), for the whole machine: a cgroup may allow less.
///
/// # Errors
/// If /proc is not mounted or not understood.
pub fn memory_available_bytes() -> Result<u64, SystemError> {
    let meminfo = read(MEMINFO)?;
    memory_available(&meminfo).ok_or_else(|| not_understood(MEMINFO, &meminfo))
}

/// Whether this kernel is PREEMPT_RT. There bottom halves can be preempted, so
/// "one producer per CPU" needs a second look.
pub fn is_preempt_rt(files: &KernelFiles) -> Result<bool, KernelFileError> {
    let flag = read_if_there(&files.sys("kernel/realtime"))?;
    let version = kernel_files::read(&files.proc("sys/kernel/version"))?;
    Ok(says_preempt_rt(flag.as_deref(), &version))
}

fn read(path: &'static str) -> Result<String, SystemError> {
    fs::read_to_string(Path::new(path)).map_err(|source| SystemError::Read { path, source })
}

fn not_understood(path: &'static str, content: &str) -> SystemError {
    SystemError::Parse {
        path,
        content: content.chars().take(80).collect(),
    }
}

/// The CPUs listed in a file of /sys, at least one.
fn cpus(path: &'static str) -> Result<Vec<u32>, SystemError> {
    let list = read(path)?;
    parse_cpu_list(&list).ok_or_else(|| not_understood(path, &list))
}

/// The kernel's list format ("0-3,5"), ascending. `None` if it is anything else,
/// empty, or names a CPU beyond 65535 (the kernel stops at 8192, `NR_CPUS`).
pub(super) fn parse_cpu_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        if first > last
            || cpus
                .last()
                .is_some_and(|&before| before >= u32::from(first))
        {
            return None;
        }
        cpus.extend(u32::from(first)..=u32::from(last));
    }
    Some(cpus)
}

/// The first `model name` in the text of /proc/cpuinfo.
fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut models = fields.filter(|(key, _)| key.trim_end() == "model name");
    models.next().map(|(_, model)| model.trim())
}

/// `MemAvailable` in the text of /proc/meminfo, in bytes.
fn memory_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// `/sys/kernel/realtime` exists with the RT patches only; mainline (since 6.12)
/// says it in the version string alone.
fn says_preempt_rt(flag: Option<&str>, version: &str) -> bool {
    flag == Some("1") || version.split_whitespace().any(|word| word == "PREEMPT_RT")
}

fn describe(uts: &UtsName) -> String {
    let parts = [uts.sysname(), uts.release(), uts.version(), uts.machine()];
    parts.map(lossy).join(" ")
}

fn lossy(text: &std::ffi::OsStr) -> String {
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        let check = |list, cpus: Option<&[u32]>| {
            assert_eq!(parse_cpu_list(list).as_deref(), cpus, "{list:?}");
        };
        check("0\n", Some(&[0]));
        check("0-1\n", Some(&[0, 1]));
        check("0-3,5", Some(&[0, 1, 2, 3, 5]));
        check("1,3-4,8", Some(&[1, 3, 4, 8]));
        check("", None);
        check("\n", None);
        check("0-", None);
        check("3-1", None);
        check("0-2,2", None);
        check("0,x", None);
        check("0-4294967295", None);
    }

    #[test]
    fn cpu_models() {
        let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9554\n\nmodel name\t: B\n";
        assert_eq!(cpu_model(x86), Some("AMD EPYC 9554"));
        assert_eq!(cpu_model("CPU implementer\t: 0x41\n"), None);
    }

    #[test]
    fn memory() {
        let meminfo = "MemTotal:       8000000 kB\nMemAvailable:    123456 kB\n";
        assert_eq!(memory_available(meminfo), Some(123_456 * 1024));
        assert_eq!(memory_available("MemTotal: 1 kB\n"), None);
        assert_eq!(memory_available("MemAvailable: 12 pages\n"), None);
    }

    #[test]
    fn preempt_rt() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.38-1";
        assert!(!says_preempt_rt(None, dynamic));
        assert!(!says_preempt_rt(Some("0"), dynamic));
        assert!(says_preempt_rt(Some("1"), dynamic));
        assert!(says_preempt_rt(None, "#1 SMP PREEMPT_RT Debian 6.1.140-1"));
    }

    #[test]
    fn this_machine_has_facts() {
        let online = online_cpus().expect("/sys is mounted");
        let possible = possible_cpus().expect("/sys is mounted");
        assert!(online.iter().all(|&cpu| cpu < possible));
        assert!(memory_available_bytes().expect("/proc is mounted") > 0);
        assert!(hardware().contains("CPU"));
        assert!(os().starts_with("Linux "));
    }
}
