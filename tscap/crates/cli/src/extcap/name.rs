//! What Wireshark calls tscap's interfaces: a name of their own, since Wireshark has one
//! of the same name itself, and without the characters that mean something in the grammar
//! of extcap(4) or in the name of a file.

/// What every name begins with.
const PREFIX: &str = "tscap-";

/// The value for an interface: each byte that is not a letter, a digit, or one of `.:_-@` is
/// `%` and two hexadecimal digits.
pub fn value_of(interface: &str) -> String {
    let bytes = interface.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b':' | b'_' | b'-' | b'@' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02x}"),
    });
    bytes.fold(PREFIX.to_owned(), |value, part| value + &part)
}

/// The interface of a value; `None` for one that [`value_of`] does not give.
pub fn interface_of(value: &str) -> Option<String> {
    let mut parts = value.strip_prefix(PREFIX)?.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    let interface = String::from_utf8(bytes).ok()?;
    (!interface.is_empty()).then_some(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_value_of_its_own() {
        for (interface, value) in [
            ("eth0", "tscap-eth0"),
            ("any", "tscap-any"),
            ("eth0.5:1@a-b_c", "tscap-eth0.5:1@a-b_c"),
            ("}{a%", "tscap-%7d%7ba%25"),
            ("vé", "tscap-v%c3%a9"),
        ] {
            assert_eq!(value_of(interface), value);
            assert_eq!(interface_of(value).as_deref(), Some(interface));
        }
        for value in [
            "eth0",
            "tscap-",
            "tscap-a%4",
            "tscap-%zz",
            "tscap-%ff",
            "tscap-%é",
        ] {
            assert_eq!(interface_of(value), None, "{value}");
        }
    }
}
