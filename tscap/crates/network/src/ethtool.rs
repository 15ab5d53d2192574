//! What a driver says about an interface, and the offloads in force: the ioctl
//! `SIOCETHTOOL` (`linux/ethtool.h`), as `ethtool -i` and `ethtool -k` use it.
//!
//! Names are looked up in the network namespace of the calling thread.

mod coalescing;
mod device;
mod features;
mod receive_ring;
mod statistics;
mod timestamping;

use std::io;

pub use self::coalescing::{Coalescing, coalescing};
use self::device::Device;
pub use self::features::{Feature, features, set_features};
pub use self::receive_ring::{ReceiveRing, receive_ring};
pub use self::statistics::statistics;
pub use self::timestamping::{ReceiveFilter, ptp_clock, receive_filter, set_receive_filter};

/// `ETHTOOL_GDRVINFO` (`linux/ethtool.h`).
const GDRVINFO: u32 = 0x03;
/// `ETHTOOL_GLINKSETTINGS` (`linux/ethtool.h`).
const GLINKSETTINGS: u32 = 0x4c;

/// 32-bit words of `struct ethtool_drvinfo`: the command, five strings of 32
/// bytes, 12 bytes reserved and five counts.
const DRVINFO_WORDS: usize = 1 + 5 * 8 + 3 + 5;
/// Bytes of each string in it: `ETHTOOL_FWVERS_LEN`, `ETHTOOL_BUSINFO_LEN`.
const DRVINFO_STRING: usize = 32;

/// 32-bit words of `struct ethtool_link_settings` without its masks.
const LINK_SETTINGS_WORDS: usize = 12;
/// Byte in it of `link_mode_masks_nwords`, an i8.
const MASK_WORDS_AT: usize = 15;

/// The driver behind an interface. Strings it leaves out are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Name of the driver, "virtio_net" for instance.
    pub name: String,
    /// Its version; for most the version of the kernel.
    pub version: String,
    /// Version of the device's firmware.
    pub firmware: String,
    /// Address of the device on its bus.
    pub bus: String,
}

/// Why an ethtool request failed.
#[derive(Debug, thiserror::Error)]
pub enum EthtoolError {
    /// Empty, too long or with a zero byte.
    #[error("{name:?} cannot be the name of an interface")]
    Name {
        /// The name given.
        name: String,
    },
    /// No socket to send the request through.
    #[error("cannot open a socket for ethtool requests on {name}")]
    Socket {
        /// The interface.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel or the driver refused the request.
    #[error("cannot {operation} of {name}")]
    Request {
        /// What was tried.
        operation: &'static str,
        /// The interface.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel has no feature of this name; nothing was changed.
    #[error("this kernel knows no offload called {}", features.join(", "))]
    Unknown {
        /// The names not known.
        features: Vec<String>,
    },
    /// The driver keeps these as they were; others asked for in the same call
    /// may have been changed.
    #[error("the driver of {name} does not let {} be changed", features.join(", "))]
    Refused {
        /// The interface.
        name: String,
        /// The features that are not as asked for.
        features: Vec<String>,
    },
}

/// The driver of interface `name`; `None` when there is no such interface or it
/// does not say.
pub fn driver(name: &str) -> Option<Driver> {
    let mut words = [0; DRVINFO_WORDS];
    words[0] = GDRVINFO;
    let device = Device::open(name).ok()?;
    // SAFETY: the buffer is a whole `struct ethtool_drvinfo`.
    unsafe { device.request("read the driver", &mut words) }.ok()?;
    let bytes = bytes_of(&words[1..]);
    let mut strings = bytes.chunks_exact(DRVINFO_STRING).map(text);
    Some(Driver {
        name: strings.next()?,
        version: strings.next()?,
        firmware: strings.next()?,
        bus: strings.next()?,
    })
}

/// The speed of the link in bits per second; `None` when the driver does not
/// know (no carrier, most virtual devices) or there is no such interface. A
/// veth claims 10 Gbit/s whatever it does.
pub fn speed_bits_per_s(name: &str) -> Option<u64> {
    let device = Device::open(name).ok()?;
    // Offering no room for masks makes the kernel answer with how many words
    // one takes, made negative, and nothing else.
    let mut settings = [0; LINK_SETTINGS_WORDS];
    settings[0] = GLINKSETTINGS;
    // SAFETY: the buffer is a whole `struct ethtool_link_settings`, and no masks
    // are written as long as their length was not given.
    unsafe { device.request("read the link settings", &mut settings) }.ok()?;
    let offered = bytes_of(&settings)[MASK_WORDS_AT] as i8;
    let mask_words = usize::try_from(offered.checked_neg()?).ok()?;

    let mut words = vec![0; LINK_SETTINGS_WORDS + 3 * mask_words];
    words[0] = GLINKSETTINGS;
    let word = MASK_WORDS_AT / size_of::<u32>();
    let mut bytes = [0; size_of::<u32>()];
    bytes[MASK_WORDS_AT % size_of::<u32>()] = mask_words as u8;
    words[word] = u32::from_ne_bytes(bytes);
    // SAFETY: behind the structure there is room for its three masks of
    // `mask_words` each, the length given in it.
    unsafe { device.request("read the link settings", &mut words) }.ok()?;
    speed_from_mbit(words[1])
}

/// The field `speed` in Mbit/s to bits per second. 0 and anything over
/// `INT_MAX` (`SPEED_UNKNOWN` is -1) say nothing (`ethtool_validate_speed`).
fn speed_from_mbit(mbit: u32) -> Option<u64> {
    let known = mbit != 0 && i32::try_from(mbit).is_ok();
    known.then(|| u64::from(mbit) * 1_000_000)
}

/// The bytes of `words` as they lie in memory.
fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A string in a field of fixed size, which ends at the first zero byte.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_speeds_are_none() {
        assert_eq!(speed_from_mbit(0), None);
        assert_eq!(speed_from_mbit(u32::MAX), None);
        assert_eq!(speed_from_mbit(10), Some(10_000_000));
        assert_eq!(speed_from_mbit(800_000), Some(800_000_000_000));
    }

    #[test]
    fn names_that_cannot_be_are_none() {
        for name in ["", "sixteen-bytes-xx", "nul\0inside"] {
            assert_eq!(driver(name), None, "{name:?}");
            assert_eq!(speed_bits_per_s(name), None, "{name:?}");
            assert!(
                matches!(features(name), Err(EthtoolError::Name { .. })),
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_field_without_a_closing_zero_is_taken_whole() {
        assert_eq!(text(b"rx-gro\0\0"), "rx-gro");
        assert_eq!(text(b"rx-gro"), "rx-gro");
    }
}
