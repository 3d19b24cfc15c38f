//! Offers a peer has made, and whether they can still be accepted.

use std::collections::HashMap;
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::{Code, Failure};
use rialto_protocols::kit::ed25519::PublicKey;
use serde::{Deserialize, Serialize};

use crate::agora::handler::Job;

/// How long an expired offer is still reported as expired.
const EXPIRED_RETENTION: Millis = Millis::minutes(10);
/// Maximum number of offers, in total and per requester.
const OFFERS_MAX: usize = 10_000;
const OFFERS_PER_REQUESTER_MAX: usize = OFFERS_MAX / 8;
/// Maximum bytes of request data, in total and per requester.
const BYTES_MAX: usize = 32 << 20;
const BYTES_PER_REQUESTER_MAX: usize = BYTES_MAX / 8;
/// Approximate size of an offer besides its request data.
const OFFER_BYTES: usize = 512;
/// The default time for the work, counted from the REQUEST (R54).
pub(super) const DEFAULT_WORK_TIME: Duration = Duration::from_secs(600);

/// The offers, by id.
#[derive(Debug, Default)]
pub(super) struct Offers(HashMap<String, Offer>);

#[derive(Debug)]
struct Offer {
    job: Job,
    until: Timestamp,
    /// The deadline of the work, counted from the REQUEST (R54).
    deadline: Timestamp,
    is_accepted: bool,
}

/// An offer as stored in the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OfferRecord {
    pub(super) id: String,
    request_id: String,
    requester: String,
    resource: String,
    params: String,
    max: Option<i64>,
    until: Timestamp,
    deadline: Timestamp,
}

impl Offers {
    /// Whether another offer fits within the limits.
    pub(super) fn has_room(&mut self, job: &Job, now: Timestamp) -> bool {
        self.0.retain(|_, offer| now < offer.until.plus(EXPIRED_RETENTION));
        for offer in self.0.values_mut().filter(|offer| !offer.is_accepted && now >= offer.until) {
            offer.job.params = String::new();
        }
        let usage = |offers: &mut dyn Iterator<Item = &Offer>| {
            offers.fold((1, bytes(job)), |(count, sum), offer| (count + 1, sum + bytes(&offer.job)))
        };
        let is_theirs = |offer: &&Offer| offer.job.requester == job.requester;
        let (their_count, their_bytes) = usage(&mut self.0.values().filter(is_theirs));
        let (count, bytes) = usage(&mut self.0.values());
        count <= OFFERS_MAX
            && bytes <= BYTES_MAX
            && their_count <= OFFERS_PER_REQUESTER_MAX
            && their_bytes <= BYTES_PER_REQUESTER_MAX
    }

    /// Adds an offer that is valid from now, for a REQUEST that just arrived.
    pub(super) fn add(&mut self, id: String, job: Job, ttl: Millis, now: Timestamp) -> OfferRecord {
        let allowed = job.timeout.unwrap_or(DEFAULT_WORK_TIME).as_millis();
        let allowed = Millis(i64::try_from(allowed).unwrap_or(i64::MAX));
        let (until, deadline) = (now.plus(ttl), now.plus(allowed));
        let record = OfferRecord {
            id: id.clone(),
            request_id: job.request_id.clone(),
            requester: job.requester.did(),
            resource: job.resource.clone(),
            params: job.params.clone(),
            max: job.max.map(Credits::micros),
            until,
            deadline,
        };
        self.0.insert(id, Offer { job, until, deadline, is_accepted: false });
        record
    }

    /// Restores an offer of an earlier run of this program.
    pub(super) fn restore(&mut self, record: OfferRecord) {
        let Ok(requester) = PublicKey::parse(&record.requester) else { return };
        let job = Job {
            request_id: record.request_id,
            requester,
            resource: record.resource,
            params: record.params,
            max: record.max.map(Credits::from_micros),
            timeout: None,
            may_skip_offer: true,
        };
        let OfferRecord { id, until, deadline, .. } = record;
        self.0.insert(id, Offer { job, until, deadline, is_accepted: false });
    }

    /// Restores an offer that an earlier run accepted in time, with the work finished or not.
    pub(super) fn restore_accepted(&mut self, id: &str, is_finished: bool) {
        let Some(offer) = self.0.get_mut(id) else { return };
        if is_finished {
            offer.is_accepted = true;
        } else {
            offer.until = offer.until.max(offer.deadline);
        }
    }

    /// Accepts an offer. Other agents learn nothing about it (D19).
    pub(super) fn accept(
        &mut self,
        id: &str,
        by: PublicKey,
        now: Timestamp,
    ) -> Result<Job, Failure> {
        let offer = self.0.get_mut(id).filter(|offer| offer.job.requester == by);
        let offer = offer.ok_or_else(|| Failure::unauthorized("no offer to you has this id"))?;
        if offer.is_accepted {
            return Err(Failure::bad_request("the offer was already accepted"));
        }
        // R53: at the exact end it has expired. R54: so has the time for the work.
        if now >= offer.until || now >= offer.deadline {
            return Err(Failure::new(Code::Timeout, "the offer has expired")
                .with_hint("send the REQUEST again under a new id"));
        }
        offer.is_accepted = true;
        let Millis(left) = offer.deadline.since(now);
        let timeout = Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)));
        Ok(Job { timeout, ..offer.job.clone() })
    }

    /// Ends an accepted offer, or makes it available again if its work was never started.
    pub(super) fn finish(&mut self, id: &str, may_be_accepted_again: bool) {
        let Some(offer) = self.0.get_mut(id) else { return };
        if may_be_accepted_again {
            offer.is_accepted = false;
        } else {
            offer.job.params = String::new();
        }
    }

    /// Removes the offers for a withdrawn request; `false` if there are none.
    pub(super) fn withdraw(&mut self, request_id: &str, by: PublicKey) -> bool {
        let before = self.0.len();
        self.0.retain(|_, offer| {
            offer.is_accepted || offer.job.requester != by || offer.job.request_id != request_id
        });
        self.0.len() < before
    }
}

fn bytes(job: &Job) -> usize {
    OFFER_BYTES + job.request_id.len() + job.resource.len() + job.params.len()
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
            may_skip_offer: true,
        }
    }

    fn keys() -> [PublicKey; 2] {
        [1, 2].map(|byte| PublicKey::from_bytes([byte; 32]))
    }

    fn code(accepted: Result<Job, Failure>) -> i64 {
        i64::from(accepted.expect_err("refused").code.number())
    }

    #[test]
    fn an_offer_is_accepted_once_in_time_and_by_its_requester() {
        let [me, you] = keys();
        let mut offers = Offers::default();
        offers.add("o".to_owned(), job(me), Millis(1_000), Timestamp(0));
        assert_eq!(code(offers.accept("o", you, Timestamp(0))), 401);
        assert_eq!(code(offers.accept("p", me, Timestamp(0))), 401);
        assert_eq!(code(offers.accept("o", me, Timestamp(1_000))), 408);
        assert!(offers.accept("o", me, Timestamp(999)).is_ok());
        assert_eq!(code(offers.accept("o", me, Timestamp(999))), 400);
        offers.finish("o", true);
        assert!(offers.accept("o", me, Timestamp(999)).is_ok());
        offers.finish("o", false);
        assert_eq!(code(offers.accept("o", me, Timestamp(999))), 400);
        offers.add("q".to_owned(), job(me), Millis(1_000), Timestamp(0));
        assert!(!offers.withdraw("r", you));
        assert!(offers.withdraw("r", me));
        assert_eq!(code(offers.accept("q", me, Timestamp(0))), 401);
    }

    #[test]
    fn the_time_for_the_work_counts_from_the_request() {
        let [me, _] = keys();
        let mut offers = Offers::default();
        let hasty = Job { timeout: Some(Duration::from_millis(500)), ..job(me) };
        offers.add("o".to_owned(), hasty.clone(), Millis(1_000), Timestamp(0));
        let accepted = offers.accept("o", me, Timestamp(400)).expect("in time");
        assert_eq!(accepted.timeout, Some(Duration::from_millis(100)));
        offers.add("p".to_owned(), hasty, Millis(1_000), Timestamp(0));
        assert_eq!(code(offers.accept("p", me, Timestamp(500))), 408);
    }

    #[test]
    fn no_requester_uses_all_space_with_many_offers_or_with_long_ones() {
        let [me, you] = keys();
        let (now, mut offers) = (Timestamp(0), Offers::default());
        let long = |by| Job { params: "x".repeat(1 << 20), ..job(by) };
        let mut made = 0;
        while offers.has_room(&long(me), now) {
            offers.add(made.to_string(), long(me), Millis(1_000), now);
            made += 1;
        }
        assert_eq!(made, BYTES_PER_REQUESTER_MAX / (1 << 20) - 1);
        assert!(offers.has_room(&long(you), now));
        // Expired and finished offers hardly count towards the limit.
        assert!(offers.has_room(&long(me), Timestamp(1_000)));
        let mut offers = Offers::default();
        for n in 0..OFFERS_PER_REQUESTER_MAX {
            offers.add(n.to_string(), job(me), Millis(1_000), now);
        }
        assert!(!offers.has_room(&job(me), now));
        assert!(offers.has_room(&job(you), now));
    }

    #[test]
    fn an_offer_is_valid_after_a_restart_and_an_accepted_one_stays_accepted() {
        let [me, _] = keys();
        let mut before = Offers::default();
        let records = ["a", "b", "c"]
            .map(|id| before.add(id.to_owned(), job(me), Millis(1_000), Timestamp(0)));
        let mut offers = Offers::default();
        for record in records {
            offers.restore(record);
        }
        offers.restore_accepted("b", true);
        offers.restore_accepted("c", false);
        assert_eq!(code(offers.accept("b", me, Timestamp(1))), 400);
        let accepted = offers.accept("a", me, Timestamp(1)).expect("valid");
        assert_eq!((accepted.params, accepted.requester), ("{}".to_owned(), me));
        // It was accepted in time, and its work continues.
        assert!(offers.accept("c", me, Timestamp(5_000)).is_ok());
    }
}
