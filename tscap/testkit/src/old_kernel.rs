//! A kernel that lacks something, as far as a process can tell: its system calls
//! answer as that kernel's would.

#![allow(unsafe_code, reason = "seccomp filters have no safe wrapper")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// `BPF_PROG_TEST_RUN` (`linux/bpf.h`).
const BPF_PROG_TEST_RUN: u32 = 10;

/// Makes a child meet such a kernel from before it executes.
pub fn lacking(command: &mut Command, what: fn() -> io::Result<()>) {
    // SAFETY: `what` makes system calls only, on memory of its own stack.
    unsafe { command.pre_exec(what) };
}

/// `bpf(BPF_PROG_TEST_RUN)` says EINVAL, as kernels before 5.18 do when they are
/// asked for live frames.
pub fn test_run() -> io::Result<()> {
    refuse(libc::SYS_bpf, Some(BPF_PROG_TEST_RUN), libc::EINVAL)
}

/// `perf_event_open` says EACCES, as where it is forbidden.
pub fn perf() -> io::Result<()> {
    refuse(libc::SYS_perf_event_open, None, libc::EACCES)
}

/// From here on system call `number`, with this first argument or with any, fails.
fn refuse(number: libc::c_long, argument: Option<u32>, errno: libc::c_int) -> io::Result<()> {
    let statement = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    // Skips the look at the argument if any will do.
    let any = if argument.is_none() { 2 } else { 0 };
    // struct seccomp_data: number of the call at 0, its first argument at 16.
    let mut filter = [
        statement(load, 0, 0, 0),
        statement(equal, any, 3, number as u32),
        statement(load, 0, 0, 16),
        statement(equal, 0, 1, argument.unwrap_or(0)),
        statement(give, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        statement(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program outlives the call that copies it.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    if set {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
