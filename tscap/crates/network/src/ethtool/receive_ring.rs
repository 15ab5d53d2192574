//! Lengths of the receive ring, as `ethtool -g` shows them.

use super::EthtoolError;
use super::device::Device;

/// `ETHTOOL_GRINGPARAM` (`linux/ethtool.h`).
const GRINGPARAM: u32 = 0x10;
/// 32-bit words of `struct ethtool_ringparam`: the command, four greatest lengths, and
/// four in force.
const WORDS: usize = 9;
const RX_MAX: usize = 1;
const RX: usize = 5;

/// The ring in which a device leaves received frames for the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveRing {
    /// Frames that each queue has room for.
    pub frames: u32,
    /// The most that the driver takes.
    pub most: u32,
}

/// The receive ring of interface `name`; `None` if its driver tells of none.
///
/// # Errors
/// If the kernel or the driver refuses to tell.
pub fn receive_ring(name: &str) -> Result<Option<ReceiveRing>, EthtoolError> {
    let mut words = [0; WORDS];
    words[0] = GRINGPARAM;
    let device = Device::open(name)?;
    // SAFETY: the buffer is a whole `struct ethtool_ringparam`.
    match unsafe { device.request("read the ring lengths", &mut words) } {
        Err(EthtoolError::Request { source, .. })
            if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(decode(&words)),
    }
}

fn decode(words: &[u32; WORDS]) -> Option<ReceiveRing> {
    let ring = ReceiveRing {
        frames: words[RX],
        most: words[RX_MAX],
    };
    (ring.frames > 0).then_some(ring)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        // e1000e, as `ethtool -g` shows it: at most 4096 either way, 256 in force.
        let words = [GRINGPARAM, 4096, 0, 0, 4096, 256, 0, 0, 256];
        let expected = ReceiveRing {
            frames: 256,
            most: 4096,
        };
        assert_eq!(decode(&words), Some(expected));
        assert_eq!(decode(&[0; WORDS]), None);
    }

    #[test]
    fn the_loopback_has_none() {
        assert_eq!(receive_ring("lo").unwrap(), None);
        assert!(receive_ring("").is_err());
    }
}
