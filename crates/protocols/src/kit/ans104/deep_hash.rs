//! The deep hash: a hash of a list of blobs in which every boundary counts.

use sha2::{Digest, Sha384};

pub(super) fn deep_hash(blobs: &[&[u8]]) -> [u8; 48] {
    let list: [u8; 48] = Sha384::digest(format!("list{}", blobs.len())).into();
    blobs.iter().fold(list, |hash, blob| {
        let pair = Sha384::new_with_prefix(hash).chain_update(one(blob));
        pair.finalize().into()
    })
}

fn one(blob: &[u8]) -> [u8; 48] {
    let tag = Sha384::digest(format!("blob{}", blob.len()));
    let pair = Sha384::new_with_prefix(tag).chain_update(Sha384::digest(blob));
    pair.finalize().into()
}
