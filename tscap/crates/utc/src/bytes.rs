//! Fields of a fixed layout.

/// Fields of a layout, at their offsets, by the byte order that is asked for. Those behind the end
/// are none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// The octets at an offset.
    pub fn at<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..)?.first_chunk().copied()
    }

    pub fn u8(self, offset: usize) -> Option<u8> {
        self.at::<1>(offset).map(|[it]| it)
    }

    pub fn be16(self, offset: usize) -> Option<u16> {
        self.at(offset).map(u16::from_be_bytes)
    }

    pub fn be32(self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_be_bytes)
    }

    pub fn be64(self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_be_bytes)
    }

    pub fn le16(self, offset: usize) -> Option<u16> {
        self.at(offset).map(u16::from_le_bytes)
    }

    pub fn le32(self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_le_bytes)
    }

    pub fn le64(self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_le_bytes)
    }

    pub fn ne16(self, offset: usize) -> Option<u16> {
        self.at(offset).map(u16::from_ne_bytes)
    }

    pub fn ne32(self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_ne_bytes)
    }

    pub fn ne64(self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_ne_bytes)
    }
}

/// Growth of an error by so many parts per billion over a time, ns, rounded up.
pub(crate) fn growth_ns(ns: u64, ppb: u64) -> u64 {
    let growth = (u128::from(ns) * u128::from(ppb)).div_ceil(1_000_000_000);
    u64::try_from(growth).unwrap_or(u64::MAX)
}
