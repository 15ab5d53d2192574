//! Whether a PTP hardware clock has an oscillator of its own.

use std::path::Path;

use super::schema::Reference;
use tscap_base::kernel_files::{KernelFiles, read};

/// Drivers whose clock is made from the counter that this machine reads too, by what they call it,
/// and what it is.
const DEPENDENT: [(&str, &str); 5] = [
    ("KVM virtual PTP", "the clock of the virtual machine's host"),
    ("hyperv", "the clock of the virtual machine's host"),
    ("ptp_vmw", "the clock of the virtual machine's host"),
    ("vmclock", "the clock of the virtual machine's host"),
    (
        "Mock-up PTP clock",
        "a clock of the kernel, without a device",
    ),
];

impl Reference {
    /// What is known of a device.
    pub(super) fn of_device(path: &Path, files: &KernelFiles) -> Self {
        let device = path.file_name().unwrap_or_default().to_string_lossy();
        let name = files.sys(format!("class/ptp/{device}/clock_name"));
        let name = read(&name).unwrap_or_default();
        Self::Ptp {
            device: path.display().to_string(),
            dependent: dependence(&name),
            name,
        }
    }

    /// Its name in titles.
    pub fn title(&self) -> &str {
        match self {
            Self::Tsc => "the TSC",
            Self::Ptp { device, .. } => device,
        }
    }
}

fn dependence(name: &str) -> Option<String> {
    let mut known = DEPENDENT.into_iter();
    let (_, what) = known.find(|(known, _)| name.starts_with(known))?;
    Some(format!(
        "{what}, made from the counter that this machine reads"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn a_virtual_clock_is_no_independent_reference() {
        let machine = Recorded::veth();
        let of = |name: Option<&str>| {
            if let Some(name) = name {
                machine.put("sys/class/ptp/ptp3/clock_name", name);
            }
            Reference::of_device(Path::new("/dev/ptp3"), &machine.files)
        };
        let unknown = of(None);
        assert!(unknown.is_independent() && unknown.title() == "/dev/ptp3");
        assert!(of(Some("igb")).is_independent());
        for name in ["KVM virtual PTP", "hyperv", "vmclock0"] {
            assert!(!of(Some(name)).is_independent(), "{name}");
        }
        assert!(!Reference::Tsc.is_independent());
    }
}
