//! Keys: the credentials of agents and operators.
//!
//! A key is 160 random bits in a form that secret scanners recognise and with a checksum against
//! typing errors. It is shown once; the store keeps only its hash. The store knows whose key it is.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Random bytes in a key.
pub const RANDOM_BYTES: usize = 20;
/// Characters of the prefix.
const PREFIX_LENGTH: usize = 3;
/// Hex digits of the random part, and of the checksum after it.
const RANDOM_DIGITS: usize = RANDOM_BYTES * 2;
const CHECK_DIGITS: usize = 8;
/// Characters after the prefix that may be displayed to tell keys apart.
const DISPLAYED_DIGITS: usize = 4;

/// What a key begins with: two lower-case letters and an underscore. Shows people what the key is
/// for; whose key it is only the store knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPrefix([u8; PREFIX_LENGTH]);

impl KeyPrefix {
    /// Keys of agents, unless their protocol prescribes another prefix.
    pub const AGENT: Self = Self::new(*b"rk_");
    /// Keys of operators; never of an agent.
    pub const OPERATOR: Self = Self::new(*b"ro_");

    /// A prefix that a protocol prescribes for the keys of its agents.
    pub const fn new(prefix: [u8; PREFIX_LENGTH]) -> Self {
        Self::read(prefix).expect("two lower-case letters and an underscore")
    }

    const fn read(text: [u8; PREFIX_LENGTH]) -> Option<Self> {
        match text {
            [b'a'..=b'z', b'a'..=b'z', b'_'] => Some(Self(text)),
            _ => None,
        }
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

/// A well-formed key. It cannot be compared or printed by accident: see `hash` and `expose`.
#[derive(Clone)]
pub struct Key {
    prefix: KeyPrefix,
    text: String,
}

impl Key {
    /// Builds a key from random bytes.
    pub fn from_random(prefix: KeyPrefix, random: [u8; RANDOM_BYTES]) -> Self {
        let mut text = format!("{prefix}{}", hex::encode(random));
        text += &checksum(&text);
        Self { prefix, text }
    }

    /// Parses a key; `None` if its form or its checksum is wrong, so that the store need not be
    /// queried.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, digits) = text.split_at_checked(PREFIX_LENGTH)?;
        let prefix = KeyPrefix::read(prefix.as_bytes().try_into().ok()?)?;
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != RANDOM_DIGITS + CHECK_DIGITS || !digits.bytes().all(is_digit) {
            return None;
        }
        let (random, check) = text.split_at(text.len() - CHECK_DIGITS);
        (checksum(random) == check).then(|| Self { prefix, text: text.to_owned() })
    }

    /// What the key begins with.
    pub fn prefix(&self) -> KeyPrefix {
        self.prefix
    }

    /// What the store keeps and looks up. The key is random enough to need no salt.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }

    /// The key itself: only for the one answer that contains it, and for clients that send it.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// Displays which key is meant, never the key.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", &self.text[..PREFIX_LENGTH + DISPLAYED_DIGITS])
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Whether two hashes are equal, in constant time.
pub fn hashes_equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.ct_eq(b).into()
}

/// The credential in an `Authorization` header of the Bearer scheme (RFC 9110, section 11.1: the
/// scheme is case-insensitive).
pub fn parse_bearer(header: &str) -> Option<&str> {
    let (scheme, credential) = header.trim_matches([' ', '\t']).split_once(' ')?;
    let credential = credential.trim_start_matches(' ');
    let whole = !credential.is_empty() && credential.bytes().all(|b| b.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && whole).then_some(credential)
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // docs/requirements.md, section 9.
    const WORKED: &str = "ca_0123456789abcdef0123456789abcdef012345674195f880";

    fn worked_bytes() -> [u8; RANDOM_BYTES] {
        let bytes = hex::decode(&WORKED[3..43]).expect("hex");
        bytes.try_into().expect("20 bytes")
    }

    #[test]
    fn the_worked_key_is_made_and_read() {
        let prefix = KeyPrefix::new(*b"ca_");
        assert_eq!(Key::from_random(prefix, worked_bytes()).expose(), WORKED);
        let key = Key::parse(WORKED).expect("the worked key is well formed");
        assert_eq!((key.prefix(), key.expose()), (prefix, WORKED));
    }

    #[test]
    fn every_prefix_can_be_read_back_and_only_as_itself() {
        for prefix in [KeyPrefix::AGENT, KeyPrefix::OPERATOR, KeyPrefix::new(*b"ca_")] {
            let key = Key::from_random(prefix, [7; RANDOM_BYTES]);
            let read = Key::parse(key.expose()).expect("a new key parses");
            assert_eq!(read.prefix(), prefix);
            assert_eq!(key.expose().len(), 51);
        }
        // The checksum covers the prefix: an agent's key does not become an operator's.
        assert!(Key::parse(&WORKED.replace("ca_", "ro_")).is_none());
    }

    #[test]
    fn any_single_wrong_character_is_noticed() {
        for at in 0..WORKED.len() {
            for wrong in ['0', '1', 'e', 'r', 'G', ' '] {
                let mut text: Vec<char> = WORKED.chars().collect();
                if text[at] != wrong {
                    text[at] = wrong;
                    let text: String = text.into_iter().collect();
                    assert!(Key::parse(&text).is_none(), "{text}");
                }
            }
        }
    }

    #[test]
    fn texts_that_only_resemble_keys_are_not_read() {
        let long = format!("{WORKED}0");
        let upper = WORKED.to_uppercase();
        let wide = format!("ca_{}", "é".repeat(24));
        for text in ["", "ca_", "c", "é", &long, &upper, &wide, &WORKED[..50], &WORKED[1..]] {
            assert!(Key::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn printing_a_key_does_not_give_it_away() {
        let key = Key::parse(WORKED).expect("the worked key is well formed");
        assert_eq!(key.to_string(), "ca_0123…");
        assert_eq!(format!("{key:?} {key:#?}"), "Key(ca_0123…) Key(ca_0123…)");
    }

    #[test]
    fn the_hash_is_sha_256_of_the_text() {
        let key = Key::parse(WORKED).expect("the worked key is well formed");
        // printf %s ca_0123… | sha256sum
        let expected = "d1c6c05b51c62f8df2ed76ee018b4ceee38e5df0be6b0fc44fdd818c80996ca8";
        assert_eq!(hex::encode(key.hash()), expected);
    }

    #[test]
    fn hashes_are_the_same_only_if_every_bit_is() {
        let hash = [9; 32];
        assert!(hashes_equal(&hash, &hash.clone()));
        for bit in 0..256 {
            let mut other = hash;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!hashes_equal(&hash, &other));
        }
    }

    #[test]
    fn a_bearer_header_gives_its_credential() {
        for header in ["Bearer abc", "bearer abc", "BEARER abc", "Bearer   abc", " Bearer abc\t"] {
            assert_eq!(parse_bearer(header), Some("abc"), "{header:?}");
        }
        for header in
            ["", "Bearer", "Bearer ", "abc", "Basic abc", "Bearer a b", "Bearerabc", "Bearer é"]
        {
            assert_eq!(parse_bearer(header), None, "{header:?}");
        }
    }
}
