//! Receive work on a CPU of its own: by the kernel thread that polls for the
//! receiving end (`napi_threaded_poll`, net/core/dev.c), pinned.

use std::io;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::pair::Pair;
use tscap_base::kernel_files::{KernelFiles, write};
use tscap_host::{affinity, process};
use tscap_network::{class_net, napi};

/// As little as possible comes before the thread, as nothing comes before an
/// interrupt.
const FIRST: i32 = -20;

/// Lets the receiving end be polled for on `cpu`; on the sender's, as usual, without
/// one. It must have an XDP program or GRO, or there is nothing that polls.
///
/// # Errors
/// ENOENT before Linux 5.12, which has no such threads.
pub(super) fn poll_on(pair: &Pair, cpu: Option<u32>) -> io::Result<()> {
    let rx = &pair.rx;
    pair.rx_netns.within(|| {
        // The sysfs of a namespace shows its interfaces where it was mounted in it;
        // this mount goes with the thread.
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        let none = MsFlags::empty();
        mount(Some("sysfs"), "/sys", Some("sysfs"), none, None::<&str>)?;
        let files = KernelFiles::live();
        let threaded = class_net::folder(&files, &rx.name).join("threaded");
        let value = if cpu.is_some() { "1" } else { "0" };
        write(&threaded, value).map_err(io::Error::other)?;
        let Some(cpu) = cpu else { return Ok(()) };
        let ids = napi::ids(rx.index)?;
        let threads = napi::kthreads(&files, &rx.name, ids.as_deref());
        let threads = threads.map_err(io::Error::other)?;
        if threads.is_empty() {
            return Err(io::Error::other("no kernel thread polls for the veth"));
        }
        for thread in threads {
            affinity::set_of_thread(thread.pid, &[cpu])?;
            // Without CAP_SYS_NICE others may come before it.
            let _ = process::set_nice(thread.pid, FIRST);
        }
        Ok(())
    })
}
