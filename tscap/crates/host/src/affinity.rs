//! Which CPUs a thread runs on.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

const SELF: Pid = Pid::from_raw(0);

/// The CPUs that this thread may run on.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    cpus_of(SELF)
}

/// Pins this thread to one CPU.
pub fn pin_to(cpu: u32) -> io::Result<()> {
    set(SELF, &[cpu])
}

/// The CPUs that another thread may run on, by its number; a kernel thread too.
pub fn of_thread(pid: u32) -> io::Result<Vec<u32>> {
    cpus_of(thread(pid)?)
}

/// Sets the CPUs that another thread may run on.
pub fn set_of_thread(pid: u32, cpus: &[u32]) -> io::Result<()> {
    set(thread(pid)?, cpus)
}

/// `ESRCH` for a number that no thread can have; 0 would be this one.
fn thread(pid: u32) -> io::Result<Pid> {
    match i32::try_from(pid) {
        Ok(pid) if pid > 0 => Ok(Pid::from_raw(pid)),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

fn cpus_of(thread: Pid) -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(thread)?;
    Ok((0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect())
}

/// The CPU asked for, or the first one; `None` if it is not one of those allowed.
pub fn choose(asked: Option<u32>, allowed: &[u32]) -> Option<u32> {
    match asked {
        Some(cpu) => allowed.contains(&cpu).then_some(cpu),
        None => allowed.first().copied(),
    }
}

/// Lets this thread run on these CPUs.
pub fn allow(cpus: &[u32]) -> io::Result<()> {
    set(SELF, cpus)
}

fn set(thread: Pid, cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize)?;
    }
    Ok(sched_setaffinity(thread, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_pinned_and_given_back() {
        let (tell_number, number) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell_number.send(nix::unistd::gettid()).unwrap();
            ended.recv().unwrap_err();
        });
        let pid = number.recv().unwrap().as_raw().cast_unsigned();
        let before = of_thread(pid).unwrap();
        let last = *before.last().unwrap();
        set_of_thread(pid, &[last]).unwrap();
        assert_eq!(of_thread(pid).unwrap(), [last]);
        set_of_thread(pid, &before).unwrap();
        assert_eq!(of_thread(pid).unwrap(), before);
        drop(end);
        thread.join().unwrap();
        assert_eq!(
            allowed_cpus().unwrap(),
            before,
            "this thread was left alone"
        );
    }

    #[test]
    fn threads_that_cannot_be_are_not_this_one() {
        for pid in [0, 1 << 30, u32::MAX] {
            let error = of_thread(pid).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{pid}");
        }
    }
}
