//! A kernel that lacks something, as far as a process can tell: its system calls
//! answer as that kernel's would.

#![allow(unsafe_code, reason = "seccomp filters have no safe wrapper")]

use std::io;

/// `BPF_PROG_TEST_RUN` (`linux/bpf.h`).
const BPF_PROG_TEST_RUN: u32 = 10;

/// From here on `bpf(BPF_PROG_TEST_RUN)` says EINVAL, as kernels before 5.18 do
/// when they are asked for live frames. For a child before it executes.
pub fn without_test_run() -> io::Result<()> {
    let statement = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    // struct seccomp_data: number of the call at 0, its first argument at 16.
    let mut filter = [
        statement(load, 0, 0, 0),
        statement(equal, 0, 3, libc::SYS_bpf as u32),
        statement(load, 0, 0, 16),
        statement(equal, 0, 1, BPF_PROG_TEST_RUN),
        statement(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
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
