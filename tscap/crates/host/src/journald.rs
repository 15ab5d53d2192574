//! systemd's journal: messages with a priority and fields, by its native protocol
//! (systemd.io/JOURNAL_NATIVE_PROTOCOL), where standard error goes there anyway.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;

/// Where journald hears.
const SOCKET: &str = "/run/systemd/journal/socket";

/// How much a message matters, as syslog(3) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Something was not done.
    Error = 3,
    /// It is done, otherwise than was asked for or with a risk.
    Warning = 4,
    /// What happens as it should.
    Info = 6,
    /// What only those want to know who look for a fault.
    Debug = 7,
}

/// A field beside the message: its name in capitals, and its value.
pub type Field = (String, String);

/// Whether what is written to standard error goes to the journal (`JOURNAL_STREAM`,
/// systemd.exec(5)).
pub fn is_stderr() -> bool {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let stream = env::var("JOURNAL_STREAM").ok();
    let of_stderr = stderr.and_then(|stderr| File::from(stderr).metadata());
    match (stream, of_stderr) {
        (Some(stream), Ok(of)) => stream == format!("{}:{}", of.dev(), of.ino()),
        _ => false,
    }
}

/// An entry as the journal takes it, the message first.
pub fn entry(priority: Priority, message: &str, fields: &[Field]) -> Vec<u8> {
    let mut entry = Vec::new();
    put(&mut entry, "MESSAGE", message);
    put(&mut entry, "PRIORITY", &(priority as u8).to_string());
    put(&mut entry, "SYSLOG_IDENTIFIER", "tscap");
    for (name, value) in fields {
        put(&mut entry, name, value);
    }
    entry
}

fn put(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend((value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend(value.as_bytes());
    entry.push(b'\n');
}

/// The message of an entry.
fn message(entry: &[u8]) -> &[u8] {
    let rest = entry.strip_prefix(b"MESSAGE").unwrap_or(entry);
    match rest.split_first() {
        Some((b'\n', rest)) => {
            let length = rest.first_chunk().copied().map(u64::from_le_bytes);
            let length = length.and_then(|it| usize::try_from(it).ok());
            let text = rest.get(8..).unwrap_or_default();
            text.get(..length.unwrap_or_default()).unwrap_or(text)
        }
        _ => {
            let text = rest.strip_prefix(b"=").unwrap_or(rest);
            text.split(|byte| *byte == b'\n').next().unwrap_or(text)
        }
    }
}

/// A connection to journald; what it does not take goes to standard error.
#[derive(Debug)]
pub struct Journald(UnixDatagram);

impl Journald {
    /// Of this machine.
    ///
    /// # Errors
    /// If there can't be another socket.
    pub fn open() -> io::Result<Self> {
        UnixDatagram::unbound().map(Self)
    }
}

impl Write for Journald {
    /// One that journald does not take, or that is too long for it, goes to it as the other
    /// lines on standard error do.
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        if self.0.send_to(entry, SOCKET).is_err() {
            let mut stderr = io::stderr().lock();
            stderr.write_all(message(entry))?;
            stderr.write_all(b"\n")?;
        }
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_fields_and_its_message_can_be_had_back() {
        let fields = [("TSCAP_SEEN".into(), "7".into())];
        let line = entry(Priority::Warning, "a=b", &fields);
        let expected = "MESSAGE=a=b\nPRIORITY=4\nSYSLOG_IDENTIFIER=tscap\nTSCAP_SEEN=7\n";
        assert_eq!(String::from_utf8(line.clone()).unwrap(), expected);
        assert_eq!(message(&line), b"a=b");
        let lines = entry(Priority::Info, "one\ntwo", &[]);
        assert!(lines.starts_with(b"MESSAGE\n\x07\0\0\0\0\0\0\0one\ntwo\nPRIORITY=6\n"));
        assert_eq!(message(&lines), b"one\ntwo");
    }
}
