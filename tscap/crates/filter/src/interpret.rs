//! Runs a program on a frame that is in memory, as libpcap does (`bpf_filter`).

use super::MOST_REPEATS;
use super::ancillary::Ancillary;
use super::classic::{Alu, Instruction, Operand, Operation, Program, SCRATCH_WORDS, Size, Test};

/// A frame, and what is known of it beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes that were captured.
    pub data: &'a [u8],
    /// Length of the whole frame, bytes.
    pub length: u32,
    /// Its [`packet_type`](super::packet_type).
    pub packet_type: u32,
    /// Number of its interface.
    pub interface: u32,
}

impl<'a> Frame<'a> {
    /// A whole frame that was received, by an interface that nobody knows.
    pub fn received(data: &'a [u8]) -> Self {
        Self {
            data,
            length: u32::try_from(data.len()).unwrap_or(u32::MAX),
            packet_type: 0,
            interface: 0,
        }
    }
}

impl Program {
    /// The verdict on a frame: 0 rejects it. A load beyond the captured bytes rejects,
    /// and so do a division by zero, ancillary data that is not in [`Frame`], and the
    /// jump back after [`MOST_REPEATS`] repetitions of a loop.
    pub fn verdict(&self, frame: &Frame<'_>) -> u32 {
        let mut machine = Machine {
            frame,
            a: 0,
            x: 0,
            scratch: [0; SCRATCH_WORDS as usize],
        };
        let mut at = 0;
        // No loop is entered again once it was left: all other jumps go forward.
        let (mut latest, mut repeats) = (0, 0);
        loop {
            let it = &self.instructions()[at];
            match machine.step(it) {
                None => return 0,
                Some(Step::Return(verdict)) => return verdict,
                Some(Step::Forward(offset)) => at += 1 + offset,
                Some(Step::Back(offset)) => {
                    let this = self.loop_around(at).expect("a jump back makes a loop");
                    if this != latest {
                        (latest, repeats) = (this, 0);
                    }
                    if repeats == MOST_REPEATS {
                        return 0;
                    }
                    repeats += 1;
                    at = at + 1 - offset;
                }
            }
        }
    }
}

/// What comes after an instruction.
enum Step {
    Forward(usize),
    Back(usize),
    Return(u32),
}

struct Machine<'a> {
    frame: &'a Frame<'a>,
    a: u32,
    x: u32,
    scratch: [u32; SCRATCH_WORDS as usize],
}

impl Machine<'_> {
    /// `None` rejects the frame.
    fn step(&mut self, it: &Instruction) -> Option<Step> {
        match it.operation() {
            Operation::LoadAbsolute(size) => {
                self.a = match Ancillary::at(it.k) {
                    None => self.load(it.k, size)?,
                    Some(Ok(Ancillary::PacketType)) => self.frame.packet_type,
                    Some(Ok(Ancillary::Interface)) => self.frame.interface,
                    Some(Err(_)) => return None,
                }
            }
            Operation::LoadIndirect(size) => self.a = self.load(self.x.checked_add(it.k)?, size)?,
            Operation::LoadLength => self.a = self.frame.length,
            Operation::LoadConstant => self.a = it.k,
            Operation::LoadScratch => self.a = self.scratch[it.k as usize],
            Operation::LoadXHeaderLength => self.x = (self.load(it.k, Size::Byte)? & 15) * 4,
            Operation::LoadXLength => self.x = self.frame.length,
            Operation::LoadXConstant => self.x = it.k,
            Operation::LoadXScratch => self.x = self.scratch[it.k as usize],
            Operation::Store => self.scratch[it.k as usize] = self.a,
            Operation::StoreX => self.scratch[it.k as usize] = self.x,
            Operation::Alu(alu, operand) => {
                self.a = compute(alu, self.a, self.operand(operand, it))?;
            }
            Operation::Negate => self.a = self.a.wrapping_neg(),
            Operation::ToX => self.x = self.a,
            Operation::ToA => self.a = self.x,
            Operation::Jump => {
                let offset = usize::try_from(it.jump().unsigned_abs()).ok()?;
                return Some(if it.jump() < 0 {
                    Step::Back(offset)
                } else {
                    Step::Forward(offset)
                });
            }
            Operation::Branch(test, operand) => {
                let operand = self.operand(operand, it);
                let taken = if holds(test, self.a, operand) {
                    it.jt
                } else {
                    it.jf
                };
                return Some(Step::Forward(taken.into()));
            }
            Operation::ReturnConstant => return Some(Step::Return(it.k)),
            Operation::ReturnA => return Some(Step::Return(self.a)),
        }
        Some(Step::Forward(0))
    }

    fn operand(&self, operand: Operand, it: &Instruction) -> u32 {
        match operand {
            Operand::K => it.k,
            Operand::X => self.x,
        }
    }

    fn load(&self, from: u32, size: Size) -> Option<u32> {
        let bytes = self.frame.data.get(from as usize..)?;
        let bytes = bytes.get(..size.bytes() as usize)?;
        Some(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
        )
    }
}

fn compute(alu: Alu, a: u32, operand: u32) -> Option<u32> {
    Some(match alu {
        Alu::Add => a.wrapping_add(operand),
        Alu::Sub => a.wrapping_sub(operand),
        Alu::Mul => a.wrapping_mul(operand),
        Alu::Div => a.checked_div(operand)?,
        Alu::Mod => a.checked_rem(operand)?,
        Alu::Or => a | operand,
        Alu::And => a & operand,
        Alu::Xor => a ^ operand,
        Alu::Lsh => a.checked_shl(operand).unwrap_or(0),
        Alu::Rsh => a.checked_shr(operand).unwrap_or(0),
    })
}

fn holds(test: Test, a: u32, operand: u32) -> bool {
    match test {
        Test::Equal => a == operand,
        Test::Greater => a > operand,
        Test::GreaterOrEqual => a >= operand,
        Test::AnyBit => a & operand != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict of instructions, each `(code, jt, jf, k)`, on a frame of 4 bytes.
    fn verdict(instructions: &[(u16, u8, u8, u32)]) -> u32 {
        let instructions =
            instructions
                .iter()
                .map(|&(code, jt, jf, k)| Instruction { code, jt, jf, k });
        let program = Program::new(instructions.collect()).unwrap();
        program.verdict(&Frame {
            length: 1500,
            packet_type: 4,
            interface: 9,
            ..Frame::received(&[1, 2, 3, 0x46])
        })
    }

    const RETURN_A: (u16, u8, u8, u32) = (0x16, 0, 0, 0);
    const X_TO_A: (u16, u8, u8, u32) = (0x87, 0, 0, 0);

    #[test]
    fn loads_give_captured_bytes_or_reject() {
        assert_eq!(verdict(&[(0x20, 0, 0, 0), RETURN_A]), 0x0102_0346);
        assert_eq!(verdict(&[(0x28, 0, 0, 2), RETURN_A]), 0x0346);
        assert_eq!(verdict(&[(0x30, 0, 0, 3), RETURN_A]), 0x46);
        assert_eq!(verdict(&[(0xb1, 0, 0, 3), X_TO_A, RETURN_A]), 24);
        for (code, k) in [(0x20, 1), (0x28, 3), (0x30, 4), (0xb1, 4), (0x30, u32::MAX)] {
            let accept = (0x06, 0, 0, 1);
            assert_eq!(verdict(&[(code, 0, 0, k), accept]), 0, "{code:#x} {k}");
        }
        // X + k, and not modulo 2³².
        assert_eq!(verdict(&[(0x01, 0, 0, 2), (0x50, 0, 0, 1), RETURN_A]), 0x46);
        assert_eq!(
            verdict(&[(0x01, 0, 0, 2), (0x50, 0, 0, u32::MAX), RETURN_A]),
            0
        );
    }

    #[test]
    fn arithmetic_has_no_undefined_results() {
        let with = |a, code, k| verdict(&[(0x00, 0, 0, a), (code, 0, 0, k), RETURN_A]);
        assert_eq!(with(u32::MAX, 0x04, 2), 1);
        assert_eq!(with(1, 0x64, 32), 0);
        assert_eq!(with(1, 0x64, 31), 1 << 31);
        assert_eq!(with(u32::MAX, 0x74, 40), 0);
        assert_eq!(with(5, 0x84, 0), 5_u32.wrapping_neg());
        // X is 0.
        let accept = (0x06, 0, 0, 1);
        assert_eq!(verdict(&[(0x3c, 0, 0, 0), accept]), 0);
        assert_eq!(verdict(&[(0x9c, 0, 0, 0), accept]), 0);
    }

    #[test]
    fn what_is_beside_the_frame_is_given() {
        assert_eq!(verdict(&[(0x80, 0, 0, 0), RETURN_A]), 1500);
        assert_eq!(verdict(&[(0x81, 0, 0, 0), X_TO_A, RETURN_A]), 1500);
        assert_eq!(verdict(&[(0x28, 0, 0, 0xffff_f004), RETURN_A]), 4);
        assert_eq!(verdict(&[(0x20, 0, 0, 0xffff_f008), RETURN_A]), 9);
        assert_eq!(verdict(&[(0x20, 0, 0, 0xffff_f014), (0x06, 0, 0, 1)]), 0);
    }

    #[test]
    fn a_loop_ends() {
        let (count, back) = ((0x04, 0, 0, 1), (0x05, 0, 0, 2_u32.wrapping_neg()));
        assert_eq!(verdict(&[count, back, RETURN_A]), 0);
        // Leaves at 9: after the first time and 8 repetitions.
        let until = |most| (0x35, 1, 0, most);
        let back = (0x05, 0, 0, 3_u32.wrapping_neg());
        assert_eq!(verdict(&[count, until(9), back, RETURN_A]), 9);
        assert_eq!(verdict(&[count, until(10), back, RETURN_A]), 0);
        // Each loop has its own repetitions.
        let twice = [
            count,
            until(9),
            back,
            (0, 0, 0, 0),
            count,
            until(9),
            back,
            RETURN_A,
        ];
        assert_eq!(verdict(&twice), 9);
    }
}
