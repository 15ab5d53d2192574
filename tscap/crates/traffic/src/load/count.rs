//! Frames in a capture file, whoever wrote it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use pcap_file::pcap::{PcapReadError, PcapReader};
use pcap_file::pcapng::{PcapNgReadError, PcapNgReader};

use tscap_host::page_cache;

/// Block types of a section header and an enhanced packet (draft-ietf-opsawg-pcapng).
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const ENHANCED_PACKET: u32 = 6;

/// Why frames can't be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The file can't be read.
    #[error("cannot read the capture file")]
    Io(#[from] io::Error),
    /// It is no pcap, or it is torn.
    #[error("not a whole pcap file behind frame {after}")]
    Pcap {
        /// Frames before that.
        after: u64,
        /// What is wrong.
        source: PcapReadError,
    },
    /// It is no pcapng, or it is torn.
    #[error("not a whole pcapng file behind frame {after}")]
    PcapNg {
        /// Frames before that.
        after: u64,
        /// What is wrong.
        source: PcapNgReadError,
    },
}

/// What a program has left.
#[derive(Debug)]
pub(super) struct Left {
    /// Frames in its file; `None` if that is no file.
    pub frames: Option<u64>,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Of these, bytes of whole pages that the page cache holds; `None` if that is no file.
    pub cached_bytes: Option<u64>,
}

/// Looks at what a program has left in the page cache, and then, which changes that, at what is
/// in the file.
pub(super) fn look_at(path: &Path) -> Result<Left, CountError> {
    let file = std::fs::metadata(path)?;
    if !file.is_file() {
        return Ok(Left {
            frames: None,
            bytes: file.len(),
            cached_bytes: None,
        });
    }
    let cached_bytes = page_cache::held_of(&File::open(path)?)?;
    Ok(Left {
        frames: Some(frames(path)?),
        bytes: file.len(),
        cached_bytes: Some(cached_bytes),
    })
}

/// Counts the frames in a pcap or pcapng file.
pub fn frames(path: &Path) -> Result<u64, CountError> {
    let mut file = File::open(path)?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic)?;
    file.rewind()?;
    match magic {
        SECTION_HEADER => of_pcapng(file),
        _ => of_pcap(file),
    }
}

fn of_pcap(file: File) -> Result<u64, CountError> {
    let mut after = 0;
    let failed = |after| move |source| CountError::Pcap { after, source };
    let mut reader = PcapReader::new(file).map_err(failed(0))?;
    while let Some(packet) = reader.next_raw_packet() {
        packet.map_err(failed(after))?;
        after += 1;
    }
    Ok(after)
}

fn of_pcapng(file: File) -> Result<u64, CountError> {
    let mut after = 0;
    let failed = |after| move |source| CountError::PcapNg { after, source };
    let mut reader = PcapNgReader::new(file).map_err(failed(0))?;
    while let Some(block) = reader.next_raw_block() {
        let (block, _) = block.map_err(failed(after))?;
        after += u64::from(block.type_ == ENHANCED_PACKET);
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pcap_file::DataLink;
    use pcap_file::pcap::{PcapHeader, PcapPacket, PcapTsResolution, PcapWriter};
    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;

    use super::*;

    const DATA: [u8; 64] = [7; 64];

    fn pcap(count: u32) -> Vec<u8> {
        let header = PcapHeader {
            ts_resolution: PcapTsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for number in 0..count {
            let time = Duration::from_nanos(number.into());
            let packet = PcapPacket::new(time, 1500, &DATA).unwrap();
            writer.write_packet(&packet).unwrap();
        }
        writer.into_inner()
    }

    fn pcapng(count: u32) -> Vec<u8> {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        let interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 128);
        writer.write_pcapng_block(interface).unwrap();
        for number in 0..count {
            let packet = EnhancedPacketBlock {
                timestamp: Duration::from_micros(number.into()),
                original_len: 1500,
                data: (&DATA[..]).into(),
                ..EnhancedPacketBlock::default()
            };
            writer.write_pcapng_block(packet).unwrap();
        }
        writer.into_inner()
    }

    fn counted(bytes: &[u8]) -> Result<u64, CountError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        frames(file.path())
    }

    #[test]
    fn both_formats_are_counted() {
        for count in [0, 1, 1000] {
            assert_eq!(counted(&pcap(count)).unwrap(), u64::from(count));
            assert_eq!(counted(&pcapng(count)).unwrap(), u64::from(count));
        }
    }

    #[test]
    fn what_a_program_has_left_is_looked_at() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = pcap(100);
        std::fs::write(file.path(), &bytes).unwrap();
        let left = look_at(file.path()).unwrap();
        assert_eq!((left.frames, left.bytes), (Some(100), bytes.len() as u64));
        // In memory or on a disk: nothing has evicted it yet.
        let cached = left.cached_bytes.unwrap();
        assert!(
            cached >= left.bytes && cached.is_multiple_of(4096),
            "{cached}"
        );
        let none = look_at(Path::new("/dev/null")).unwrap();
        assert_eq!(
            (none.frames, none.bytes, none.cached_bytes),
            (None, 0, None)
        );
    }

    #[test]
    fn a_torn_file_is_none() {
        for whole in [pcap(3), pcapng(3)] {
            let torn = counted(&whole[..whole.len() - 1]).unwrap_err();
            assert!(torn.to_string().ends_with("behind frame 2"), "{torn}");
        }
        assert!(matches!(counted(b"abc"), Err(CountError::Io(_))));
    }
}
