//! Kfuncs: those that read the CPU's counter, one of the kernel or of our module, and
//! those that turn its interrupts off.

mod absent;
mod btf;
mod checksum;
mod entered_frame;
mod fields;
mod kernel_counters;
mod layers;
mod transmit;

use std::sync::Arc;
use std::{io, slice};

use tscap_common::config::{
    HARDWARE_STAMP_CALL, IRQ_RESTORE_CALL, IRQ_SAVE_CALL, STAMP_CALL, VLAN_TAG_CALL,
};

pub use absent::NoKfunc;
pub use btf::BtfError;
pub(super) use checksum::ChecksumKfunc;
pub(super) use entered_frame::EnteredFrameLoads;
pub(super) use kernel_counters::counter_of;
pub use kernel_counters::{KernelCounters, NoCounters};
pub use layers::LayerKernel;
pub use transmit::TransmitKernel;

use self::btf::Btf;
use super::call::Call;
use tscap_base::kernel_files::{KernelFiles, read_bytes, read_if_there};
use tscap_clock::TscPath;
use tscap_network::bpf;

/// Our module (`tscap-ebpf/kmod`).
const MODULE: &str = "tscap";
/// Where the kernel shows its own types.
const KERNEL_TYPES: &str = "kernel/btf/vmlinux";

/// A kfunc that reads the counter.
#[derive(Clone, Debug)]
pub struct Kfunc {
    /// Which one.
    pub path: TscPath,
    call: Call,
}

impl Kfunc {
    /// Looks for the function of `path`; there is none of a perf event.
    ///
    /// # Errors
    /// When it can't be called, with the reason.
    pub fn find(path: TscPath, files: &KernelFiles) -> Result<Self, NoKfunc> {
        let call = match path {
            TscPath::Kernel => {
                in_kernel(files, [("bpf_get_cpu_time_counter", STAMP_CALL)]).map(|[call]| call)
            }
            TscPath::Module => in_module(files, "tscap_rdtsc"),
            TscPath::ModuleOrdered => in_module(files, "tscap_rdtsc_ordered"),
            TscPath::Perf => Err(NoKfunc::NotOne),
        }?;
        Ok(Self { path, call })
    }

    /// What a program calls.
    pub fn calls(&self) -> &[Call] {
        slice::from_ref(&self.call)
    }
}

/// The kfuncs of the kernel that turn the interrupts of a CPU off and on again, since
/// Linux 6.14 (commit c8e2ee1f3df0).
#[derive(Clone, Debug)]
pub struct InterruptKfuncs([Call; 2]);

impl InterruptKfuncs {
    /// Looks for them.
    ///
    /// # Errors
    /// When they can't be called, with the reason.
    pub fn find(files: &KernelFiles) -> Result<Self, NoKfunc> {
        let functions = [
            ("bpf_local_irq_save", IRQ_SAVE_CALL),
            ("bpf_local_irq_restore", IRQ_RESTORE_CALL),
        ];
        in_kernel(files, functions).map(Self)
    }

    /// What a program calls.
    pub fn calls(&self) -> &[Call] {
        &self.0
    }
}

/// A kfunc of the kernel that tells an XDP program bound to a device what is beside a frame.
#[derive(Clone, Debug)]
pub struct MetadataKfunc(Call);

impl MetadataKfunc {
    /// Looks for the one that tells the VLAN tag that was taken off, since Linux 6.8.
    ///
    /// # Errors
    /// When it can't be called, with the reason.
    pub fn vlan_tag(files: &KernelFiles) -> Result<Self, NoKfunc> {
        let function = ("bpf_xdp_metadata_rx_vlan_tag", VLAN_TAG_CALL);
        in_kernel(files, [function]).map(|[call]| Self(call))
    }

    /// Looks for the one that tells the stamp of the interface's own clock, since Linux 6.3.
    ///
    /// # Errors
    /// When it can't be called, with the reason.
    pub fn hardware_stamp(files: &KernelFiles) -> Result<Self, NoKfunc> {
        let function = ("bpf_xdp_metadata_rx_timestamp", HARDWARE_STAMP_CALL);
        in_kernel(files, [function]).map(|[call]| Self(call))
    }

    /// What a program calls.
    pub(crate) fn call(&self) -> &Call {
        &self.0
    }
}

/// Whether the kernel has tcx, since Linux 6.6; `None` if it doesn't show its functions.
pub fn has_tcx(files: &KernelFiles) -> Option<bool> {
    let bytes = types(files, KERNEL_TYPES).ok()??;
    let function = Btf::parse(&bytes).ok()?.function("tcx_link_attach").ok()?;
    Some(function.is_some())
}

/// Functions of the kernel, each with its marker.
fn in_kernel<const COUNT: usize>(
    files: &KernelFiles,
    functions: [(&'static str, u32); COUNT],
) -> Result<[Call; COUNT], NoKfunc> {
    let bytes = types(files, KERNEL_TYPES)?.ok_or(NoKfunc::NoKernelTypes)?;
    let types = Btf::parse(&bytes).map_err(unreadable(KERNEL_TYPES))?;
    let call = |(function, marker)| call_in(&types, function, marker);
    let calls: Vec<_> = functions.into_iter().map(call).collect::<Result<_, _>>()?;
    Ok(calls.try_into().expect("one for each function"))
}

/// A function of the kernel with these types.
fn call_in(types: &Btf<'_>, function: &'static str, marker: u32) -> Result<Call, NoKfunc> {
    let id = types.function(function).map_err(unreadable(KERNEL_TYPES))?;
    Ok(Call {
        marker,
        btf_id: id.ok_or(NoKfunc::NotInKernel { function })?,
        module: None,
    })
}

fn in_module(files: &KernelFiles, function: &'static str) -> Result<Call, NoKfunc> {
    let btf_id = id_in_module(files, function)?;
    let module = bpf::btf::of_module(MODULE).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => NoKfunc::NoPrivilege,
        _ => NoKfunc::Btf(source),
    })?;
    Ok(Call {
        marker: STAMP_CALL,
        btf_id,
        // Gone since its types were read.
        module: Some(Arc::new(module.ok_or_else(|| not_loaded(files))?)),
    })
}

fn id_in_module(files: &KernelFiles, function: &'static str) -> Result<u32, NoKfunc> {
    // Without them no module that is built here would have any.
    if !files.sys(KERNEL_TYPES).exists() {
        return Err(NoKfunc::NoKernelTypes);
    }
    let path = "kernel/btf/tscap";
    let Some(bytes) = types(files, path)? else {
        return Err(if files.sys("module").join(MODULE).exists() {
            NoKfunc::NoTypes
        } else {
            not_loaded(files)
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
