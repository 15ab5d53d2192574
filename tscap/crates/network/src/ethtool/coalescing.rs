//! Interrupt moderation, as `ethtool -c` shows it.

use super::EthtoolError;
use super::device::Device;

/// `ETHTOOL_GCOALESCE` (`linux/ethtool.h`).
const GCOALESCE: u32 = 0x0e;
/// 32-bit words of `struct ethtool_coalesce`, the command first.
const WORDS: usize = 23;
const RX_USECS: usize = 1;
const RX_FRAMES: usize = 2;
const ADAPTIVE_RX: usize = 10;

/// When a device announces received frames. A field that the driver doesn't
/// have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest that it waits after a frame, µs.
    pub rx_usecs: u32,
    /// Most frames that it waits for; 1 for none but the first, 0 for no such
    /// limit.
    pub rx_frames: u32,
    /// The driver changes these by itself with the traffic.
    pub adaptive: bool,
}

/// The interrupt moderation of interface `name`; `None` if its driver has none.
///
/// # Errors
/// If the kernel or the driver refuses to tell.
pub fn coalescing(name: &str) -> Result<Option<Coalescing>, EthtoolError> {
    let mut words = [0; WORDS];
    words[0] = GCOALESCE;
    let device = Device::open(name)?;
    // SAFETY: the buffer is a whole `struct ethtool_coalesce`.
    match unsafe { device.request("read the interrupt moderation", &mut words) } {
        Err(EthtoolError::Request { source, .. })
            if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(Some(decode(&words))),
    }
}

fn decode(words: &[u32; WORDS]) -> Coalescing {
    Coalescing {
        rx_usecs: words[RX_USECS],
        rx_frames: words[RX_FRAMES],
        adaptive: words[ADAPTIVE_RX] != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        // ixgbe, as `ethtool -c` shows it: rx-usecs 1, tx-usecs 0, nothing else.
        let mut words = [0; WORDS];
        words[..2].copy_from_slice(&[GCOALESCE, 1]);
        let expected = |rx_usecs, rx_frames, adaptive| Coalescing {
            rx_usecs,
            rx_frames,
            adaptive,
        };
        assert_eq!(decode(&words), expected(1, 0, false));
        // mlx5: adaptive, rx-usecs 8, rx-frames 128, tx-usecs 8, tx-frames 128.
        words[1..].fill(0);
        words[1..3].copy_from_slice(&[8, 128]);
        words[5..7].copy_from_slice(&[8, 128]);
        words[10] = 1;
        assert_eq!(decode(&words), expected(8, 128, true));
    }

    #[test]
    fn the_loopback_has_none() {
        assert_eq!(coalescing("lo").unwrap(), None);
        assert!(coalescing("").is_err());
    }
}
