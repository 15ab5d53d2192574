//! Files of other programs, block by block.

/// A file block by block, in either byte order.
pub struct Foreign {
    pub bytes: Vec<u8>,
    is_big: bool,
}

impl Foreign {
    /// With a section header that says how long the section is.
    pub fn new(is_big: bool, section_length: u64) -> Self {
        let bytes = Vec::new();
        let mut foreign = Self { bytes, is_big };
        let mut body = [foreign.word(0x1a2b_3c4d), foreign.word(1)].concat();
        body[4..].copy_from_slice(&[foreign.half(1), foreign.half(0)].concat());
        let length = if is_big {
            section_length.to_be_bytes()
        } else {
            section_length.to_le_bytes()
        };
        body.extend(length);
        foreign.block(0x0a0d_0d0a, &body);
        foreign
    }

    pub fn half(&self, half: u16) -> [u8; 2] {
        if self.is_big {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        }
    }

    pub fn word(&self, word: u32) -> [u8; 4] {
        if self.is_big {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    }

    /// Adds a block, and gives it.
    pub fn block(&mut self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.word(body.len() as u32 + 12);
        let block = [&self.word(kind)[..], &length, &body, &length].concat();
        self.bytes.extend(&block);
        block
    }

    pub fn interface(&mut self, linktype: u16, snaplen: u32, options: &[u8]) {
        let head = [&self.half(linktype)[..], &[0, 0], &self.word(snaplen)].concat();
        self.block(1, &[&head, options].concat());
    }

    pub fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.half(code), self.half(value.len() as u16)].concat();
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    pub fn packet(&mut self, interface: u32, origlen: u32, data: &[u8]) -> Vec<u8> {
        self.packet_with(interface, origlen, data, &[])
    }

    pub fn packet_with(
        &mut self,
        interface: u32,
        origlen: u32,
        data: &[u8],
        more: &[u8],
    ) -> Vec<u8> {
        let numbers = [interface, 7, 1_000, data.len() as u32, origlen];
        let head = numbers.map(|number| self.word(number)).concat();
        let mut data = data.to_vec();
        data.resize(data.len().next_multiple_of(4), 0);
        self.block(6, &[&head, &data, more].concat())
    }
}

/// Ethernet frames of which every third has 7 in byte 14.
pub fn numbered(index: usize) -> Vec<u8> {
    let mut data = vec![index as u8; 40];
    data[14] = 7 + (index % 3) as u8;
    data
}
