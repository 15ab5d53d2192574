//! The options of a block, taken out and put back changed.

use pcap_file::Endianness;
use tscap_common::block::PEN;

use super::block::{options, options_at, word as word_at};

/// Codes of options (draft-ietf-opsawg-pcapng, section 3.5).
pub(super) const COMMENT: u16 = 1;
pub(super) const CUSTOM_TEXT: u16 = 2988;
/// Those of custom options that are not to be copied, in text and in binary: also padding.
const NOT_TO_COPY: [u16; 2] = [19372, 19373];

/// Code and value of each option of a block that can be read; they begin at `at`.
pub(super) fn options_of(block: &[u8], at: usize, endianness: Endianness) -> Vec<(u16, Vec<u8>)> {
    options(block, at, endianness)
        .map_while(Result::ok)
        .map(|(code, range)| (code, block[range].to_vec()))
        .collect()
}

/// The block without the options that are not to be copied; `None` if it has none. Those of
/// tscap, which are padding, may stay.
pub(super) fn to_copy(
    block: &[u8],
    endianness: Endianness,
    without_tscaps: bool,
) -> Option<Vec<u8>> {
    let at = options_at(block, endianness)?;
    let is_left_out = |code: u16, value: &[u8]| {
        NOT_TO_COPY.contains(&code)
            && (without_tscaps || word_at(value, 0, endianness) != Some(PEN))
    };
    let mut all = options(block, at, endianness).map_while(Result::ok);
    if !all.any(|(code, value)| is_left_out(code, &block[value])) {
        return None;
    }
    let mut options = options_of(block, at, endianness);
    options.retain(|(code, value)| !is_left_out(*code, value));
    with_options(block, at, &options, endianness)
}

/// The block with these options from `at` on; `None` if one is longer than 64 KiB.
pub(super) fn with_options(
    block: &[u8],
    at: usize,
    options: &[(u16, Vec<u8>)],
    endianness: Endianness,
) -> Option<Vec<u8>> {
    let mut changed = block[..at].to_vec();
    for (code, value) in options {
        put_option(&mut changed, *code, value, endianness)?;
    }
    put_option(&mut changed, 0, &[], endianness)?;
    let length = u32::try_from(changed.len() + 4).expect("a block of up to 256 MiB");
    changed[4..8].copy_from_slice(&word(length, endianness));
    changed.extend(word(length, endianness));
    Some(changed)
}

pub(super) fn put_option(
    options: &mut Vec<u8>,
    code: u16,
    value: &[u8],
    endianness: Endianness,
) -> Option<()> {
    let length = u16::try_from(value.len()).ok()?;
    for half in [code, length] {
        options.extend(match endianness {
            Endianness::Big => half.to_be_bytes(),
            Endianness::Little => half.to_le_bytes(),
        });
    }
    options.extend(value);
    options.resize(options.len().next_multiple_of(4), 0);
    Some(())
}

/// The JSON of an option of tscap's.
pub(super) fn json_of_ours(code: u16, value: &[u8], endianness: Endianness) -> Option<&str> {
    let (pen, json) = value.split_at_checked(4)?;
    let is_ours = code == CUSTOM_TEXT && word_at(pen, 0, endianness) == Some(PEN);
    is_ours.then(|| std::str::from_utf8(json).ok())?
}

/// The same option with other JSON.
pub(super) fn with_json(value: &[u8], json: &str) -> Vec<u8> {
    [&value[..4], json.as_bytes()].concat()
}

pub(super) fn long_value(long: u64, endianness: Endianness) -> Vec<u8> {
    match endianness {
        Endianness::Big => long.to_be_bytes().into(),
        Endianness::Little => long.to_le_bytes().into(),
    }
}

pub(super) fn word(word: u32, endianness: Endianness) -> [u8; 4] {
    match endianness {
        Endianness::Big => word.to_be_bytes(),
        Endianness::Little => word.to_le_bytes(),
    }
}
