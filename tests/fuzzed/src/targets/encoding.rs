//! The encoding of what is logged and of what travels between nodes: any bytes are a value or an error, and a value that
//! was read is written as bytes that give the same value.

use std::fmt::Debug;

use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::Command;
use rialto_core::encoding::{Encodable, decode, decode_batch, encode, encode_batch};
use rialto_core::envelope::Envelope;
use rialto_core::refusal::Refusal;
use rialto_engine::cluster::frame::Frame;

/// Checks the readers of all types.
pub fn encoding(bytes: &[u8]) {
    check::<Envelope>(bytes);
    check::<Command>(bytes);
    check::<Answer>(bytes);
    check::<Refusal>(bytes);
    check::<Changes>(bytes);
    check::<Frame>(bytes);
    if let Ok(batch) = decode_batch(bytes) {
        let again = encode_batch(&batch, Vec::new()).expect("what was read can be written");
        assert_eq!(decode_batch(&again), Ok(batch), "it changes when it is written again");
    }
}

fn check<T: Encodable + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(value) = decode::<T>(bytes) else { return };
    let again = encode(&value).expect("what was read can be written");
    assert_eq!(decode::<T>(&again).as_ref(), Ok(&value), "it changes when it is written again");
}
