//! The driver's own counters: what `ethtool -S` shows.

use super::device::Device;
use super::{EthtoolError, bytes_of, text};

/// `ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`, `ETHTOOL_GSSET_INFO` (`linux/ethtool.h`).
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
/// `ETH_SS_STATS`: the set of strings that names the counters.
const SS_STATS: u32 = 1;
/// Counters that may come to be between two questions.
const MOST_MORE: usize = 1 << 16;
/// `ETH_GSTRING_LEN`, bytes.
const STRING: usize = 32;

/// Names and values of the counters of interface `name`, in the driver's order;
/// nothing if it keeps none.
pub fn statistics(name: &str) -> Result<Vec<(String, u64)>, EthtoolError> {
    let device = Device::open(name)?;
    // struct ethtool_sset_info: command, reserved, mask (u64), then one count.
    let mut info = [GSSET_INFO, 0, 1 << SS_STATS, 0, 0];
    // SAFETY: the buffer is the structure with room for the one set in the mask.
    unsafe { device.request("count the counters", &mut info) }?;
    let is_reported = info[2] & 1 << SS_STATS != 0;
    let count = if is_reported { info[4] as usize } else { 0 };
    if count == 0 {
        return Ok(Vec::new());
    }

    // The kernel answers with as many as there are by then (`ethtool_get_strings`,
    // `ethtool_get_stats`, net/ethtool/ioctl.c), which changes with the number of
    // queues: there is room for more than the drivers' greatest numbers of them.
    let room = count + MOST_MORE;
    let mut strings = vec![0; 3 + room * STRING / 4];
    strings[..3].copy_from_slice(&[GSTRINGS, SS_STATS, count as u32]);
    // SAFETY: command, set, count and a string for each counter, with room.
    unsafe { device.request("read the names of the counters", &mut strings) }?;
    let mut values = vec![0; 2 + room * 2];
    values[..2].copy_from_slice(&[GSTATS, count as u32]);
    // SAFETY: command, count and a u64 for each counter, with room.
    unsafe { device.request("read the counters", &mut values) }?;

    let (names, numbers) = (bytes_of(&strings[3..]), bytes_of(&values[2..]));
    let numbers = numbers.chunks_exact(8).map(|bytes| {
        let bytes = bytes.try_into().expect("chunks of 8 bytes");
        u64::from_ne_bytes(bytes)
    });
    Ok(names
        .chunks_exact(STRING)
        .map(text)
        .zip(numbers)
        .take(count)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_counters_is_no_error_of_ours() {
        // The loopback has none: the kernel says EOPNOTSUPP or counts none.
        match statistics("lo") {
            Ok(counters) => assert!(counters.is_empty(), "{counters:?}"),
            Err(EthtoolError::Request { source, .. }) => {
                assert_eq!(source.raw_os_error(), Some(libc::EOPNOTSUPP));
            }
            Err(error) => panic!("{error}"),
        }
    }
}
