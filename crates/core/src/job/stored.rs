//! The stored form of a job: one flat JSON object, as every version of the hub writes it.
//!
//! The fields of a job are grouped by subject in memory. The row names and orders them as the first
//! version did, so that rows of older versions are read and older versions read these. Writing
//! borrows from the job, because its input and output may be long.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::{
    Acceptance, AgreedPrice, Assignment, AuctionRound, Backoff, Candidates, DEFAULT_PRIORITY,
    Handover, Job, JobResult, JobWebhook, Links, Offer, Payment, PendingAssignment, Policy,
    Progress, Question, Request, Requester, RequesterMessage, Selection, State,
};
use crate::agent::key_limits::SpendingKey;
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, JobId, OwnerId};
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::time::{Millis, Timestamp};

#[derive(Serialize, Deserialize)]
struct StoredJob<'a> {
    id: JobId,
    uuid: Uuid,
    origin: Protocol,
    foreign: Cow<'a, str>,
    content: Digest,
    requester: Cow<'a, Requester>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payer: Option<OwnerId>,
    skill: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    also: Cow<'a, [String]>,
    input: Cow<'a, str>,
    budget: Credits,
    #[serde(default, skip_serializing_if = "PriceStep::is_finest")]
    #[serde(rename = "grain")]
    price_step: PriceStep,
    held: Credits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<SpendingKey>,
    selection: Selection,
    policy: Policy,
    state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assignment: Option<Assignment>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    agreed: Cow<'a, [AgreedPrice]>,
    epoch: u32,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    declined: Cow<'a, [AgentId]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    asked: Cow<'a, [AgentId]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    offers: Cow<'a, [Offer]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round: Option<AuctionRound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payment_proof: Option<Cow<'a, str>>,
    opened_at: Timestamp,
    deadline: Timestamp,
    lease: Millis,
    pending: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flaw: Option<Cow<'a, str>>,
    meta: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    report: Option<Cow<'a, JobResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    called: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wanted: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised: Option<Timestamp>,
    #[serde(default = "default_priority", skip_serializing_if = "is_default_priority")]
    priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits_for: Option<PendingAssignment>,
    #[serde(default, skip_serializing_if = "Backoff::is_empty")]
    rest: Backoff,
    #[serde(default, skip_serializing_if = "is_zero")]
    posts_before: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    posts_at_end: u64,
    hops: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before_asked: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before_worked: Option<JobId>,
    #[serde(default, skip_serializing_if = "Progress::is_empty")]
    progress: Cow<'a, Progress>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    questions: Cow<'a, [Question]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    messages: Cow<'a, [RequesterMessage]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    webhooks: Cow<'a, [JobWebhook]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handover: Option<Cow<'a, Handover>>,
}

fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

fn is_default_priority(priority: &u8) -> bool {
    *priority == DEFAULT_PRIORITY
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn borrow(text: &Option<String>) -> Option<Cow<'_, str>> {
    text.as_deref().map(Cow::Borrowed)
}

impl Serialize for Job {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, candidates, payment, acceptance, links, .. } = self;
        let row = StoredJob {
            id: self.id,
            uuid: self.uuid,
            origin: request.origin,
            foreign: Cow::Borrowed(&request.foreign_id),
            content: request.content,
            requester: Cow::Borrowed(&request.requester),
            payer: payment.payer,
            skill: Cow::Borrowed(&request.skill),
            also: Cow::Borrowed(&request.alternative_skills),
            input: Cow::Borrowed(&request.input),
            budget: payment.budget,
            price_step: payment.price_step,
            held: payment.held,
            key: payment.key,
            selection: self.selection,
            policy: self.policy,
            state: self.state,
            assignment: self.assignment,
            agreed: Cow::Borrowed(&payment.agreed_prices),
            epoch: self.epoch,
            declined: Cow::Borrowed(&candidates.declined),
            asked: Cow::Borrowed(&candidates.invited),
            offers: Cow::Borrowed(&candidates.offers),
            round: candidates.round,
            asked_at: candidates.invitation_position,
            read_at: candidates.read_at,
            payment_proof: borrow(&payment.proof),
            opened_at: request.opened_at,
            deadline: request.deadline,
            lease: request.lease,
            pending: self.pending,
            callback: borrow(&request.callback),
            flaw: borrow(&request.input_error),
            meta: Cow::Borrowed(&request.meta),
            report: self.result.as_ref().map(Cow::Borrowed),
            ended_at: self.ended_at,
            called: acceptance.worker_job_id,
            accepted_at: acceptance.accepted_at,
            ready_at: acceptance.ready_at,
            wanted: request.wanted_by,
            promised: acceptance.promised,
            priority: request.priority,
            waits_for: candidates.pending_assignment,
            rest: candidates.backoff,
            posts_before: links.market_orders_before,
            posts_at_end: links.market_orders_at_end,
            hops: request.hops,
            before_asked: links.previous_requested,
            before_worked: links.previous_worked,
            progress: Cow::Borrowed(&self.progress),
            questions: Cow::Borrowed(&self.questions),
            messages: Cow::Borrowed(&self.messages),
            webhooks: Cow::Borrowed(&self.webhooks),
            handover: self.handover.as_ref().map(Cow::Borrowed),
        };
        row.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let row = StoredJob::deserialize(deserializer)?;
        Ok(Self {
            id: row.id,
            uuid: row.uuid,
            state: row.state,
            request: Request {
                requester: row.requester.into_owned(),
                origin: row.origin,
                foreign_id: row.foreign.into_owned(),
                content: row.content,
                skill: row.skill.into_owned(),
                alternative_skills: row.also.into_owned(),
                input: row.input.into_owned(),
                input_error: row.flaw.map(Cow::into_owned),
                meta: row.meta.into_owned(),
                hops: row.hops,
                priority: row.priority,
                opened_at: row.opened_at,
                deadline: row.deadline,
                wanted_by: row.wanted,
                lease: row.lease,
                callback: row.callback.map(Cow::into_owned),
            },
            policy: row.policy,
            selection: row.selection,
            candidates: Candidates {
                declined: row.declined.into_owned(),
                invited: row.asked.into_owned(),
                invitation_position: row.asked_at,
                read_at: row.read_at,
                offers: row.offers.into_owned(),
                round: row.round,
                pending_assignment: row.waits_for,
                backoff: row.rest,
            },
            payment: Payment {
                payer: row.payer,
                budget: row.budget,
                price_step: row.price_step,
                held: row.held,
                key: row.key,
                agreed_prices: row.agreed.into_owned(),
                proof: row.payment_proof.map(Cow::into_owned),
            },
            epoch: row.epoch,
            assignment: row.assignment,
            handover: row.handover.map(Cow::into_owned),
            acceptance: Acceptance {
                accepted_at: row.accepted_at,
                ready_at: row.ready_at,
                promised: row.promised,
                worker_job_id: row.called,
            },
            progress: row.progress.into_owned(),
            questions: row.questions.into_owned(),
            messages: row.messages.into_owned(),
            webhooks: row.webhooks.into_owned(),
            pending: row.pending,
            result: row.report.map(Cow::into_owned),
            ended_at: row.ended_at,
            links: Links {
                previous_requested: row.before_asked,
                previous_worked: row.before_worked,
                market_orders_before: row.posts_before,
                market_orders_at_end: row.posts_at_end,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with every field, as the hub wrote it before fields were grouped.
    const FULL: &str = concat!(
        r#"{"id":7,"uuid":"00000000-0000-0000-0000-000000000007","origin":"agora","foreign":"did/7","#,
        r#""content":"00112233445566778899aabbccddeeff","requester":{"Agent":2},"payer":3,"skill":"sum","#,
        r#""also":["add"],"input":"{\"n\":1.50}","budget":2000000,"grain":{"decimals":2,"least":0},"held":1500000,"#,
        r#""selection":{"Asked":{"any_price":true}},"policy":{"next_when_unreachable":true,"#,
        r#""next_when_declined":false,"next_when_failed":false,"queue_unmatched":false},"#,
        r#""state":{"Deferred":{"until":90}},"assignment":{"worker":4,"owner":5,"price":1500000,"#,
        r#""since":20,"until":80,"handed_over":true,"told_at":9},"#,
        r#""agreed":[{"worker":4,"price":1500000,"own":1400000}],"epoch":2,"declined":[6],"asked":[4],"#,
        r#""offers":[{"by":4,"name":"o-1","price":1500000,"eta":5,"at":15,"valid_until":95,"told_at":3}],"#,
        r#""round":{"number":1,"since":11},"asked_at":8,"read_at":12,"payment_proof":"p","opened_at":10,"#,
        r#""deadline":100,"lease":60,"pending":true,"callback":"https://a.example","flaw":"f","meta":"{}","#,
        r#""report":{"ok":false,"paid":0,"took":4,"cause":"NobodyLeft","text":"t","words":"{}"},"#,
        r#""ended_at":99,"called":"00000000-0000-0000-0000-000000000008","accepted_at":21,"ready_at":70,"#,
        r#""wanted":75,"promised":76,"priority":1,"waits_for":{"worker":4,"approval":true},"#,
        r#""rest":{"vain":1,"until":88},"posts_before":13,"posts_at_end":14,"hops":1,"#,
        r#""before_asked":5,"before_worked":6}"#,
    );

    #[test]
    fn a_row_of_an_older_version_is_read_and_written_byte_for_byte() {
        let job: Job = serde_json::from_str(FULL).unwrap();
        assert_eq!(serde_json::to_string(&job).unwrap(), FULL);
        assert_eq!(job.candidates.invited, [AgentId(4)]);
        assert_eq!(job.payment.held.micros(), 1_500_000);
        assert_eq!(job.acceptance.promised, Some(Timestamp(76)));
        assert_eq!(job.links.market_orders_at_end, 14);
    }

    #[test]
    fn fields_without_a_value_are_left_out_and_read_as_their_defaults() {
        let bare = concat!(
            r#"{"id":1,"uuid":"00000000-0000-0000-0000-000000000001","origin":"registry","foreign":"j","#,
            r#""content":"00112233445566778899aabbccddeeff","requester":{"Guest":"g"},"skill":"sum","#,
            r#""input":"{}","budget":0,"held":0,"selection":"Offers","policy":{"#,
            r#""next_when_unreachable":false,"next_when_declined":false,"next_when_failed":false,"#,
            r#""queue_unmatched":false},"state":"Open","epoch":0,"opened_at":1,"deadline":2,"lease":3,"#,
            r#""pending":false,"meta":"{}","hops":0}"#,
        );
        let job: Job = serde_json::from_str(bare).unwrap();
        assert_eq!(serde_json::to_string(&job).unwrap(), bare);
        assert_eq!((job.request.priority, job.payment.payer), (DEFAULT_PRIORITY, None));
    }
}
