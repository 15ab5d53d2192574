//! What the kernel tells about a process: enough to know it again, and what it
//! takes of the CPUs.

use std::io;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use tscap_base::kernel_files::{KernelFileError, KernelFiles, numbered, read, read_if_there};

/// When a process or thread was started, in clock ticks since boot; together
/// with its number that names it for as long as the machine runs. `None` when
/// there is no such process any more, or only its exit status is left.
pub fn started(files: &KernelFiles, pid: u32) -> Result<Option<u64>, KernelFileError> {
    let stat = read_if_there(&files.proc(format!("{pid}/stat")))?;
    Ok(stat.as_deref().and_then(start_of))
}

/// Lets this process open as many files as the administrator allows; what cannot be had is
/// missed when a file is opened.
pub fn allow_most_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Lets this process open `fewest` files if the administrator allows that. Gives how many it may
/// open then.
pub fn allow_files(fewest: u64) -> u64 {
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return u64::MAX;
    };
    let wanted = fewest.min(most);
    if now >= wanted {
        return now;
    }
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, most) {
        Ok(()) => wanted,
        Err(_) => now,
    }
}

/// CPU time, user and system, that the calling thread has taken.
pub fn thread_cpu_time() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// CPU time, user and system, that all threads of a process have taken, also those
/// that have ended. It can be asked until the process has been waited for.
pub fn cpu_time(pid: Pid) -> io::Result<Duration> {
    Ok(clock_gettime(clock_getcpuclockid(pid)?)?.into())
}

/// Whether every thread of a process sleeps until something comes: none runs, waits for a
/// CPU or for a disk, or was stopped.
pub fn sleeps(files: &KernelFiles, pid: u32) -> Result<bool, KernelFileError> {
    for thread in numbered(&files.proc(format!("{pid}/task")), "")? {
        let stat = read_if_there(&files.proc(format!("{pid}/task/{thread}/stat")))?;
        let fields = stat.as_deref().and_then(from_the_state);
        if fields.is_some_and(|fields| !fields.starts_with('S')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The lowest priority (setpriority(2)).
pub const LOWEST_PRIORITY: i32 = 19;

/// Sets the niceness of a thread, by its number, 0 for the calling one; a kernel thread
/// too. Children that the thread starts inherit it. On Linux a priority is a thread's own
/// (setpriority(2), "C library/kernel differences").
pub fn set_nice(pid: u32, nice: i32) -> io::Result<()> {
    // SAFETY: takes plain numbers.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The name of a process, or nothing if it is gone. Kernel threads have theirs
/// whole since 5.17, longer than the 15 bytes of others (`proc_task_name`,
/// fs/proc/array.c).
pub fn name(files: &KernelFiles, pid: u32) -> Result<Option<String>, KernelFileError> {
    read_if_there(&files.proc(format!("{pid}/comm")))
}

/// Another process with one of these names, the first one found, by its number
/// and name; the kernel keeps 15 bytes of a name (`TASK_COMM_LEN`).
pub fn running<'a>(
    files: &KernelFiles,
    names: &[&'a str],
) -> Result<Option<(u32, &'a str)>, KernelFileError> {
    let pids = numbered(&files.proc(""), "")?.into_iter();
    for pid in pids.filter(|pid| *pid != std::process::id()) {
        let found = name(files, pid)?;
        let known = names.iter().find(|name| found.as_deref() == Some(**name));
        if let Some(known) = known {
            return Ok(Some((pid, *known)));
        }
    }
    Ok(None)
}

/// Whether systemd looks after services here.
pub fn has_systemd(files: &KernelFiles) -> Result<bool, KernelFileError> {
    Ok(name(files, 1)?.is_some_and(|name| name == "systemd"))
}

/// Names this boot of the machine.
pub fn boot_id(files: &KernelFiles) -> Result<String, KernelFileError> {
    read(&files.proc("sys/kernel/random/boot_id"))
}

/// A name that nothing else has: a random UUID.
pub fn new_id(files: &KernelFiles) -> Result<String, KernelFileError> {
    read(&files.proc("sys/kernel/random/uuid"))
}

/// The fields of `/proc/<pid>/stat` (proc_pid_stat(5)) from the state, field 3, on. The
/// name, field 2, may hold anything, also parentheses.
fn from_the_state(stat: &str) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.trim_start())
}

/// Field 22 unless the state says that it is dead.
fn start_of(stat: &str) -> Option<u64> {
    let mut fields = from_the_state(stat)?.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn the_start_is_found_behind_any_name() {
        let stat = |name: &str, state: &str| {
            format!("7 ({name}) {state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 8 9 10")
        };
        assert_eq!(start_of(&stat("tscap", "S")), Some(4711));
        assert_eq!(start_of(&stat("a) R 1 (", "R")), Some(4711));
        assert_eq!(start_of(&stat("tscap", "Z")), None);
        assert_eq!(start_of("7 (tscap) S 1"), None);
        assert_eq!(start_of(""), None);
    }

    #[test]
    fn one_sleeps_if_all_its_threads_do() {
        let machine = Recorded::veth();
        let thread = |id: u32, state: &str| {
            let stat = format!("{id} (a) R (b) {state} 1 7 7 0");
            machine.put(&format!("proc/7/task/{id}/stat"), &stat);
        };
        thread(7, "S");
        thread(8, "S");
        assert!(sleeps(&machine.files, 7).unwrap());
        for state in ["R", "D", "T"] {
            thread(8, state);
            assert!(!sleeps(&machine.files, 7).unwrap(), "{state}");
        }
    }

    #[test]
    fn processes_are_found_by_name() {
        let machine = Recorded::veth();
        machine.put("proc/7/comm", "irqbalance");
        machine.put("proc/8/comm", "sh");
        let running = |names| running(&machine.files, names).unwrap();
        assert_eq!(running(&["chronyd", "irqbalance"]), Some((7, "irqbalance")));
        assert_eq!(running(&["chronyd", "irqbalanc"]), None);
        assert!(!has_systemd(&machine.files).unwrap());
        machine.put(&format!("proc/{}/comm", std::process::id()), "tscap");
        assert_eq!(running(&["tscap"]), None, "not the caller");
        machine.put("proc/1/comm", "systemd");
        assert!(has_systemd(&machine.files).unwrap());
    }

    #[test]
    fn a_priority_is_this_threads_alone_and_is_inherited() {
        let nice = || {
            let output = std::process::Command::new("nice").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let before = nice();
        let lowered = std::thread::spawn(move || {
            set_nice(0, LOWEST_PRIORITY).unwrap();
            nice()
        });
        assert_eq!(lowered.join().unwrap(), "19\n");
        assert_eq!(nice(), before);
    }

    #[test]
    fn a_thread_has_its_own_cpu_time() {
        let before = thread_cpu_time().unwrap();
        while thread_cpu_time().unwrap() == before {}
        let other = std::thread::spawn(|| thread_cpu_time().unwrap());
        let other = other.join().unwrap();
        let process = cpu_time(Pid::from_raw(std::process::id().cast_signed())).unwrap();
        assert!(other < process && thread_cpu_time().unwrap() <= process);
    }

    #[test]
    fn the_cpu_time_of_a_process_outlives_it() {
        use nix::sys::wait::{Id, WaitPidFlag, waitid};
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(cpu_time(pid).unwrap() > Duration::from_micros(100));
        child.wait().unwrap();
        assert!(cpu_time(pid).is_err());
    }

    #[test]
    fn this_process_is_known_and_others_are_not() {
        let files = KernelFiles::live();
        let own = std::process::id();
        let first = started(&files, own).unwrap();
        assert!(first.is_some());
        assert_eq!(first, started(&files, own).unwrap());
        // Beyond PID_MAX_LIMIT (linux/threads.h).
        assert_eq!(started(&files, 1 << 30).unwrap(), None);
        assert_eq!(name(&files, 1 << 30).unwrap(), None);
        assert!(name(&files, own).unwrap().is_some());
        assert_eq!(boot_id(&files).unwrap().len(), 36);
    }
}
