//! Offers a peer has made, and whether they can still be taken.

use std::collections::HashMap;

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::{Code, Failure};
use rialto_protocols::kit::ed25519::PublicKey;

use crate::agora::handler::Job;

/// How long after its end an offer is known as one that ran out.
const KNOWN: Millis = Millis::minutes(10);
/// Offers that are known at a time.
const OFFERS_MAX: usize = 10_000;

/// The offers, by their ids.
#[derive(Debug, Default)]
pub(super) struct Offers(HashMap<String, Offer>);

#[derive(Debug)]
struct Offer {
    job: Job,
    until: Timestamp,
    taken: bool,
}

impl Offers {
    /// Whether another offer can be made.
    pub(super) fn has_room(&mut self, now: Timestamp) -> bool {
        self.0.retain(|_, offer| now < offer.until.plus(KNOWN));
        self.0.len() < OFFERS_MAX
    }

    /// Remembers an offer that stands from now on.
    pub(super) fn make(&mut self, id: String, job: Job, ttl: Millis, now: Timestamp) {
        self.0.insert(id, Offer { job, until: now.plus(ttl), taken: false });
    }

    /// Takes an offer. Strangers learn nothing about it (D19).
    pub(super) fn take(&mut self, id: &str, by: PublicKey, now: Timestamp) -> Result<Job, Failure> {
        let offer = self.0.get_mut(id).filter(|offer| offer.job.requester == by);
        let offer =
            offer.ok_or_else(|| Failure::unauthorized("no offer of that id concerns you"))?;
        if offer.taken {
            return Err(Failure::bad_request("the offer was taken already"));
        }
        // R53: at the very end it is over.
        if now >= offer.until {
            return Err(Failure::new(Code::Timeout, "the offer has expired")
                .with_hint("send the REQUEST again under a new id"));
        }
        offer.taken = true;
        Ok(offer.job.clone())
    }

    /// Forgets the offers for a request that is no longer wanted; `false` if there are none.
    pub(super) fn withdraw(&mut self, request_id: &str, by: PublicKey) -> bool {
        let before = self.0.len();
        self.0.retain(|_, offer| {
            offer.taken || offer.job.requester != by || offer.job.request_id != request_id
        });
        self.0.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(requester: PublicKey) -> Job {
        Job {
            request_id: "r".to_owned(),
            requester,
            resource: "x".to_owned(),
            params: "{}".to_owned(),
            max: None,
            timeout: None,
            direct: true,
        }
    }

    #[test]
    fn an_offer_is_taken_once_in_time_and_by_who_asked() {
        let [me, you] = [1, 2].map(|byte| PublicKey::from_bytes([byte; 32]));
        let mut offers = Offers::default();
        offers.make("o".to_owned(), job(me), Millis(1_000), Timestamp(0));
        let code = |taken: Result<Job, Failure>| taken.expect_err("refused").code.number();
        assert_eq!(code(offers.take("o", you, Timestamp(0))), 401);
        assert_eq!(code(offers.take("p", me, Timestamp(0))), 401);
        assert_eq!(code(offers.take("o", me, Timestamp(1_000))), 408);
        assert!(offers.take("o", me, Timestamp(999)).is_ok());
        assert_eq!(code(offers.take("o", me, Timestamp(999))), 400);
        offers.make("q".to_owned(), job(me), Millis(1_000), Timestamp(0));
        assert!(!offers.withdraw("r", you));
        assert!(offers.withdraw("r", me));
        assert_eq!(code(offers.take("q", me, Timestamp(0))), 401);
    }
}
