//! did:key: `did:key:z`, then base58btc of the key's multicodec and its bytes.

use super::{BadKey, KEY_LEN};

/// The prefix of every did:key in base58btc.
const PREFIX: &str = "did:key:z";
/// The digits of base58btc.
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// The multicodec of an Ed25519 public key, as a varint.
const ED25519: [u8; 2] = [0xed, 0x01];
/// Multicodecs of other public keys, each with the size of such a key in bytes: X25519, secp256k1,
/// BLS12-381 G1 and G2, P-256, P-384, P-521, Ed448 and X448.
const OTHERS: [([u8; 2], usize); 9] = [
    ([0xec, 0x01], 32),
    ([0xe7, 0x01], 33),
    ([0xea, 0x01], 48),
    ([0xeb, 0x01], 96),
    ([0x80, 0x24], 33),
    ([0x81, 0x24], 49),
    ([0x82, 0x24], 67),
    ([0x83, 0x24], 57),
    ([0x84, 0x24], 56),
];
/// Decoding base58 takes quadratic time, so longer texts are not decoded. Only RSA keys are longer.
const DECODED_MAX: usize = 136;
/// How RSA keys of 2048 and 4096 bits begin, and their maximum length.
const RSA: [&str; 2] = ["4MX", "gg"];
const RSA_MAX: usize = 1_024;

/// The key of a did:key. The text must be exactly what [`write`] returns for it.
pub(super) fn parse_did_key(text: &str) -> Result<[u8; KEY_LEN], BadKey> {
    let digits = text.strip_prefix(PREFIX).ok_or(BadKey::Malformed)?;
    if digits.len() > DECODED_MAX {
        return Err(if is_rsa(digits) { BadKey::OtherType } else { BadKey::Malformed });
    }
    let mut decoded = [0; DECODED_MAX];
    let length = bs58::decode(digits).onto(&mut decoded).map_err(|_| BadKey::Malformed)?;
    let (codec, key) = decoded[..length].split_first_chunk().ok_or(BadKey::Malformed)?;
    if *codec != ED25519 {
        let known = OTHERS.contains(&(*codec, key.len()));
        return Err(if known { BadKey::OtherType } else { BadKey::Malformed });
    }
    let key = key.try_into().map_err(|_| BadKey::Malformed)?;
    if format_did_key(&key) == text { Ok(key) } else { Err(BadKey::Malformed) }
}

/// The did:key of an Ed25519 key. Every envelope and receipt has a did, so this takes five digits
/// at a time from the 272 bits of multicodec and key.
pub(super) fn format_did_key(key: &[u8; KEY_LEN]) -> String {
    const STEP: u64 = 58_u64.pow(5);
    let mut limbs = [0; 1 + KEY_LEN / 4];
    limbs[0] = u32::from(u16::from_be_bytes(ED25519));
    let (words, _) = key.as_chunks();
    for (limb, word) in limbs[1..].iter_mut().zip(words) {
        *limb = u32::from_be_bytes(*word);
    }
    let mut digits = [0; 50];
    for five in digits.rchunks_exact_mut(5) {
        let mut rest = 0;
        for limb in &mut limbs {
            let value = rest << 32 | u64::from(*limb);
            // The remainder is below STEP, so the quotient is below 2^32.
            (*limb, rest) = ((value / STEP) as u32, value % STEP);
        }
        for digit in five.iter_mut().rev() {
            *digit = ALPHABET[(rest % 58) as usize];
            rest /= 58;
        }
    }
    // With the prefix ed 01, the number has 47 digits for any key.
    PREFIX.chars().chain(digits[3..].iter().copied().map(char::from)).collect()
}

fn is_rsa(digits: &str) -> bool {
    digits.len() <= RSA_MAX
        && RSA.iter().any(|start| digits.starts_with(start))
        && digits.bytes().all(|digit| ALPHABET.contains(&digit))
}
