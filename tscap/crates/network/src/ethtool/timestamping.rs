//! How an interface stamps frames itself, as `ethtool -T` shows it, and which received ones it
//! stamps now (`SIOCGHWTSTAMP`, Documentation/networking/timestamping.rst).

use super::EthtoolError;
use super::device::Device;

/// `ETHTOOL_GET_TS_INFO` (`linux/ethtool.h`).
const GET_TS_INFO: u32 = 0x41;
/// 32-bit words of `struct ethtool_ts_info`.
const TS_INFO_WORDS: usize = 11;
/// Word in it of `phc_index`, -1 for none.
const PHC_INDEX: usize = 2;

/// Requests that read and set `struct hwtstamp_config` (`linux/sockios.h`).
const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
/// Its words: flags, which sent frames are stamped, and which received ones.
const CONFIG_WORDS: usize = 3;
const RX_FILTER: usize = 2;

/// ethtool's names of the filters, by number (`enum hwtstamp_rx_filters`,
/// `linux/net_tstamp.h`).
const FILTERS: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];

/// Which received frames an interface stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveFilter(u32);

impl ReceiveFilter {
    /// Every frame.
    pub const ALL: Self = Self(1);

    /// The name that ethtool gives it, or its number where that is none that is known here.
    pub fn name(self) -> String {
        let name = FILTERS.get(self.0 as usize);
        name.map_or_else(|| self.0.to_string(), |name| (*name).to_owned())
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        let known = FILTERS.iter().position(|it| *it == name);
        let known = known.and_then(|it| u32::try_from(it).ok());
        known.or_else(|| name.parse().ok()).map(Self)
    }
}

/// Number of the PTP clock that interface `name` stamps by: 0 for `/dev/ptp0`. `None` if it
/// has none, or does not tell.
pub fn ptp_clock(name: &str) -> Option<u32> {
    let mut words = [0; TS_INFO_WORDS];
    words[0] = GET_TS_INFO;
    let device = Device::open(name).ok()?;
    // SAFETY: the buffer is a whole `struct ethtool_ts_info`.
    unsafe { device.request("read the time stamping", &mut words) }.ok()?;
    u32::try_from(words[PHC_INDEX].cast_signed()).ok()
}

/// Which received frames interface `name` stamps now; `None` if its driver does not tell.
///
/// # Errors
/// If the kernel or the driver refuses to tell.
pub fn receive_filter(name: &str) -> Result<Option<ReceiveFilter>, EthtoolError> {
    let config = config(&Device::open(name)?)?;
    Ok(config.map(|config| ReceiveFilter(config[RX_FILTER])))
}

/// Has interface `name` stamp these received frames, or more where its driver can't tell them
/// apart. What it stamps of sent ones stays.
///
/// # Errors
/// If the kernel or the driver refuses.
pub fn set_receive_filter(name: &str, filter: ReceiveFilter) -> Result<(), EthtoolError> {
    let device = Device::open(name)?;
    let mut config = config(&device)?.unwrap_or_default();
    config[RX_FILTER] = filter.0;
    // SAFETY: the buffer is a whole `struct hwtstamp_config`.
    unsafe { device.ioctl(SIOCSHWTSTAMP, "set the receive filter", &mut config) }
}

fn config(device: &Device<'_>) -> Result<Option<[u32; CONFIG_WORDS]>, EthtoolError> {
    let mut config = [0; CONFIG_WORDS];
    // SAFETY: the buffer is a whole `struct hwtstamp_config`.
    match unsafe { device.ioctl(SIOCGHWTSTAMP, "read the receive filter", &mut config) } {
        Ok(()) => Ok(Some(config)),
        Err(EthtoolError::Request { source, .. })
            if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_the_names_of_ethtool() {
        for (number, name) in [(0, "none"), (1, "all"), (12, "ptpv2-event"), (77, "77")] {
            assert_eq!(ReceiveFilter(number).name(), name);
            assert_eq!(ReceiveFilter::named(name), Some(ReceiveFilter(number)));
        }
        assert_eq!(ReceiveFilter::named("alle"), None);
    }

    #[test]
    fn the_loopback_stamps_nothing() {
        assert_eq!(ptp_clock("lo"), None);
        assert_eq!(receive_filter("lo").unwrap(), None);
        assert!(receive_filter("").is_err());
    }
}
