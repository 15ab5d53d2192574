//! On which CPU an interrupt is taken.

use super::affinity_file;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read, read_if_there};
use tscap_host::cpu_list;

/// The CPUs of an interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Those that it may go to.
    pub allowed: Vec<u32>,
    /// The one where it does go, as far as is known.
    pub on: Option<u32>,
}

impl Route {
    /// That of interrupt `irq` now.
    pub fn read(files: &KernelFiles, irq: u32) -> Result<Self, KernelFileError> {
        let cpus = |text: String| cpu_list::parse(&text).unwrap_or_default();
        let allowed = cpus(read(&affinity_file(files, irq))?);
        let effective = files.proc(format!("irq/{irq}/effective_affinity_list"));
        let effective = read_if_there(&effective)?.map_or_else(Vec::new, cpus);
        Ok(Self {
            on: effective.first().or(allowed.first()).copied(),
            allowed,
        })
    }
}
