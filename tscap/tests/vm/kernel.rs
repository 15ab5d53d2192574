//! A kernel under test, and what is to be expected of it.

use std::path::PathBuf;

use crate::architecture::Architecture;

/// Names the folder with an unpacked kernel package.
const FOLDER: &str = "TSCAP_VM_KERNEL";

/// An unpacked kernel package.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Where it is unpacked.
    pub folder: PathBuf,
    /// As `uname -r` says it.
    pub release: String,
    /// What it runs on.
    pub architecture: Architecture,
    version: (u32, u32),
}

impl Kernel {
    /// The kernel that the environment names.
    pub fn from_environment() -> Result<Self, String> {
        let folder = std::env::var_os(FOLDER).ok_or_else(|| {
            format!("{FOLDER} names no unpacked kernel package: use `cargo xtask test --vm`")
        })?;
        let folder = PathBuf::from(folder);
        let modules = folder.join("lib/modules");
        let releases = modules
            .read_dir()
            .map_err(|error| format!("{}: {error}", modules.display()))?;
        let release = releases.flatten().next();
        let release = release.and_then(|entry| entry.file_name().into_string().ok());
        let release = release.ok_or_else(|| format!("{} is empty", modules.display()))?;
        let mut numbers = release.split('.').map_while(|number| number.parse().ok());
        let version = match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) => (major, minor),
            _ => return Err(format!("{release} is no version of Linux")),
        };
        Ok(Self {
            folder,
            release,
            architecture: Architecture::from_environment()?,
            version,
        })
    }

    /// Whether it has tcx.
    pub fn has_tcx(&self) -> bool {
        self.version >= (6, 6)
    }

    /// Whether the network interface that stamps frames itself is built for it.
    pub fn has_stamping_nic(&self) -> bool {
        self.version >= (6, 12)
    }

    /// Whether XDP programs may read perf events.
    pub fn reads_perf_events_in_xdp(&self) -> bool {
        self.version >= (6, 16)
    }

    /// Whether XDP programs may turn interrupts off.
    pub fn turns_interrupts_off_in_programs(&self) -> bool {
        self.version >= (6, 14)
    }

    /// Whether vmxnet3 has native XDP.
    pub fn has_native_vmxnet3(&self) -> bool {
        self.version >= (6, 6)
    }
}
