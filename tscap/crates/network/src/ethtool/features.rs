//! Offloads ("features"): reading and changing them by the kernel's names, as
//! `ethtool -k` prints them ("rx-vlan-hw-parse", "rx-gro", "rx-lro", ...). They
//! are the kernel's own, not those that ethtool groups and renames: its
//! "rx-vlan-offload" is "rx-vlan-hw-parse", its "large-receive-offload" "rx-lro".

use std::collections::BTreeMap;

use super::{EthtoolError, bytes_of, device::Device, text};

/// `ETHTOOL_GSTRINGS` (`linux/ethtool.h`, like all of these).
const GSTRINGS: u32 = 0x1b;
/// `ETHTOOL_GSSET_INFO`.
const GSSET_INFO: u32 = 0x37;
/// `ETHTOOL_GFEATURES`.
const GFEATURES: u32 = 0x3a;
/// `ETHTOOL_SFEATURES`.
const SFEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`: the string set of feature names.
const SS_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`: bytes of each string.
const STRING_LEN: usize = 32;

/// Words of `struct ethtool_sset_info` with the length of one set.
const SSET_INFO_WORDS: usize = 5;
/// Words of `struct ethtool_gstrings` ahead of the strings: command, set, length.
const GSTRINGS_WORDS: usize = 3;
/// Words of `struct ethtool_gfeatures` and `ethtool_sfeatures` ahead of the
/// blocks: command, number of blocks.
const FEATURES_WORDS: usize = 2;
/// Words of `struct ethtool_get_features_block`: available, requested, active,
/// never changed.
const GET_BLOCK_WORDS: usize = 4;
/// Words of `struct ethtool_set_features_block`: valid, requested.
const SET_BLOCK_WORDS: usize = 2;

/// State of one offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// In force.
    pub on: bool,
    /// The driver does not let it be changed.
    pub fixed: bool,
}

/// Every offload that the kernel knows, as it is on interface `name`.
///
/// # Errors
/// A name that cannot be, or that the kernel refused one of the requests
/// (no such interface, for instance).
pub fn features(name: &str) -> Result<BTreeMap<String, Feature>, EthtoolError> {
    let device = Device::open(name)?;
    let names = names(&device)?;
    let states = states(&device, names.len())?;
    // Bits without a meaning have an empty name.
    let named = names.into_iter().zip(states);
    Ok(named.filter(|(name, _)| !name.is_empty()).collect())
}

/// Switches offloads of interface `name` on (`true`) or off, and makes sure
/// that the driver did so. Switching one may take others along (without
/// checksums no segmentation); they come back with it.
///
/// # Errors
/// [`EthtoolError::Unknown`] and the refusal of a fixed feature come before
/// anything was changed; [`EthtoolError::Refused`] after that lists what did
/// not take, while the others did. Needs CAP_NET_ADMIN.
pub fn set_features<N: AsRef<str>>(name: &str, wanted: &[(N, bool)]) -> Result<(), EthtoolError> {
    let device = Device::open(name)?;
    let names = names(&device)?;
    let before = states(&device, names.len())?;
    let (mut unknown, mut refused, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (feature, on) in wanted {
        let feature = feature.as_ref();
        match names.iter().position(|known| known == feature) {
            None => unknown.push(feature.to_owned()),
            Some(bit) if before[bit].fixed && before[bit].on != *on => {
                refused.push(feature.to_owned());
            }
            Some(bit) if before[bit].fixed => {}
            Some(bit) => changes.push((bit, *on)),
        }
    }
    if !unknown.is_empty() {
        return Err(EthtoolError::Unknown { features: unknown });
    }
    if refused.is_empty() && !changes.is_empty() {
        change(&device, names.len(), &changes)?;
        let after = states(&device, names.len())?;
        let kept = changes.iter().filter(|&&(bit, on)| after[bit].on != on);
        refused = kept.map(|&(bit, _)| names[bit].clone()).collect();
    }
    if !refused.is_empty() {
        return Err(EthtoolError::Refused {
            name: device.name().to_owned(),
            features: refused,
        });
    }
    Ok(())
}

/// The names of the features, by their bit number.
fn names(device: &Device<'_>) -> Result<Vec<String>, EthtoolError> {
    const OPERATION: &str = "read the names of the offloads";
    // The mask of sets is a u64 in words 2 and 3.
    let mask = (1u64 << SS_FEATURES).to_ne_bytes();
    let [a, b, c, d, e, f, g, h] = mask;
    let mut info: [u32; SSET_INFO_WORDS] = [
        GSSET_INFO,
        0,
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
        0,
    ];
    // SAFETY: one set is asked for, and there is a word for its length.
    unsafe { device.request(OPERATION, &mut info) }?;
    // A kernel that has no such set leaves its bit clear and writes no length.
    let count = info[SSET_INFO_WORDS - 1];

    let mut words = vec![0; GSTRINGS_WORDS + count as usize * STRING_LEN / size_of::<u32>()];
    words[..GSTRINGS_WORDS].copy_from_slice(&[GSTRINGS, SS_FEATURES, count]);
    // SAFETY: behind the structure there is room for all strings of the set; how
    // many features there are is a constant of the running kernel
    // (NETDEV_FEATURE_COUNT), so it is still what it was one call ago.
    unsafe { device.request(OPERATION, &mut words) }?;
    let bytes = bytes_of(&words[GSTRINGS_WORDS..]);
    Ok(bytes.chunks_exact(STRING_LEN).map(text).collect())
}

/// The states of the first `count` features, by their bit number.
fn states(device: &Device<'_>, count: usize) -> Result<Vec<Feature>, EthtoolError> {
    let blocks = count.div_ceil(32);
    let mut words = vec![0; FEATURES_WORDS + blocks * GET_BLOCK_WORDS];
    words[..FEATURES_WORDS].copy_from_slice(&[GFEATURES, blocks as u32]);
    // SAFETY: behind the structure there is room for as many blocks as it says.
    unsafe { device.request("read the offloads", &mut words) }?;
    Ok(decode(&words[FEATURES_WORDS..], count))
}

/// The blocks of a `struct ethtool_gfeatures` to one state per feature.
fn decode(blocks: &[u32], count: usize) -> Vec<Feature> {
    let (blocks, _) = blocks.as_chunks::<GET_BLOCK_WORDS>();
    let bits = blocks.iter().flat_map(|block| {
        let [available, _requested, active, never_changed] = *block;
        (0..32).map(move |bit| Feature {
            on: active >> bit & 1 != 0,
            // As ethtool decides on its "[fixed]".
            fixed: available >> bit & 1 == 0 || never_changed >> bit & 1 != 0,
        })
    });
    bits.take(count).collect()
}

/// Asks for `changes`, pairs of a bit number below `count` and its state.
fn change(
    device: &Device<'_>,
    count: usize,
    changes: &[(usize, bool)],
) -> Result<(), EthtoolError> {
    let mut words = encode(changes, count);
    // SAFETY: behind the structure there are as many blocks as it says, and the
    // kernel writes none.
    unsafe { device.request("change the offloads", &mut words) }
}

/// A whole `struct ethtool_sfeatures`.
fn encode(changes: &[(usize, bool)], count: usize) -> Vec<u32> {
    let blocks = count.div_ceil(32);
    let mut words = vec![0; FEATURES_WORDS + blocks * SET_BLOCK_WORDS];
    words[..FEATURES_WORDS].copy_from_slice(&[SFEATURES, blocks as u32]);
    for &(bit, on) in changes {
        let valid = FEATURES_WORDS + bit / 32 * SET_BLOCK_WORDS;
        words[valid] |= 1 << (bit % 32);
        words[valid + 1] |= u32::from(on) << (bit % 32);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_decoded_across_blocks() {
        // Bit 1: changeable and on. Bit 33: on, but never changed. Bit 34: not available.
        let blocks = [0b10, 0, 0b10, 0, 0b010, 0, 0b010, 0b010];
        let states = decode(&blocks, 35);
        assert_eq!(states.len(), 35);
        let state = |bit: usize| (states[bit].on, states[bit].fixed);
        assert_eq!(state(0), (false, true));
        assert_eq!(state(1), (true, false));
        assert_eq!(state(33), (true, true));
        assert_eq!(state(34), (false, true));
    }

    #[test]
    fn changes_are_encoded_across_blocks() {
        let words = encode(&[(0, true), (31, false), (33, true)], 60);
        assert_eq!(words, [SFEATURES, 2, 0x8000_0001, 1, 0b10, 0b10]);
    }
}
