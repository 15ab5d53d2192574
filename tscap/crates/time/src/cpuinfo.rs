//! What /proc/cpuinfo says the CPU can do : its field has another name on each
//! architecture.

use tscap_arch::FEATURES_FIELD;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read};

/// Names of the features of the first CPU, as the kernel names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flags(String);

impl Flags {
    /// Reads them.
    pub fn read(files: &KernelFiles) -> Result<Self, KernelFileError> {
        let text = read(&files.proc("cpuinfo"))?;
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let flags = fields.find(|(key, _)| key.trim() == FEATURES_FIELD);
        Ok(Self(flags.map_or("", |(_, flags)| flags).to_owned()))
    }

    /// Whether the CPU has the feature.
    pub fn has(&self, flag: &str) -> bool {
        self.0.split_whitespace().any(|it| it == flag)
    }

    /// Whether a hypervisor says that it is there (CPUID 1, ECX bit 31); those of arm64 do not.
    pub fn is_virtual(&self) -> bool {
        self.has("hypervisor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn flags_are_whole_words() {
        let machine = Recorded::veth();
        assert!(Flags::read(&machine.files).is_err());
        machine.put(
            "proc/cpuinfo",
            &format!(
                "processor\t: 0\n{FEATURES_FIELD}\t: fpu tsc constant_tsc hypervisor\nbugs\t\t:"
            ),
        );
        let flags = Flags::read(&machine.files).unwrap();
        assert!(flags.has("tsc") && flags.has("constant_tsc") && flags.is_virtual());
        assert!(!flags.has("constant") && !flags.has("nonstop_tsc"));
    }
}
