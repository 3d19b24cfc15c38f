//! secp256k1 over the hash, signed as a text message by Ethereum wallets.

use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use sha3::{Digest, Keccak256};

use crate::kit::ans104::error::ItemSignatureError;

/// What wallets put before a text of 48 bytes.
const PREFIX: &[u8] = b"\x19Ethereum Signed Message:\n48";

pub fn verify(owner: &[u8], hash: &[u8; 48], signature: &[u8]) -> Result<(), ItemSignatureError> {
    let key = VerifyingKey::from_sec1_bytes(owner).map_err(|_| ItemSignatureError::BadKey)?;
    let [numbers @ .., v] = signature else { return Err(ItemSignatureError::BadSignature) };
    let signature = Signature::from_slice(numbers).map_err(|_| ItemSignatureError::BadSignature)?;
    let digest = Keccak256::new_with_prefix(PREFIX).chain_update(hash).finalize();
    // The other value of s would be a second signature of the same content.
    if signature.normalize_s() != signature {
        return Err(ItemSignatureError::Malleable);
    }
    let recovery = v.checked_sub(27).filter(|id| *id < 2).and_then(RecoveryId::from_byte);
    let recovery = recovery.ok_or(ItemSignatureError::Malleable)?;
    let recovered = VerifyingKey::recover_from_prehash(&digest, &signature, recovery);
    match recovered {
        Ok(recovered) if recovered == key => Ok(()),
        _ => Err(ItemSignatureError::BadSignature),
    }
}
