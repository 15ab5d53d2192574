//! From what is asked for to programs that stamp.

use super::Stamping;
use super::running::Running;
use tscap_base::failure::{Context as _, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::interface::find_usable;
use tscap_capture::{Event, Reporter, check, first_by, kfunc_of, load_failure};
use tscap_clock::StampPath;
use tscap_filter::LinkType;
use tscap_host::system;
use tscap_live::Scope;
use tscap_programs::hook::{AttachError, AttachPoint, AttachedProgram, Stamper, has_tcx};
use tscap_session::{Machine, open_counter, read_clock};

/// What the programs need of the kernel.
const NO_TCX: &str = "tscap stamp needs tcx, Linux 6.6 or later: a filter of clsact would stay \
     behind a process that is killed";
const NO_NATIVE: &str = "only native XDP is earlier than the kernel's own stamp: `tscap doctor -i` \
     says what this driver can";

impl Stamping {
    /// Checks this against the machine, loads the programs, reads the clocks and attaches.
    /// `on_event` is told what a user should know.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(&self, on_event: &mut dyn FnMut(Event)) -> Result<Running, Failure> {
        check::check_privileges()?;
        let files = KernelFiles::live();
        check_kernel(&files)?;
        let scope = Scope::open(self.namespace.as_ref(), "stamp")?;
        let kinds = [LinkType::Ethernet];
        let interface =
            scope.visit(|| find_usable(&self.interface, "stamp frames of", &kinds))??;
        let machine = Machine::with_clock(self.clock)?;
        let (cpus, possible) = (machine.cpus, machine.possible_cpus);
        let ports = self.send_times.entries();
        let load = |path| load(path, possible, &ports, &files);
        let load = |paths: &[StampPath]| first_by(paths, load);
        let clock = (self.clock, self.tsc_path);
        let reference = self.reference.as_ref();
        let read = read_clock(clock, machine.takes_tsc, reference, load);
        let (found, clocks, mut tracker) = read.await?;
        let (mut stamper, path, refused) = (found.loaded, found.path, found.refused);
        let counter = open_counter(path, &cpus, stamper.object(), &mut tracker);
        let counter = counter.map_err(|failure| refused.and(path, failure))?;
        if let Some(counter) = &counter {
            counter.say(&mut Reporter::new(on_event));
        }
        let stamps = (path, stamper);
        let clock = (self.reference.clone(), clocks, tracker);
        let mut running = Running::new(stamps, clock, counter, cpus);
        running.publish();
        let attached = scope.visit(|| running.attach(&interface))?;
        attached.map_err(|error| refusal(error, &self.interface))?;
        Ok(running)
    }
}

/// Refuses kernels that lack what this takes.
fn check_kernel(files: &KernelFiles) -> Result<(), Failure> {
    let is_preempt_rt = system::is_preempt_rt(files);
    if is_preempt_rt.context("cannot tell whether this kernel is PREEMPT_RT")? {
        return Err(Failure::new(
            "cannot stamp on a PREEMPT_RT kernel: there one program may interrupt another on the \
             same CPU, and the counters would not add up",
        )
        .hint("boot a kernel without PREEMPT_RT"));
    }
    match has_tcx(files) {
        Some(false) => Err(Failure::new("cannot stamp: this kernel has no tcx").hint(NO_TCX)),
        _ => Ok(()),
    }
}

fn load(
    path: StampPath,
    possible_cpus: u32,
    ports: &[u32],
    files: &KernelFiles,
) -> Result<Stamper, Failure> {
    let kfunc = kfunc_of(path, files)?;
    let stamper = Stamper::load(path, kfunc.as_ref(), possible_cpus, ports);
    stamper.map_err(|error| load_failure(path, error, "cannot load the programs"))
}

/// Why the programs can't be attached, and what would help.
fn refusal(error: AttachError, name: &str) -> Failure {
    let hint = match &error {
        AttachError::Busy { xdp, .. } => {
            let other = AttachedProgram::of(xdp);
            let removal = other.removal(name, xdp.mode);
            let other = other.name.unwrap_or_default();
            if other.starts_with("tscap_") && !other.starts_with("tscap_mark") {
                format!(
                    "it is of a tscap: start tscap stamp first, and tscap capture goes beside it, \
                 or capture with --hook tcx; {removal}"
                )
            } else {
                removal
            }
        }
        AttachError::Refused {
            at: AttachPoint::TcxIngress | AttachPoint::TcxEgress,
            ..
        } => NO_TCX.into(),
        _ => NO_NATIVE.into(),
    };
    Failure::from_error(error, format!("cannot stamp frames of {name}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_refusal_says_what_would_help() {
        let refused = |at, errno| {
            let error = AttachError::Refused {
                interface: "eth0".into(),
                at,
                source: io::Error::from_raw_os_error(errno).into(),
            };
            refusal(error, "eth0").to_string()
        };
        let no_native = refused(AttachPoint::NativeXdp, libc::EOPNOTSUPP);
        assert!(no_native.contains("eth0 at native XDP"), "{no_native}");
        assert!(no_native.contains("hint: only native XDP"), "{no_native}");
        for at in [AttachPoint::TcxIngress, AttachPoint::TcxEgress] {
            let no_tcx = refused(at, libc::EINVAL);
            assert!(no_tcx.contains("Linux 6.6"), "{no_tcx}");
        }
    }
}
