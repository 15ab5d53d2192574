//! Kfuncs that read the CPU's counter: one of the kernel, or those of our module.

mod absent;
mod btf;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

pub use absent::NoKfunc;
pub use btf::BtfError;

use self::btf::Btf;
use crate::clock::TscPath;
use crate::sys::bpf;
use crate::sys::kernel_files::{KernelFiles, read_bytes, read_if_there};

/// Our module (`tscap-ebpf/kmod`).
const MODULE: &str = "tscap";
/// Where the kernel shows its own types.
const KERNEL_TYPES: &str = "kernel/btf/vmlinux";

/// A kfunc, as a program calls it.
#[derive(Clone, Debug)]
pub struct Kfunc {
    /// Which one.
    pub path: TscPath,
    /// Its id in the BTF of its module, or of the kernel.
    pub(super) btf_id: u32,
    /// The BTF of its module.
    module: Option<Arc<OwnedFd>>,
}

impl Kfunc {
    /// Looks for the function of `path`; there is none of a perf event.
    ///
    /// # Errors
    /// When it can't be called, with the reason.
    pub fn find(path: TscPath, files: &KernelFiles) -> Result<Self, NoKfunc> {
        match path {
            TscPath::Kernel => in_kernel(files, "bpf_get_cpu_time_counter"),
            TscPath::Module => in_module(files, path, "tscap_rdtsc"),
            TscPath::ModuleOrdered => in_module(files, path, "tscap_rdtsc_ordered"),
            TscPath::Perf => Err(NoKfunc::NotOne),
        }
    }

    /// The BTF of its module.
    pub(super) fn module(&self) -> Option<BorrowedFd<'_>> {
        self.module.as_deref().map(|btf| btf.as_fd())
    }

    /// Which one, and that it is in a module, of which there is no such BTF.
    #[cfg(test)]
    pub(super) fn made(path: TscPath, btf_id: u32) -> Self {
        let null = || std::fs::File::open("/dev/null").expect("it is always there");
        let module = (path != TscPath::Kernel).then(|| Arc::new(null().into()));
        Self {
            path,
            btf_id,
            module,
        }
    }
}

fn in_kernel(files: &KernelFiles, function: &'static str) -> Result<Kfunc, NoKfunc> {
    let bytes = types(files, KERNEL_TYPES)?.ok_or(NoKfunc::NoKernelTypes)?;
    let id = Btf::parse(&bytes).and_then(|types| types.function(function));
    let id = id.map_err(unreadable(KERNEL_TYPES))?;
    Ok(Kfunc {
        path: TscPath::Kernel,
        btf_id: id.ok_or(NoKfunc::NotInKernel { function })?,
        module: None,
    })
}

fn in_module(files: &KernelFiles, path: TscPath, function: &'static str) -> Result<Kfunc, NoKfunc> {
    let btf_id = id_in_module(files, function)?;
    let module = bpf::btf::of_module(MODULE).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => NoKfunc::NoPrivilege,
        _ => NoKfunc::Btf(source),
    })?;
    Ok(Kfunc {
        path,
        btf_id,
        // Gone since its types were read.
        module: Some(Arc::new(module.ok_or_else(|| not_loaded(files))?)),
    })
}

fn id_in_module(files: &KernelFiles, function: &'static str) -> Result<u32, NoKfunc> {
    let path = "kernel/btf/tscap";
    let Some(bytes) = types(files, path)? else {
        return Err(match files.sys("module").join(MODULE).exists() {
            true => NoKfunc::NoTypes,
            false => not_loaded(files),
        });
    };
    let base = types(files, KERNEL_TYPES)?.ok_or(NoKfunc::NoKernelTypes)?;
    let base = Btf::parse(&base).map_err(unreadable(KERNEL_TYPES))?;
    let id = Btf::parse(&bytes).and_then(|types| types.function_split_from(&base, function));
    let id = id.map_err(unreadable(path))?;
    id.ok_or(NoKfunc::NotInModule { function })
}

fn types(files: &KernelFiles, path: &str) -> Result<Option<Vec<u8>>, NoKfunc> {
    match read_bytes(&files.sys(path)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(NoKfunc::File(error)),
    }
}

fn unreadable(path: &'static str) -> impl FnOnce(BtfError) -> NoKfunc {
    move |source| NoKfunc::Unreadable { path, source }
}

fn not_loaded(files: &KernelFiles) -> NoKfunc {
    NoKfunc::NotLoaded {
        only_signed: takes_signed_modules_only(files),
    }
}

/// Under lockdown, as with Secure Boot (kernel_lockdown(7)), or when told so
/// (`module.sig_enforce`).
fn takes_signed_modules_only(files: &KernelFiles) -> bool {
    let read = |path| read_if_there(&files.sys(path)).ok().flatten();
    let lockdown = read("kernel/security/lockdown").unwrap_or_default();
    let enforced = read("module/module/parameters/sig_enforce");
    lockdown.contains('[') && !lockdown.contains("[none]") || enforced.as_deref() == Some("Y")
}

#[cfg(test)]
mod tests;
