//! The power-management timer of ACPI, read at its port (ACPI Specification 6.5, 4.8.2.1).

use std::io;

use tscap_arch::Ports;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read_bytes};

/// The Fixed ACPI Description Table.
const TABLE: &str = "firmware/acpi/tables/FACP";
/// Ticks in a second (4.8.2.1).
pub const HERTZ: u64 = 3_579_545;
/// Offsets in the table (5.2.9): `PM_TMR_BLK`, `Flags`, `X_PM_TMR_BLK`.
const PORT: usize = 76;
const FLAGS: usize = 112;
const EXTENDED: usize = 208;
/// `TMR_VAL_EXT`: 32 bits instead of 24.
const IS_WIDE: u32 = 1 << 8;
/// `HW_REDUCED_ACPI`: there are no such ports.
const IS_REDUCED: u32 = 1 << 20;
/// Ports are one of the address spaces of a Generic Address Structure (5.2.3.2).
const SYSTEM_IO: u8 = 1;
/// The timer has four ports.
const PORTS: u16 = 4;
/// A chipset that needs more gives no time at all.
const ATTEMPTS: usize = 100;
/// Readings within which it ticks, if it does: each takes longer than a tick.
const TICKS_WITHIN: usize = 1_000;

/// What the timer shows: 24 or 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcpiTicks(pub u32);

/// Why it can't be read.
#[derive(Debug, thiserror::Error)]
pub enum AcpiTimerError {
    /// There is no ACPI, or its tables are not for this user.
    #[error("no table says where the timer is")]
    Table(#[from] KernelFileError),
    /// The table is cut off.
    #[error("the table FACP has {0} bytes only")]
    Short(usize),
    /// The machine has no timer.
    #[error(
        "the table FACP says that this machine has no such timer{}",
        if *reduced { ": its ACPI is hardware-reduced" } else { "" }
    )]
    None {
        /// Whether it has none of the ports of ACPI.
        reduced: bool,
    },
    /// It is at no port.
    #[error("the timer is at no I/O port, but in address space {0}")]
    Space(u8),
    /// The kernel gives this thread no port.
    #[error("cannot use the I/O port {port:#x} of the timer: that takes x86-64 and CAP_SYS_RAWIO")]
    Port {
        /// Which.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// It always shows the same.
    #[error("the timer at I/O port {0:#x} stands")]
    Stands(u16),
}

/// Where a timer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    port: u16,
    bits: u32,
}

/// The timer, for the thread that opened it: the kernel lets no other one use the port.
#[derive(Debug)]
pub struct AcpiTimer {
    bits: u32,
    ports: Ports,
}

impl AcpiTimer {
    /// Finds the port in the machine's table, and asks for it.
    ///
    /// # Errors
    /// [`AcpiTimerError`]; the table is for root only. A kernel that is locked down gives no
    /// ports (EPERM).
    pub fn open(files: &KernelFiles) -> Result<Self, AcpiTimerError> {
        let place = Place::of_table(&read_bytes(&files.sys(TABLE))?)?;
        let Place { port, bits } = place;
        let ports = Ports::open(port, PORTS);
        let ports = ports.map_err(|source| AcpiTimerError::Port { port, source })?;
        let timer = Self { bits, ports };
        let first = timer.read();
        if (0..TICKS_WITHIN).any(|_| timer.read() != first) {
            Ok(timer)
        } else {
            Err(AcpiTimerError::Stands(port))
        }
    }

    /// Its width, bits: 24 or 32.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Reads it once: one access to a port.
    #[inline]
    pub fn read(&self) -> AcpiTicks {
        AcpiTicks(self.ports.read_u32() & (u32::MAX >> (32 - self.bits)))
    }

    /// Reads it until three readings in a row are in order, for chipsets that do not latch it
    /// (`acpi_pm_read_verified`, drivers/clocksource/acpi_pm.c).
    #[inline]
    pub fn read_verified(&self) -> AcpiTicks {
        for _ in 1..ATTEMPTS {
            let [first, second, third] = [self.read(), self.read(), self.read()];
            if are_in_order(first, second, third) {
                return second;
            }
        }
        self.read()
    }
}

/// Whether three readings follow each other, one of which may have wrapped: then no two of them
/// are less than the one before, the first one being behind the last.
fn are_in_order(first: AcpiTicks, second: AcpiTicks, third: AcpiTicks) -> bool {
    let (AcpiTicks(v1), AcpiTicks(v2), AcpiTicks(v3)) = (first, second, third);
    let descents = [v1 > v2, v2 > v3, v3 > v1];
    descents.into_iter().filter(|descends| *descends).count() < 2
}

impl Place {
    fn of_table(table: &[u8]) -> Result<Self, AcpiTimerError> {
        let short = || AcpiTimerError::Short(table.len());
        let word = |at: usize| {
            let bytes = table.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let flags = word(FLAGS).ok_or_else(short)?;
        let bits = if flags & IS_WIDE == 0 { 24 } else { 32 };
        let reduced = flags & IS_REDUCED != 0;
        let none = AcpiTimerError::None { reduced };
        if reduced {
            return Err(none);
        }
        // Tables of ACPI 1.0 end before it; it is 0 where the other one counts.
        let extended = word(EXTENDED + 4).zip(word(EXTENDED + 8));
        let address = match extended {
            Some((low, high)) if (low, high) != (0, 0) => {
                let space = table[EXTENDED];
                if space != SYSTEM_IO {
                    return Err(AcpiTimerError::Space(space));
                }
                u64::from(high) << 32 | u64::from(low)
            }
            _ => word(PORT).ok_or_else(short)?.into(),
        };
        match u16::try_from(address) {
            Ok(0) | Err(_) => Err(none),
            Ok(port) => Ok(Self { port, bits }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;
    use tscap_base::text::causes::chain;

    /// A table with these words.
    fn table(words: &[(usize, u32)], length: usize) -> Vec<u8> {
        let mut table = vec![0; length];
        for (at, word) in words {
            table[*at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        table
    }

    fn refusal(table: &[u8]) -> String {
        Place::of_table(table).unwrap_err().to_string()
    }

    /// As QEMU's, of ACPI 1.0 and later; the extended address goes before the other.
    #[test]
    fn the_table_says_where_it_is() {
        let place =
            |words: &[(usize, u32)], length| Place::of_table(&table(words, length)).unwrap();
        let of = |port, bits| Place { port, bits };
        assert_eq!(place(&[(PORT, 0x608)], 116), of(0x608, 24));
        let wide = (FLAGS, IS_WIDE);
        assert_eq!(place(&[(PORT, 0x608), wide], 244), of(0x608, 32));
        let extended = [(PORT, 1), (EXTENDED, 1), (EXTENDED + 4, 0xb008)];
        assert_eq!(place(&extended, 244), of(0xb008, 24));
    }

    #[test]
    fn a_machine_without_one_is_told() {
        assert_eq!(refusal(&[0; 100]), "the table FACP has 100 bytes only");
        assert!(refusal(&table(&[], 244)).ends_with("no such timer"));
        let reduced = refusal(&table(&[(PORT, 0x608), (FLAGS, IS_REDUCED)], 244));
        assert!(reduced.ends_with("hardware-reduced"), "{reduced}");
        let in_memory = refusal(&table(&[(EXTENDED + 4, 0xfed0_0000)], 244));
        assert!(in_memory.ends_with("address space 0"), "{in_memory}");
        let too_far = refusal(&table(&[(PORT, 0x1_0608)], 244));
        assert!(too_far.ends_with("no such timer"), "{too_far}");
        let none = chain(&AcpiTimer::open(&Recorded::veth().files).unwrap_err());
        assert!(none.contains("no table") && none.contains("FACP"), "{none}");
    }

    /// The first reading of three that the chipset spoils is read again, a wrap is not.
    #[test]
    fn three_readings_are_in_order_or_not() {
        let in_order = |values: [u32; 3]| {
            let [first, second, third] = values.map(AcpiTicks);
            are_in_order(first, second, third)
        };
        for good in [
            [1, 2, 3],
            [5, 5, 5],
            [0xff_fffe, 0xff_ffff, 0],
            [0xff_ffff, 0, 1],
        ] {
            assert!(in_order(good), "{good:?}");
        }
        for bad in [[5, 3, 7], [9, 5, 3], [3, 9, 7]] {
            assert!(!in_order(bad), "{bad:?}");
        }
    }
}
