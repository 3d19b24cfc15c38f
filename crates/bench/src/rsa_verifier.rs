//! Upper bound for one core: verifying the RSA signature of one item, and nothing else.

use std::io;
use std::time::{Duration, Instant};

use aws_lc_rs::signature::{
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPssSaltLength, RsaPublicKeyComponents,
};
use rialto_protocols::kit::ans104::{Item, SignatureType};

use super::load::LoadPlan;
use super::measurement::{Measurement, Tally};

/// The public exponent of all wallets.
const EXPONENT: [u8; 3] = [1, 0, 1];
/// The salt length our wallets use.
const PSS_MAX_SALT: RsaParameters =
    RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);

/// An item to verify repeatedly. The key is built each time, because it comes with each item.
pub struct RsaVerifier {
    owner: Vec<u8>,
    hash: [u8; 48],
    signature: Vec<u8>,
}

impl RsaVerifier {
    /// Prepares the verification of an item, with its hash computed.
    pub fn of(item: &[u8]) -> io::Result<Self> {
        let item = Item::read(item).map_err(io::Error::other)?;
        if item.signature_type != SignatureType::Arweave {
            return Err(io::Error::other("the item is not signed with RSA"));
        }
        let (owner, signature) = (item.owner.to_vec(), item.signature.to_vec());
        Ok(Self { owner, hash: item.deep_hash(), signature })
    }

    /// Verifies on this thread for `duration`.
    pub fn run(&self, duration: Duration) -> io::Result<Measurement> {
        let (began, mut tally) = (Instant::now(), Tally::default());
        while began.elapsed() < duration {
            let key = RsaPublicKeyComponents { n: self.owner.as_slice(), e: &EXPONENT };
            let checked = key.verify(&PSS_MAX_SALT, &self.hash, &self.signature);
            checked.map_err(|_| io::Error::other("the signature does not verify"))?;
            tally.good += 1;
        }
        let plan = LoadPlan {
            connections: 1,
            duration: began.elapsed(),
            ..LoadPlan::new(([127, 0, 0, 1], 0).into())
        };
        Ok(tally.into_measurement(&plan))
    }
}
