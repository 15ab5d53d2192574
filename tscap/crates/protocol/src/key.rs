//! The keyed hash of authenticated packets (RFC 8762, section 4.4).

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// A key of HMAC-SHA-256 whose hashes are cut to 128 bits (RFC 4868, as RFC 8762 has it).
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Why bytes are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key has 16 to 64 bytes: shorter ones can be guessed, longer ones are hashed first.
    #[error("a key has 16 to 64 bytes, this one has {0}")]
    Length(usize),
}

impl Key {
    /// Bytes of a hash.
    pub const HASH: usize = 16;

    /// Of 16 to 64 bytes.
    ///
    /// # Errors
    /// If there are fewer or more.
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if !(16..=64).contains(&bytes.len()) {
            return Err(KeyError::Length(bytes.len()));
        }
        let hash = Hmac::new_from_slice(bytes).expect("a key of any length is taken");
        Ok(Self(hash))
    }

    /// The hash of some parts, one behind the other.
    pub fn hash(&self, parts: &[&[u8]]) -> [u8; Self::HASH] {
        let whole = self.over(parts).finalize().into_bytes();
        *whole.first_chunk().expect("SHA-256 has 32 bytes")
    }

    /// Whether `hash` is theirs. Takes as long for any wrong one.
    pub fn verifies(&self, parts: &[&[u8]], hash: &[u8]) -> bool {
        hash.len() == Self::HASH && self.over(parts).verify_truncated_left(hash).is_ok()
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut hash = self.0.clone();
        parts.iter().for_each(|part| hash.update(part));
        hash
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2 cut to 128 bits has a key of 4 bytes, which is too short here; test
    /// case 1 has 20 bytes of 0x0b and the text "Hi There".
    #[test]
    fn a_hash_of_the_rfc() {
        let key = Key::new(&[0x0b; 20]).unwrap();
        let hash = key.hash(&[b"Hi ", b"There"]);
        assert_eq!(
            hash,
            0xb034_4c61_d8db_3853_5ca8_afce_af0b_f12b_u128.to_be_bytes()
        );
        assert!(key.verifies(&[b"Hi There"], &hash));
        assert!(!key.verifies(&[b"Hi there"], &hash));
        assert!(!key.verifies(&[b"Hi There"], &hash[..15]), "cut");
        assert!(!key.verifies(&[b"Hi There"], &[]), "none");
    }

    #[test]
    fn keys_have_16_to_64_bytes() {
        assert_eq!(Key::new(&[1; 15]).unwrap_err(), KeyError::Length(15));
        assert!(Key::new(&[1; 16]).is_ok() && Key::new(&[1; 64]).is_ok());
        assert!(Key::new(&[1; 65]).is_err());
        assert_eq!(format!("{:?}", Key::new(&[1; 16]).unwrap()), "Key");
    }
}
