//! The High Precision Event Timer, mapped from `/dev/hpet` (IA-PC HPET Specification 1.0a). It is
//! only read.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

const DEVICE: &str = "/dev/hpet";
/// What the kernel lets be mapped (`hpet_mmap`, drivers/char/hpet.c).
const PAGE: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();
/// `COUNTER_CLK_PERIOD`, the upper half of the register of capabilities: fs a tick (2.3.4).
const PERIOD: usize = 0x004;
/// The lower half of the main counter (2.3.7). Linux reads no more of it (`read_hpet`,
/// arch/x86/kernel/hpet.c), and QEMU 7.2 takes no access of 64 bits (`hpet_ram_ops`,
/// hw/timer/hpet.c).
const COUNTER: usize = 0x0f0;
/// Longest period that the specification allows: 10 MHz.
const LONGEST_PERIOD_FS: u32 = 0x05f5_e100;
/// Ticks meanwhile, if it ticks at all.
const TICKS_WITHIN: Duration = Duration::from_millis(1);

/// The lower 32 bits of the main counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpetTicks(pub u32);

/// Why it can't be read.
#[derive(Debug, thiserror::Error)]
pub enum HpetError {
    /// There is none, or it is not for this user.
    #[error("cannot open {DEVICE}")]
    Open(#[source] io::Error),
    /// The kernel maps none: it was built without CONFIG_HPET_MMAP, or started with
    /// `hpet_mmap=0`.
    #[error("the kernel does not map {DEVICE}")]
    Map(#[source] io::Error),
    /// The register of capabilities is nonsense.
    #[error("{DEVICE} states a period of {0} fs, which no HPET has")]
    Period(u32),
    /// The kernel has turned it off.
    #[error("the counter of {DEVICE} stands: the kernel has not enabled it")]
    Stands,
}

/// The mapped registers.
#[derive(Debug)]
pub struct Hpet {
    page: NonNull<u8>,
    period_fs: u32,
}

impl Hpet {
    /// Maps it.
    ///
    /// # Errors
    /// [`HpetError`]; EACCES for all but root, EBUSY if every one of its timers is in use.
    pub fn open() -> Result<Self, HpetError> {
        let file = File::open(Path::new(DEVICE)).map_err(HpetError::Open)?;
        // SAFETY: a new mapping at a place that the kernel chooses; of the file that is mapped
        // there nobody can cut anything off.
        let page = unsafe {
            mmap(
                None,
                PAGE,
                ProtFlags::PROT_READ,
                MapFlags::MAP_SHARED,
                &file,
                0,
            )
        };
        let page = page.map_err(|errno| HpetError::Map(errno.into()))?;
        let mut hpet = Self {
            page: page.cast(),
            period_fs: 0,
        };
        hpet.period_fs = hpet.register(PERIOD);
        if !(1..=LONGEST_PERIOD_FS).contains(&hpet.period_fs) {
            return Err(HpetError::Period(hpet.period_fs));
        }
        let before = hpet.read();
        thread::sleep(TICKS_WITHIN);
        if hpet.read() == before {
            Err(HpetError::Stands)
        } else {
            Ok(hpet)
        }
    }

    /// A tick, fs, as the device states it.
    pub fn period_fs(&self) -> u32 {
        self.period_fs
    }

    /// Reads the counter: one access to the bus.
    #[inline]
    pub fn read(&self) -> HpetTicks {
        HpetTicks(self.register(COUNTER))
    }

    #[inline]
    fn register(&self, at: usize) -> u32 {
        // SAFETY: `at` is that of a register within the page, a multiple of 4, and the page is
        // mapped as long as `self` lives. Reading one of these two changes nothing.
        unsafe { self.page.add(at).cast::<u32>().read_volatile() }
    }
}

impl Drop for Hpet {
    fn drop(&mut self) {
        // SAFETY: what `open` mapped, which nobody refers to any more. It can't fail.
        let _ = unsafe { munmap(self.page.cast(), PAGE.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::text::causes::chain;

    /// Most machines that tests run on have none: then the reason is named.
    #[test]
    fn it_counts_up_or_says_why_not() {
        match Hpet::open() {
            Ok(hpet) => {
                let (first, second) = (hpet.read().0, hpet.read().0);
                assert!(second.wrapping_sub(first) < u32::MAX / 2);
            }
            Err(error) => assert!(chain(&error).contains(DEVICE), "{error}"),
        }
    }
}
