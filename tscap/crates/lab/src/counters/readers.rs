//! The counters that a thread reads itself.

use std::path::{Path, PathBuf};

use super::access::{Burst, burst};
use super::counter::{Counter, Facts};
use super::schema::MissingCounter;
use tscap_base::kernel_files::{KernelFiles, numbered};
use tscap_base::text::causes::chain;
use tscap_references::{Sighting, sight};
use tscap_time::acpi_timer::{self, AcpiTimer};
use tscap_time::hpet::Hpet;
use tscap_time::ptp::{PtpDevice, PtpError};
use tscap_time::{raw_clock, tsc};

/// Open counters, for the thread that opened them.
pub(super) struct Readers {
    ptp: Option<(PathBuf, PtpDevice)>,
    hpet: Option<Hpet>,
    acpi: Option<AcpiTimer>,
}

/// Does something with how `$counter` is read, compiled for each by itself, so that nothing is
/// decided between two readings of the TSC.
macro_rules! with_reading {
    ($readers:expr, $counter:expr, $with:path $(, $argument:expr)*) => {
        match $counter {
            Counter::Tsc => $with($($argument,)* tsc::read, || Some(tsc::read_unordered().0)),
            Counter::TscOrdered => $with($($argument,)* tsc::read, || Some(tsc::read().0)),
            Counter::RawVdso => $with($($argument,)* tsc::read, || Some(raw_clock::by_vdso().0)),
            Counter::RawSyscall => $with($($argument,)* tsc::read, || Some(raw_clock::by_syscall().0)),
            Counter::Ptp => match &$readers.ptp {
                Some((_, ptp)) => $with($($argument,)* tsc::read, || Some(ptp.now().ok()?.0)),
                None => Default::default(),
            },
            Counter::Hpet => match &$readers.hpet {
                Some(hpet) => $with($($argument,)* tsc::read, || Some(hpet.read().0.into())),
                None => Default::default(),
            },
            Counter::AcpiPm => match &$readers.acpi {
                Some(acpi) => $with($($argument,)* tsc::read, || Some(acpi.read().0.into())),
                None => Default::default(),
            },
            Counter::AcpiPmSafe => match &$readers.acpi {
                Some(acpi) => $with($($argument,)* tsc::read, || Some(acpi.read_verified().0.into())),
                None => Default::default(),
            },
            Counter::Ktime | Counter::Tai | Counter::TscPerf | Counter::TscKernel
            | Counter::TscModule | Counter::TscModuleOrdered => Default::default(),
        }
    };
}

impl Readers {
    /// Opens what there is, and says why the rest is not. The PTP clock is `reference`, or the
    /// first one.
    ///
    /// # Errors
    /// If the reference can't be read.
    pub fn open(
        files: &KernelFiles,
        reference: Option<&Path>,
    ) -> Result<(Self, Vec<MissingCounter>), PtpError> {
        let mut absent = Vec::new();
        let mut lacks = |counters: &[Counter], why: String| {
            let each = counters.iter().map(|counter| MissingCounter {
                counter: *counter,
                why: why.clone(),
            });
            absent.extend(each);
        };
        let ptp = match (reference, first_ptp(files)) {
            (Some(path), _) => Some((path.to_owned(), PtpDevice::open(path)?)),
            (None, None) => {
                lacks(&[Counter::Ptp], "there is no PTP hardware clock".into());
                None
            }
            (None, Some(path)) => match PtpDevice::open(&path) {
                Ok(ptp) => Some((path, ptp)),
                Err(error) => {
                    lacks(&[Counter::Ptp], chain(&error));
                    None
                }
            },
        };
        let hpet = Hpet::open().map_err(|error| lacks(&[Counter::Hpet], chain(&error)));
        let acpi = AcpiTimer::open(files);
        let both = [Counter::AcpiPm, Counter::AcpiPmSafe];
        let acpi = acpi.map_err(|error| lacks(&both, chain(&error)));
        let readers = Self {
            ptp,
            hpet: hpet.ok(),
            acpi: acpi.ok(),
        };
        Ok((readers, absent))
    }

    /// Where the PTP clock is.
    pub fn ptp_path(&self) -> Option<&Path> {
        self.ptp.as_ref().map(|(path, _)| path.as_path())
    }

    /// What is known of a counter; `None` if it is not read here.
    pub fn facts(&self, counter: Counter) -> Option<Facts> {
        Some(match counter {
            Counter::Tsc | Counter::TscOrdered => Facts::CYCLES,
            Counter::RawVdso | Counter::RawSyscall => Facts::NANOSECONDS,
            Counter::Ptp => {
                self.ptp.as_ref()?;
                Facts::NANOSECONDS
            }
            Counter::Hpet => Facts {
                hertz: Some(1e15 / f64::from(self.hpet.as_ref()?.period_fs())),
                bits: 32,
            },
            Counter::AcpiPm | Counter::AcpiPmSafe => Facts {
                hertz: Some(acpi_timer::HERTZ as f64),
                bits: self.acpi.as_ref()?.bits(),
            },
            _ => return None,
        })
    }

    /// So many readings in a row.
    pub fn burst(&self, counter: Counter, readings: usize) -> Burst {
        with_reading!(self, counter, burst, readings)
    }

    /// What a bracket takes that nothing is read in.
    pub fn empty(readings: usize) -> Burst {
        burst(readings, tsc::read, || Some(0))
    }

    /// One value of it, as close as can be to one of the TSC.
    pub fn sight(&self, counter: Counter) -> Option<Sighting> {
        with_reading!(self, counter, sight)
    }
}

/// The device with the least number.
fn first_ptp(files: &KernelFiles) -> Option<PathBuf> {
    let numbers = numbered(&files.sys("class/ptp"), "ptp").ok()?;
    let first = numbers.into_iter().min()?;
    Some(PathBuf::from(format!("/dev/ptp{first}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    /// Anybody may read the TSC and the raw clock; each other one is read or named.
    #[test]
    fn every_counter_is_read_or_named() {
        let (readers, absent) = Readers::open(&Recorded::veth().files, None).unwrap();
        for counter in [Counter::Ptp, Counter::Hpet, Counter::AcpiPm] {
            let is_read = readers.facts(counter).is_some();
            let is_named = absent.iter().any(|absent| absent.counter == counter);
            assert!(is_read != is_named, "{counter:?}: {absent:?}");
            assert_eq!(readers.sight(counter).is_some(), is_read, "{counter:?}");
        }
        for counter in [
            Counter::Tsc,
            Counter::TscOrdered,
            Counter::RawVdso,
            Counter::RawSyscall,
        ] {
            let burst = readers.burst(counter, 50);
            assert_eq!((burst.cycles.len(), burst.failed), (50, 0), "{counter:?}");
            assert!(burst.values.is_sorted(), "{counter:?}");
            assert!(readers.facts(counter).is_some() && readers.sight(counter).is_some());
        }
        assert_eq!(Readers::empty(50).cycles.len(), 50);
    }

    #[test]
    fn a_reference_that_is_none_is_refused() {
        let files = Recorded::veth().files;
        let error = Readers::open(&files, Some(Path::new("/dev/null"))).err();
        assert!(
            matches!(error, Some(PtpError::NotAClock { .. })),
            "{error:?}"
        );
    }
}
