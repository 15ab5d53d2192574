//! Blocks made longer, so that what follows them begins where it should.

use tscap_common::block::PEN;

/// A custom option in binary that is not to be copied (draft-ietf-opsawg-pcapng section 3.5.1).
const CUSTOM_BINARY: u16 = 19373;
/// End of options and the block's length: what its last option is followed by, bytes.
const END: usize = 8;
/// The least that blocks can be made longer by, bytes: an option's header, and our number.
pub const LEAST_PADDING: usize = 8;

/// Makes the last of tscap's whole blocks, which has options, longer by so many bytes: a
/// multiple of four, [`LEAST_PADDING`] or more, up to 64 KiB, or 0. The option that does it
/// holds zeros.
pub fn padded(mut blocks: Vec<u8>, by: usize) -> Vec<u8> {
    let (Some(length), Some(zeros)) = (blocks.last_chunk(), by.checked_sub(LEAST_PADDING)) else {
        return blocks;
    };
    let length = u32::from_ne_bytes(*length) as usize;
    let start = blocks.len() - length;
    let end = blocks.split_off(blocks.len() - END);
    let value = u16::try_from(4 + zeros).expect("padding of up to 64 KiB");
    blocks.extend(CUSTOM_BINARY.to_ne_bytes());
    blocks.extend(value.to_ne_bytes());
    blocks.extend(PEN.to_ne_bytes());
    blocks.resize(blocks.len() + zeros, 0);
    blocks.extend(end);
    let length = u32::try_from(length + by).expect("a block of less than 4 GiB");
    let length = length.to_ne_bytes();
    blocks[start + 4..start + 8].copy_from_slice(&length);
    let last = blocks.len() - length.len();
    blocks[last..].copy_from_slice(&length);
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::tests::{interface, writer};
    use crate::pcapng::{Record, records};

    #[test]
    fn headers_become_longer_and_say_the_same() {
        let headers = || writer(&["a", "b"].map(interface)).take();
        let interfaces = |bytes: &[u8]| -> Vec<_> {
            records(bytes)
                .unwrap()
                .map(|record| match record.unwrap() {
                    Record::Section(section) => format!("{section:?}"),
                    Record::Interface(interface) => format!("{interface:?}"),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        let plain = headers();
        assert_eq!(padded(plain.clone(), 0), plain);
        for by in [LEAST_PADDING, 12, 4096, 4100] {
            let longer = padded(headers(), by);
            assert_eq!(longer.len(), plain.len() + by);
            assert_eq!(interfaces(&longer), interfaces(&plain));
        }
    }
}
