//! Reads programs that other tools compiled.

use std::str::FromStr;

use super::classic::{Instruction, Program, ProgramError};

/// Why a text is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytecodeError {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// The first number is missing.
    #[error("line {line} must be the number of instructions, and is {text:?}")]
    NoCount {
        /// Counted from 1.
        line: usize,
        /// What is there.
        text: String,
    },
    /// Not four numbers.
    #[error(
        "line {line}: an instruction is four decimal numbers (operation code, jt, jf, k), and \
         here is {text:?}"
    )]
    NotFour {
        /// Counted from 1.
        line: usize,
        /// What is there.
        text: String,
    },
    /// One of the four is wrong.
    #[error("line {line}: {field} must be a decimal number from 0 to {most}, and is {text:?}")]
    Number {
        /// Counted from 1.
        line: usize,
        /// Which one.
        field: &'static str,
        /// The greatest that it can be.
        most: u32,
        /// What is there.
        text: String,
    },
    /// Cut off, or put together of several.
    #[error("line {line} says that {announced} instructions follow, and {found} do")]
    Count {
        /// Of the number, counted from 1.
        line: usize,
        /// The number.
        announced: usize,
        /// Instructions.
        found: usize,
    },
    /// Well written, and not sound.
    #[error("{}{source}", place(*.line))]
    Program {
        /// Of the wrong instruction, counted from 1.
        line: Option<usize>,
        /// What is wrong.
        source: ProgramError,
    },
}

fn place(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// Reads a program from decimal numbers: as `tcpdump -ddd` prints it, the number of
/// instructions and then an instruction a line, or in one line with commas between, as
/// `nfbpf_compile` of iptables prints it.
///
/// # Errors
/// What is wrong, and in which line.
pub fn parse(text: &str) -> Result<Program, BytecodeError> {
    let mut entries = entries(text);
    let (first, count) = entries.next().ok_or(BytecodeError::Empty)?;
    let announced = count.parse().map_err(|_| BytecodeError::NoCount {
        line: first,
        text: count.to_owned(),
    })?;
    let (mut instructions, mut lines) = (Vec::new(), Vec::new());
    for (line, entry) in entries {
        instructions.push(instruction(line, entry)?);
        lines.push(line);
    }
    if instructions.len() != announced {
        return Err(BytecodeError::Count {
            line: first,
            announced,
            found: instructions.len(),
        });
    }
    Program::new(instructions).map_err(|source| BytecodeError::Program {
        line: match &source {
            ProgramError::Instruction { number, .. } => lines.get(*number).copied(),
            ProgramError::Empty | ProgramError::TooLong(_) => None,
        },
        source,
    })
}

/// What stands between line ends and commas, with the number of its line.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let entries = (1..).zip(text.lines()).flat_map(|(line, text)| {
        let entries = text.split(',').map(str::trim);
        entries.map(move |entry| (line, entry))
    });
    entries.filter(|(_, entry)| !entry.is_empty())
}

fn instruction(line: usize, entry: &str) -> Result<Instruction, BytecodeError> {
    let fields: Vec<_> = entry.split_ascii_whitespace().collect();
    let [code, jt, jf, k] = fields[..] else {
        return Err(BytecodeError::NotFour {
            line,
            text: entry.to_owned(),
        });
    };
    Ok(Instruction {
        code: number(line, "the operation code", code, u16::MAX.into())?,
        jt: number(line, "jt", jt, u8::MAX.into())?,
        jf: number(line, "jf", jf, u8::MAX.into())?,
        k: number(line, "k", k, u32::MAX)?,
    })
}

fn number<T: FromStr<Err = std::num::ParseIntError>>(
    line: usize,
    field: &'static str,
    text: &str,
    most: u32,
) -> Result<T, BytecodeError> {
    text.parse().map_err(|_| BytecodeError::Number {
        line,
        field,
        most,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let lines = "4\n48 0 0 9\n21 0 1 6\n6 0 0 262144\n6 0 0 0\n";
        let program = parse(lines).unwrap();
        assert_eq!(program.decimal(), lines);
        let one_line = "4,48 0 0 9,21 0 1 6,6 0 0 262144,6 0 0 0";
        assert_eq!(parse(one_line).unwrap(), program);
        assert_eq!(parse(&format!("{one_line},\r\n\n")).unwrap(), program);
        assert_eq!(
            parse("\n 1 \n\n6 0 0 4294967295").unwrap(),
            Program::constant(u32::MAX)
        );
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text:?}");
        };
        check("", "it is empty");
        check(" \n\n", "it is empty");
        check(
            "{ 0x28, 0, 0, 0x0000000c },",
            "line 1 must be the number of instructions, and is \"{ 0x28\"",
        );
        check(
            "2\n6 0 0 1",
            "line 1 says that 2 instructions follow, and 1 do",
        );
        check(
            "\n1\n6 0 0 1\n6 0 0 0",
            "line 2 says that 1 instructions follow, and 2 do",
        );
        check(
            "1\n6 0 0",
            "line 2: an instruction is four decimal numbers (operation code, jt, jf, k), and here \
             is \"6 0 0\"",
        );
        check(
            "2\n21 0 256 1\n6 0 0 0",
            "line 2: jf must be a decimal number from 0 to 255, and is \"256\"",
        );
        check(
            "1\n6 0 0 -1",
            "line 2: k must be a decimal number from 0 to 4294967295, and is \"-1\"",
        );
        check(
            "1\n70000 0 0 1",
            "line 2: the operation code must be a decimal number from 0 to 65535, and is \"70000\"",
        );
        check(
            "2\n\n21 0 1 6\n6 0 0 0",
            "line 3: instruction 0 jumps to instruction 2 of a program of 2",
        );
        check("0", "the program is empty");
    }
}
