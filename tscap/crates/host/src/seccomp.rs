//! Which system calls a thread may make.

use std::io;

use seccompiler::{SeccompAction, SeccompFilter, apply_filter};
use tscap_arch::LEGACY_SYSTEM_CALLS;

/// What writing files takes, and reading clocks; and what the C library does by itself. With
/// [`LEGACY_SYSTEM_CALLS`], where there are any.
#[rustfmt::skip]
const FOR_WRITING: [libc::c_long; 58] = [
    // Files.
    libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64, libc::SYS_read, libc::SYS_pread64,
    libc::SYS_openat, libc::SYS_close, libc::SYS_dup, libc::SYS_fcntl,
    libc::SYS_lseek, libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fsync,
    libc::SYS_fdatasync, libc::SYS_sync_file_range, libc::SYS_fadvise64, libc::SYS_flock,
    libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_fstatfs,
    libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_readlinkat, libc::SYS_getcwd,
    libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_unlinkat,
    libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_ppoll,
    // Clocks; reads that the vDSO can't answer.
    libc::SYS_clock_gettime, libc::SYS_gettimeofday, libc::SYS_adjtimex,
    libc::SYS_clock_adjtime, libc::SYS_nanosleep, libc::SYS_clock_nanosleep,
    // Threads and memory.
    libc::SYS_futex, libc::SYS_sched_yield, libc::SYS_gettid, libc::SYS_getpid,
    libc::SYS_getrandom, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect,
    libc::SYS_madvise, libc::SYS_brk, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn, libc::SYS_sigaltstack, libc::SYS_restart_syscall, libc::SYS_tgkill,
    libc::SYS_sched_getaffinity, libc::SYS_exit, libc::SYS_exit_group,
];

/// Has every system call of this thread fail with EPERM, for good, but for those that writing
/// files and reading clocks take. It gets no new privileges by executing a program either.
///
/// # Errors
/// If the kernel has no seccomp.
pub fn only_write() -> io::Result<()> {
    let calls = FOR_WRITING.iter().chain(LEGACY_SYSTEM_CALLS);
    let rules = calls.map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into();
    let architecture = architecture.map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture);
    let program = filter.and_then(seccompiler::BpfProgram::try_from);
    apply_filter(&program.map_err(io::Error::other)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_thread_writes_files_and_does_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::thread::spawn(move || {
            only_write().unwrap();
            let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
            file.write_all(b"frames").unwrap();
            file.as_file().lock().unwrap();
            file.persist(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"frames");
            std::thread::sleep(std::time::Duration::from_millis(1));
            let refused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            let refused = std::process::Command::new("/bin/true").status();
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        })
        .join()
        .unwrap();
        // Other threads are free.
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    }
}
