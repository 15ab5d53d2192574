//! Why there is no kfunc, and what would help.

use std::io;

use super::BtfError;
use tscap_base::kernel_files::KernelFileError;

/// Why a kfunc can't be called.
#[derive(Debug, thiserror::Error)]
pub enum NoKfunc {
    /// The kernel has none.
    #[error("this kernel has no function {function}")]
    NotInKernel {
        /// The function.
        function: &'static str,
    },
    /// The kernel has no such tracepoint.
    #[error("this kernel has no tracepoint {name}")]
    NoTracepoint {
        /// The tracepoint.
        name: &'static str,
    },
    /// A structure of the kernel is not what programs know.
    #[error("this kernel has no {structure}.{member} where programs could read it")]
    NoMember {
        /// The structure.
        structure: &'static str,
        /// Its member.
        member: &'static str,
    },
    /// The kernel shows no types, by which functions are found.
    #[error("this kernel shows no types of its own (no /sys/kernel/btf/vmlinux)")]
    NoKernelTypes,
    /// Our module is not there.
    #[error("the kernel module tscap is not loaded")]
    NotLoaded {
        /// Whether the kernel would take it only signed.
        only_signed: bool,
    },
    /// Our module was built without types.
    #[error("the kernel module tscap is loaded, but has no types (no /sys/kernel/btf/tscap)")]
    NoTypes,
    /// A module of that name without the function.
    #[error("the kernel module tscap that is loaded has no function {function}")]
    NotInModule {
        /// The function.
        function: &'static str,
    },
    /// The kernel gives the types of a module to none but an administrator.
    #[error("this process lacks CAP_SYS_ADMIN, without which no program calls a module")]
    NoPrivilege,
    /// Types in a form that is not known here.
    #[error("cannot read /sys/{path}")]
    Unreadable {
        /// The file below /sys.
        path: &'static str,
        /// Why.
        source: BtfError,
    },
    /// A file of the kernel could not be read.
    #[error(transparent)]
    File(KernelFileError),
    /// The kernel refused its list of BTF.
    #[error("cannot look through the kernel's BTF objects")]
    Btf(#[source] io::Error),
    /// Perf events need none.
    #[error("perf events are not read by a kfunc")]
    NotOne,
}

/// What builds and loads the module, from the folder of the sources.
const LOAD: &str = "make -C tscap-ebpf/kmod && sudo insmod tscap-ebpf/kmod/tscap.ko";
/// The same where a package has installed this program.
const BY_DKMS: &str =
    "install the package tscap-dkms, which builds the module, then: `sudo modprobe tscap`";

impl NoKfunc {
    /// The command that would help, in the folder of the sources.
    pub fn fix(&self) -> Option<String> {
        match self {
            Self::NotLoaded { only_signed: false } => Some(LOAD.into()),
            Self::NoTypes | Self::NotInModule { .. } => Some(format!("sudo rmmod tscap; {LOAD}")),
            _ => None,
        }
    }

    /// What would help, where a package has installed this program or not.
    pub fn advice(&self, is_packaged: bool) -> String {
        match (self, self.fix()) {
            (Self::NotLoaded { .. }, Some(_)) if is_packaged => BY_DKMS.into(),
            (_, Some(_)) if is_packaged => {
                format!("take the module of this version (`sudo rmmod tscap`): {BY_DKMS}")
            }
            (Self::NoTypes, Some(fix)) => {
                format!("build the module where pahole is installed, and load it anew: `{fix}`")
            }
            (Self::NotInModule { .. }, Some(fix)) => {
                format!("another module has that name, or an older one of tscap: `{fix}`")
            }
            (_, Some(fix)) => format!("build and load the module: `{fix}`"),
            (Self::NotLoaded { .. }, None) => {
                "this kernel takes signed modules only (Secure Boot, lockdown): let DKMS build \
                 and sign the module, and have its key enrolled: mokutil --import \
                 /var/lib/dkms/mok.pub, then boot anew"
                    .into()
            }
            (Self::NoPrivilege, None) => "run as root".into(),
            (Self::NotInKernel { .. } | Self::NoKernelTypes, None) => {
                "a kernel with its types (CONFIG_DEBUG_INFO_BTF), as distributions have, and the \
                 module tscap"
                    .into()
            }
            _ => "--clock ktime works everywhere".into(),
        }
    }
}
