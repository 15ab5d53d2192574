//! Runs translated filters without a kernel: the instructions that the translator makes,
//! with memory that is checked, and the helpers.

use tscap_filter::ebpf::Instruction;
use tscap_filter::translate::{FrameAccess, FrameLength, FrameLoad};

/// Where each memory begins in the emulated address space.
const CONTEXT: u64 = 1 << 32;
const DATA: u64 = 2 << 32;
/// The end of the stack.
const STACK_END: u64 = 3 << 32;
const STACK: usize = 512;

/// The instruction that did what no program may, and what that was.
pub type Fault = (usize, String);

pub struct Emulator<'a> {
    code: &'a [Instruction],
    access: &'a FrameAccess,
    frame: &'a [u8],
    /// Bytes of the frame in the linear part.
    linear: usize,
    interface: u32,
    /// `None`: not initialised.
    registers: [Option<u64>; 11],
    stack: [Option<u8>; STACK],
}

impl<'a> Emulator<'a> {
    /// `tag` is what r3 has.
    pub fn new(
        code: &'a [Instruction],
        access: &'a FrameAccess,
        (frame, tag): (&'a [u8], Option<u32>),
        linear: usize,
        interface: u32,
    ) -> Self {
        let mut registers = [None; 11];
        (registers[1], registers[10]) = (Some(CONTEXT), Some(STACK_END));
        registers[3] = tag.map(u64::from);
        Self {
            code,
            access,
            frame,
            linear,
            interface,
            registers,
            stack: [None; STACK],
        }
    }

    /// The verdict.
    pub fn run(mut self) -> Result<u32, Fault> {
        let mut at = 0;
        let mut steps = 0;
        while at < self.code.len() {
            let next = self.step(&self.code[at]).map_err(|fault| (at, fault))?;
            at = usize::try_from(at as i64 + 1 + next).map_err(|_| (at, "jumps out".into()))?;
            steps += 1;
            if steps > 1_000_000 {
                return Err((at, "does not end".into()));
            }
        }
        if at > self.code.len() {
            return Err((at, "jumps beyond the end".into()));
        }
        if self.registers[6..10].iter().any(Option::is_some) {
            return Err((at, "changes a register of the program around it".into()));
        }
        let verdict = self.get(0).map_err(|fault| (at, fault))?;
        u32::try_from(verdict).map_err(|_| (at, format!("verdict {verdict:#x}")))
    }

    /// How far to jump.
    fn step(&mut self, it: &Instruction) -> Result<i64, String> {
        let (to, from) = (it.dst(), it.src());
        let constant = i64::from(it.imm).cast_unsigned();
        let (class, operation) = (it.code & 7, it.code & 0xf0);
        let by_register = it.code & 8 != 0;
        match class {
            // LDX, STX and ST of memory.
            1 => {
                let address = self.get(from)?.wrapping_add_signed(it.off.into());
                let value = self.load(address, width(it.code))?;
                self.registers[usize::from(to)] = Some(value);
            }
            2 | 3 => {
                let value = if class == 2 {
                    constant
                } else {
                    self.get(from)?
                };
                let address = self.get(to)?.wrapping_add_signed(it.off.into());
                self.store(address, width(it.code), value)?;
            }
            4 | 7 => {
                let operand = match (operation, by_register) {
                    // Of an endianness the bit says which.
                    (0xd0 | 0x80, _) => 0,
                    (_, true) => self.get(from)?,
                    (_, false) => constant,
                };
                let old = if operation == 0xb0 { 0 } else { self.get(to)? };
                let value = match (class, operation) {
                    (4, 0xd0) if it.imm == 16 => u64::from((old as u16).swap_bytes()),
                    (4, 0xd0) if it.imm == 32 => u64::from((old as u32).swap_bytes()),
                    (4, _) => alu32(operation, old as u32, operand as u32)?.into(),
                    (_, 0x00) => old.wrapping_add(operand),
                    (_, 0x10) => old.wrapping_sub(operand),
                    (_, 0xb0) => operand,
                    _ => return Err(format!("64-bit operation {:#x}", it.code)),
                };
                if to == 10 {
                    return Err("writes the frame pointer".into());
                }
                self.registers[usize::from(to)] = Some(value);
            }
            5 if operation == 0x00 => return Ok(it.off.into()),
            5 if operation == 0x80 => self.call(it.imm)?,
            5 | 6 => {
                let (mut left, mut right) = (self.get(to)?, constant);
                if by_register {
                    right = self.get(from)?;
                }
                if class == 6 {
                    (left, right) = (left & 0xffff_ffff, right & 0xffff_ffff);
                }
                let holds = match operation {
                    0x10 => left == right,
                    0x50 => left != right,
                    0x20 => left > right,
                    0x30 => left >= right,
                    0x40 => left & right != 0,
                    0xa0 => left < right,
                    0xb0 => left <= right,
                    _ => return Err(format!("test {:#x}", it.code)),
                };
                return Ok(if holds { it.off.into() } else { 0 });
            }
            _ => return Err(format!("operation {:#x}", it.code)),
        }
        Ok(0)
    }

    fn call(&mut self, helper: i32) -> Result<(), String> {
        let helper = helper.cast_unsigned();
        let access = self.access;
        let refused = (-22_i64).cast_unsigned();
        let result = match access.load {
            _ if access.length == FrameLength::Helper(helper) => {
                self.check_context(1)?;
                self.frame.len() as u64
            }
            FrameLoad::OfContext(load) if load == helper => {
                self.check_context(1)?;
                let (offset, to, length) = (self.get(2)?, self.get(3)?, self.get(4)?);
                if offset <= access.most_offset.into() {
                    self.copy(self.frame, offset, to, length)?
                } else {
                    refused
                }
            }
            FrameLoad::OfDynptr(load) if load == helper => {
                self.check_context(3)?;
                let (offset, to, length) = (self.get(4)?, self.get(1)?, self.get(2)?);
                if self.get(5)? != 0 {
                    return Err("flags of a dynptr".into());
                }
                if offset <= access.most_offset.into() {
                    self.copy(self.frame, offset, to, length)?
                } else {
                    refused
                }
            }
            FrameLoad::OfMemory { helper: load, .. } if load == helper => {
                let (to, length, from) = (self.get(1)?, self.get(2)?, self.get(3)?);
                let linear = &self.frame[..self.linear];
                let offset = from.checked_sub(DATA).ok_or("reads before the frame")?;
                match self.copy(linear, offset, to, length)? {
                    0 => 0,
                    _ => return Err("reads behind the frame".into()),
                }
            }
            _ => return Err(format!("helper {helper}")),
        };
        self.registers[..6].fill(None);
        self.registers[0] = Some(result);
        Ok(())
    }

    fn check_context(&self, register: u8) -> Result<(), String> {
        match self.get(register)? {
            CONTEXT => Ok(()),
            _ => Err("a helper without the context".into()),
        }
    }

    /// Copies bytes of `of` to the stack; an error of the kernel's if they are not there.
    fn copy(&mut self, of: &[u8], offset: u64, to: u64, length: u64) -> Result<u64, String> {
        let end = usize::try_from(offset + length).expect("both are small");
        let Some(bytes) = of.get(offset as usize..end) else {
            return Ok((-22_i64).cast_unsigned());
        };
        for (address, byte) in (to..).zip(bytes) {
            self.store(address, 1, u64::from(*byte))?;
        }
        Ok(0)
    }

    fn get(&self, register: u8) -> Result<u64, String> {
        self.registers[usize::from(register)]
            .ok_or_else(|| format!("r{register} is not initialised"))
    }

    fn load(&self, address: u64, width: usize) -> Result<u64, String> {
        let outside = || format!("reads {width} bytes at {address:#x}");
        if (CONTEXT..CONTEXT + 200).contains(&address) {
            let access = self.access;
            let at = (address - CONTEXT) as i16;
            let linear = self.linear as u64;
            let [start, end] = access.linear.map_or([None; 2], |it| it.map(Some));
            return match access.load {
                FrameLoad::OfMemory { address, .. } if (at, width) == (address, 8) => Ok(DATA),
                _ if width != 4 => Err(outside()),
                FrameLoad::OfMemory { length, .. } if at == length => Ok(linear),
                _ if Some(at) == start => Ok(DATA),
                _ if Some(at) == end => Ok(DATA + linear),
                _ if at == access.interface_offset => Ok(self.interface.into()),
                _ if access.length == FrameLength::Field(at) => Ok(self.frame.len() as u64),
                _ => Err(outside()),
            };
        }
        let mut bytes = [0; 8];
        if address >= STACK_END - STACK as u64 && address < STACK_END {
            let at = (address - (STACK_END - STACK as u64)) as usize;
            let stack = self.stack.get(at..at + width).ok_or_else(outside)?;
            for (byte, known) in bytes.iter_mut().zip(stack) {
                *byte = known.ok_or_else(|| format!("{} before it is written", outside()))?;
            }
        } else {
            let at = usize::try_from(address.wrapping_sub(DATA)).map_err(|_| outside())?;
            let linear = &self.frame[..self.linear];
            let read = at.checked_add(width).and_then(|end| linear.get(at..end));
            bytes[..width].copy_from_slice(read.ok_or_else(outside)?);
        }
        Ok(u64::from_le_bytes(bytes))
    }

    fn store(&mut self, address: u64, width: usize, value: u64) -> Result<(), String> {
        let at = address.wrapping_sub(STACK_END - STACK as u64);
        let at = usize::try_from(at).ok().filter(|at| at + width <= STACK);
        let at = at.ok_or_else(|| format!("writes {width} bytes at {address:#x}"))?;
        for (place, byte) in self.stack[at..at + width]
            .iter_mut()
            .zip(value.to_le_bytes())
        {
            *place = Some(byte);
        }
        Ok(())
    }
}

fn width(code: u8) -> usize {
    match code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    }
}

fn alu32(operation: u8, old: u32, operand: u32) -> Result<u32, String> {
    let shift = || match operand {
        0..32 => Ok(operand),
        _ => Err(format!("shifts by {operand}")),
    };
    Ok(match operation {
        0x00 => old.wrapping_add(operand),
        0x10 => old.wrapping_sub(operand),
        0x20 => old.wrapping_mul(operand),
        0x30 => old.checked_div(operand).ok_or("divides by 0")?,
        0x90 => old.checked_rem(operand).ok_or("divides by 0")?,
        0x40 => old | operand,
        0x50 => old & operand,
        0xa0 => old ^ operand,
        0x60 => old << shift()?,
        0x70 => old >> shift()?,
        0x80 => old.wrapping_neg(),
        0xb0 => operand,
        _ => return Err(format!("32-bit operation {operation:#x}")),
    })
}
