//! Addresses as people write them.

use std::net::IpAddr;

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mac(pub [u8; 6]);

/// A MAC address: `02:00:00:00:00:01`.
pub(crate) fn mac(text: &str) -> Result<Mac, String> {
    let byte = |part: &str| match part.len() {
        1 | 2 if part.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u8::from_str_radix(part, 16).ok()
        }
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
    let mac = bytes.and_then(|bytes| bytes.try_into().ok());
    mac.map(Mac)
        .ok_or_else(|| "a MAC address is six bytes, such as 02:00:00:00:00:01".into())
}

/// An IP address: `198.18.0.1`, `2001:2::1`.
pub(crate) fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| "an IP address is of the form 198.18.0.1 or 2001:2::1".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses() {
        assert_eq!(mac("02:0:00:00:ab:CD"), Ok(Mac([2, 0, 0, 0, 0xab, 0xcd])));
        for bad in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:100",
            "02:00:00:00:00:+1",
            "x:0:0:0:0:0",
        ] {
            assert!(mac(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ip_addresses() {
        assert_eq!(ip("198.18.0.1").map(|it| it.is_ipv4()), Ok(true));
        assert_eq!(ip("2001:2::1").map(|it| it.is_ipv6()), Ok(true));
        for bad in ["", "198.18.0", "localhost", "198.18.0.1/24"] {
            assert!(ip(bad).is_err(), "{bad}");
        }
    }
}
