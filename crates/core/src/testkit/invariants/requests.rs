//! Invariants of signed orders and of jobs whose requester names the agents to invite.

use std::collections::{BTreeMap, BTreeSet};

use crate::alias::{Claim, ClaimTarget, Digest, claim};
use crate::changes::Changes;
use crate::id::{AgentId, JobId};
use crate::job::{Job, Offer, Requester, Selection, State};
use crate::money::Credits;
use crate::world::World;

/// Used ids, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct RequestChecks {
    claims: BTreeMap<Digest, ClaimTarget>,
    /// Signed orders that had an effect.
    heard: BTreeSet<Digest>,
    /// All agents ever invited for each job.
    asked: BTreeMap<JobId, Vec<AgentId>>,
    /// The worker of each job.
    chosen: BTreeMap<JobId, AgentId>,
    /// Jobs that were agreed and then deferred.
    put_off: BTreeSet<JobId>,
}

impl RequestChecks {
    pub fn check(&mut self, changes: &Changes, world: &World) {
        for claim in &changes.claims {
            self.claim(claim);
        }
        let heard = changes
            .claims
            .iter()
            .filter(|one| matches!(one.target, ClaimTarget::SignedOrder { .. }));
        assert!(heard.count() <= 1, "one order has one effect");
        for job in changes.jobs.values() {
            if matches!(job.selection, Selection::Invited { .. }) {
                self.job(job);
                self.names(job, world);
            }
        }
    }

    /// An id stands for one thing forever, unless two parties use it or it is released.
    fn claim(&mut self, claim: &Claim) {
        let Claim { digest, target, .. } = *claim;
        if let ClaimTarget::SignedOrder { .. } = target {
            assert!(self.heard.insert(digest), "a signed id was used twice");
        }
        let before = self.claims.insert(digest, target);
        let may_follow = match before {
            None | Some(ClaimTarget::Released) => {
                target != ClaimTarget::Released && target != ClaimTarget::Ambiguous
            }
            Some(ClaimTarget::Job(_)) => {
                matches!(target, ClaimTarget::Released | ClaimTarget::Ambiguous)
            }
            Some(ClaimTarget::Offer { .. } | ClaimTarget::Ambiguous) => {
                target == ClaimTarget::Ambiguous
            }
            Some(_) => false,
        };
        assert!(may_follow, "an id changed from {before:?} to {target:?}");
    }

    /// At most one worker, which was invited; never more held than agreed.
    fn job(&mut self, job: &Job) {
        let first = self.asked.entry(job.id).or_insert_with(|| job.candidates.invited.clone());
        assert!(
            job.candidates.invited.iter().all(|one| first.contains(one)),
            "no agent is invited later"
        );
        let unique: BTreeSet<AgentId> = job.candidates.invited.iter().copied().collect();
        assert_eq!(unique.len(), job.candidates.invited.len(), "no agent is invited twice");
        let out = job.candidates.invited.iter().all(|one| !job.candidates.declined.contains(one));
        assert!(
            out || job.assignment.is_some() || job.state.is_final(),
            "a declining agent is out"
        );
        assert!(
            !job.candidates.invited.iter().any(|one| job.is_requested_by(*one)),
            "no agent invites itself"
        );
        let agreed = job.assignment.map(|turn| turn.price);
        self.put_off.extend(job.candidates.pending_assignment.map(|_| job.id));
        match job.state {
            State::Open => {
                let alone = first.len() == 1 && job.candidates.declined.is_empty();
                assert!(job.payment.held.is_zero() || alone, "a hold without a sole invitee");
                let unbound = matches!(job.selection, Selection::Invited { offers_only: true, .. });
                assert!(
                    job.payment.held.is_zero() || !unbound,
                    "a request for any hub holds nothing"
                );
            }
            State::Negotiating => {
                assert_eq!(job.payment.held, Credits::ZERO, "nothing is agreed yet")
            }
            // Not assigned yet, but a price is agreed.
            State::Deferred { .. } if agreed.is_none() => {}
            State::Assigned | State::Running | State::Deferred { .. } => {
                assert_eq!(Some(job.payment.held), agreed, "the agreed price is held");
            }
            _ => assert_eq!(job.payment.held, Credits::ZERO, "no hold outlives its job"),
        }
        if let Some(turn) = job.assignment {
            let chosen = *self.chosen.entry(job.id).or_insert(turn.worker);
            assert_eq!(chosen, turn.worker, "the requester chooses once");
            // A deferred job keeps the price that was valid before.
            let later = job.epoch > 1 || self.put_off.contains(&job.id);
            let stood = |offer: &Offer| turn.since < offer.valid_until || later;
            let offered = |offer: &Offer| {
                offer.by == turn.worker && offer.price == turn.price && stood(offer)
            };
            assert!(first.contains(&turn.worker), "assigned to an agent that was not invited");
            assert!(
                job.candidates.offers.is_empty() || job.candidates.offers.iter().any(offered),
                "{job:?}"
            );
        }
    }

    /// Invited agents and receivers of offers can refer to the job or offer by its id.
    fn names(&self, job: &Job, world: &World) {
        let Requester::Agent(requester) = job.request.requester else {
            panic!("requested by a guest: {job:?}")
        };
        let asking = world.agent(requester).expect("the requester is registered");
        let id = job
            .request
            .foreign_id
            .strip_prefix(&asking.native_id)
            .and_then(|rest| rest.strip_prefix('/'));
        let id = id.expect("the full id starts with the requester's id");
        let leads = |digest| self.claims.get(&digest).copied();
        let signed = leads(claim::signed_order(asking.home, &asking.native_id, id));
        assert!(
            matches!(signed, Some(ClaimTarget::SignedOrder { job: Some(to), .. }) if to == job.id)
        );
        assert_eq!(
            leads(claim::job(job.request.origin, &job.request.foreign_id)),
            Some(ClaimTarget::Job(job.id))
        );
        for provider in &self.asked[&job.id] {
            let asked = leads(claim::invited_job(*provider, id));
            assert!(
                [Some(ClaimTarget::Job(job.id)), Some(ClaimTarget::Ambiguous)].contains(&asked)
            );
        }
        for (place, offer) in (0..).zip(&job.candidates.offers) {
            let target = Some(ClaimTarget::Offer { job: job.id, index: place });
            let from = |from| leads(claim::offer(requester, from, &offer.name));
            assert_eq!(from(Some(offer.by)), target, "the maker's own id is unique");
            assert!([target, Some(ClaimTarget::Ambiguous)].contains(&from(None)));
        }
    }
}
