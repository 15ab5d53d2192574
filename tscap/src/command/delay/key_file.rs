//! The key of authenticated test packets.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::command::{Context as _, Failure, Hint as _};
use tscap_protocol::Key;

/// Longest file that is read, bytes: 128 digits and what may stand around them.
const LONGEST: u64 = 4_096;
const FORM: &str = "32 to 128 hexadecimal digits: head -c 32 /dev/urandom | xxd -p -c 64 > FILE";

/// Reads a key, which nobody but its owner may read.
///
/// # Errors
/// If others may read the file, or it has no key.
pub(super) fn read(path: &Path) -> Result<Key, Failure> {
    let what = || format!("cannot read the key in {}", path.display());
    let file = File::open(path)
        .context(what())
        .hint("--key-file takes a file with a key")?;
    let mode = file.metadata().context(what())?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(
            Failure::new(format!("{}: others may read or write it", what()))
                .hint(format!("chmod 600 {}", path.display())),
        );
    }
    let mut text = String::new();
    let read = file.take(LONGEST).read_to_string(&mut text);
    read.context(what()).hint(FORM)?;
    let bytes = digits(text.trim()).ok_or_else(|| {
        Failure::new(format!(
            "{}: it has no hexadecimal digits, or half a byte",
            what()
        ))
        .hint(FORM)
    })?;
    Key::new(&bytes).context(what()).hint(FORM)
}

/// Bytes of two digits each.
fn digits(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|it| it.len() == 2)?;
        let is_hex = pair.bytes().all(|it| it.is_ascii_hexdigit());
        is_hex.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
    });
    bytes
        .collect::<Option<Vec<_>>>()
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn a_key_is_its_owners_alone_and_has_enough_digits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let read_as = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read(&path).map(drop).map_err(|failure| failure.to_string())
        };
        let key = "00112233445566778899aabbccddeeFF";
        assert_eq!(read_as(&format!("{key}\n"), 0o600), Ok(()));
        assert_eq!(read_as(key, 0o400), Ok(()));
        let shown = read_as(key, 0o640).unwrap_err();
        assert!(shown.contains("chmod 600"), "{shown}");
        for wrong in [
            "",
            "00",
            &key[1..],
            "0x112233445566778899aabbccddeeff0",
            &key.repeat(5),
        ] {
            let said = read_as(wrong, 0o600).unwrap_err();
            assert!(said.contains("hexadecimal"), "{wrong}: {said}");
            assert!(
                wrong.is_empty() || !said.contains(wrong),
                "a key is never printed: {said}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).is_err());
    }
}
