//! Trace ids: the public ids of messages.
//!
//! A trace id is the message's number, sealed with the hub's key. It looks random, is the same
//! after every restart, is different on every hub, and needs no index to find its message.

use rialto_core::id::NoticeId;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The payload bits of a version 8 UUID.
const HIGH: u64 = 0xFFFF_FFFF_FFFF_0FFF;
const LOW: u64 = 0x3FFF_FFFF_FFFF_FFFF;

/// Makes and reads trace ids of one hub.
#[derive(Clone)]
pub struct TraceIds {
    key: [u8; 32],
}

impl TraceIds {
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The trace id of a message.
    pub fn of(&self, notice: NoticeId) -> Uuid {
        // Half of it proves that this hub made it; the other half is the number, masked by the
        // first.
        let seal = self.hash(b'a', notice.0) & HIGH;
        let number = (notice.0 ^ self.hash(b'b', seal)) & LOW;
        uuid::Builder::from_u128((u128::from(seal) << 64) | u128::from(number))
            .with_version(uuid::Version::Custom)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
    }

    /// The message of a trace id, if this hub made it.
    pub fn read(&self, trace: Uuid) -> Option<NoticeId> {
        let (high, low) = trace.as_u64_pair();
        let notice = NoticeId((low ^ self.hash(b'b', high & HIGH)) & LOW);
        (self.of(notice) == trace).then_some(notice)
    }

    /// The same from text; only the hyphenated form is accepted.
    pub fn read_text(&self, text: &str) -> Option<NoticeId> {
        self.read(text.parse::<uuid::fmt::Hyphenated>().ok()?.into_uuid())
    }

    fn hash(&self, purpose: u8, number: u64) -> u64 {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update([purpose]);
        hash.update(number.to_be_bytes());
        let full = hash.finalize();
        u64::from_be_bytes(full[..8].try_into().expect("a hash has more than eight bytes"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_of_two_hubs_never_meet_and_made_up_ones_lead_nowhere() {
        let [ours, theirs] = [1, 2].map(|n| TraceIds::new([n; 32]));
        assert_ne!(ours.of(NoticeId(1)), theirs.of(NoticeId(1)));
        assert_eq!(ours.read(theirs.of(NoticeId(1))), None);
        assert_eq!(ours.read(Uuid::nil()), None);
        assert_eq!(ours.read_text("no trace"), None);
        let text = ours.of(NoticeId(7)).to_string();
        assert_eq!(ours.read_text(&text), Some(NoticeId(7)));
        assert_eq!(ours.read_text(&text.replace('-', "")), None);
    }

    proptest! {
        #[test]
        fn a_trace_id_is_a_uuid_and_leads_back(number in 1_u64..LOW, key: [u8; 32]) {
            let traces = TraceIds::new(key);
            let trace = traces.of(NoticeId(number));
            prop_assert_eq!(trace.get_version_num(), 8);
            prop_assert_eq!(trace.get_variant(), uuid::Variant::RFC4122);
            prop_assert_eq!(traces.read(trace), Some(NoticeId(number)));
        }
    }
}
