//! Interrupt moderation, as `ethtool -c` shows it.

use super::EthtoolError;
use super::device::Device;

/// `ETHTOOL_GCOALESCE` (`linux/ethtool.h`).
const GCOALESCE: u32 = 0x0e;
/// 32-bit words of `struct ethtool_coalesce`, the command first.
const WORDS: usize = 23;
/// Words in it.
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
        Ok(()) => Ok(Some(Coalescing {
            rx_usecs: words[RX_USECS],
            rx_frames: words[RX_FRAMES],
            adaptive: words[ADAPTIVE_RX] != 0,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_none() {
        assert_eq!(coalescing("lo").unwrap(), None);
        assert!(coalescing("").is_err());
    }
}
