//! The first bytes of frames, until their packets are judged.

/// Where bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptId(u32);

impl KeptId {
    pub const NONE: Self = Self(u32::MAX);
}

/// Room for a number of frames' first bytes.
#[derive(Debug)]
pub(super) struct Kept {
    /// Most bytes of a frame; none are kept if it is 0.
    stride: usize,
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    free: Vec<u32>,
}

impl Kept {
    pub fn new(stride: usize, frames: usize) -> Self {
        let frames = if stride == 0 { 0 } else { frames };
        Self {
            stride,
            bytes: vec![0; stride * frames],
            lengths: vec![0; frames],
            free: (0..frames as u32).rev().collect(),
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        let beside = size_of::<u32>() * 2;
        (self.bytes.len() + self.lengths.len() * beside) as u64
    }

    /// Keeps the first bytes, if there is room.
    #[inline]
    pub fn keep(&mut self, bytes: &[u8]) -> KeptId {
        let Some(id) = self.free.pop() else {
            return KeptId::NONE;
        };
        let length = bytes.len().min(self.stride);
        let at = id as usize * self.stride;
        self.bytes[at..at + length].copy_from_slice(&bytes[..length]);
        self.lengths[id as usize] = length as u32;
        KeptId(id)
    }

    pub fn get(&self, id: KeptId) -> &[u8] {
        if id == KeptId::NONE {
            return &[];
        }
        let at = id.0 as usize * self.stride;
        &self.bytes[at..at + self.lengths[id.0 as usize] as usize]
    }

    #[inline]
    pub fn release(&mut self, id: KeptId) {
        if id != KeptId::NONE {
            self.free.push(id.0);
        }
    }
}
