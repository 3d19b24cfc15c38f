//! Idempotency records: saved answers, so that a repeated request gets the first answer.
//!
//! The store has the full answer. The world holds only what recognises a repeat and counts usage
//! per caller. The body is read from the store when a repeat comes.

use serde::{Deserialize, Serialize};

use crate::alias::Digest;
use crate::answer::Answer;
use crate::command::{Command, SaveAnswer};
use crate::draft::Draft;
use crate::id::{AgentId, AnswerId, JobId, KeyId, NoticeId, OwnerId, TransferId};
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// How long an answer is saved.
pub const ANSWER_TTL: Millis = Millis::hours(24);
/// What a caller with a key may save regardless of how much others save. A flood of unregistered
/// callers, or of agents that cost nothing to register, must not take idempotency away from the
/// rest.
pub const GUARANTEED_SIZE: SavedSize = SavedSize { answers: 256, bytes: 256 << 10 };
/// Callers without a key may together use 1/`ANONYMOUS_SHARE` of the total.
pub const ANONYMOUS_SHARE: u64 = 4;

/// The caller whose share a saved answer counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Principal {
    Agent(AgentId),
    Operator,
    /// A caller without a key, by a digest of its network address.
    Anonymous(Digest),
}

impl Principal {
    /// The principal of rows written before shares existed, which do not record one.
    fn unknown() -> Self {
        Self::Anonymous(Digest([0; 16]))
    }
}

/// What makes a request repeatable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of caller, path and idempotency key.
    pub scope: Digest,
    /// Digest of the request body.
    pub request: Digest,
    /// The caller whose share of the saved answers the record counts against.
    pub principal: Principal,
}

impl Idempotency {
    /// The command that saves an answer for repeats.
    pub fn save(self, answer: SavedAnswer) -> Command {
        Command::SaveAnswer(Box::new(SaveAnswer { idempotency: self, answer }))
    }
}

/// Number of saved answers and bytes of their bodies. As a limit, 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedSize {
    pub answers: u64,
    pub bytes: u64,
}

impl SavedSize {
    /// Whether this usage has reached a limit.
    fn is_at_limit(self, limit: Self) -> bool {
        let full = |used: u64, limit: u64| limit != 0 && used >= limit;
        full(self.answers, limit.answers) || full(self.bytes, limit.bytes)
    }

    /// A limit divided by `of`, but never 0, which would mean no limit.
    fn share(self, of: u64) -> Self {
        let part = |limit: u64| if limit == 0 { 0 } else { limit.div_ceil(of) };
        Self { answers: part(self.answers), bytes: part(self.bytes) }
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        self.answers += 1;
        self.bytes += bytes;
    }

    pub(crate) fn subtract(&mut self, bytes: u64) {
        self.answers -= 1;
        self.bytes -= bytes;
    }
}

/// One saved answer, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    pub id: AnswerId,
    /// Digest of caller, path and idempotency key.
    pub scope: Digest,
    /// Digest of the request body.
    pub request: Digest,
    pub at: Timestamp,
    #[serde(default = "Principal::unknown")]
    pub principal: Principal,
    #[serde(rename = "kept")]
    pub answer: SavedAnswer,
}

/// What the world holds of a saved answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyEntry {
    pub id: AnswerId,
    pub scope: Digest,
    pub request: Digest,
    pub at: Timestamp,
    pub principal: Principal,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// What the command did; `None` once the full answer is in the store.
    pub receipt: Option<Receipt>,
}

impl From<&IdempotencyRecord> for IdempotencyEntry {
    fn from(row: &IdempotencyRecord) -> Self {
        let IdempotencyRecord { id, scope, request, at, principal, answer: ref kept } = *row;
        let (bytes, receipt) = match kept {
            SavedAnswer::Done(receipt) => (0, Some(receipt.clone())),
            SavedAnswer::Answer { body, .. } => (body.len() as u64, None),
        };
        Self { id, scope, request, at, principal, bytes, receipt }
    }
}

/// What is saved of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SavedAnswer {
    /// The command ran; the answer was not written yet.
    Done(Receipt),
    /// The full answer, without secrets.
    Answer { status: u16, body: String },
}

/// What a command did, by reference, so that its answer can be given again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    Nothing,
    Agent(AgentId),
    Owner(OwnerId),
    Job(JobId),
    Transfer(TransferId),
    Message(NoticeId),
    Refused(Refusal),
    Key(KeyId),
}

impl IdempotencyEntry {
    /// When it may be removed.
    pub fn expires_at(&self) -> Timestamp {
        self.at.plus(ANSWER_TTL)
    }
}

/// Whether one more answer may be saved for a caller. Nothing is evicted to make room: a repeat
/// gets the first outcome for the whole promised time.
pub fn check_capacity(world: &World, principal: Principal) -> Result<(), Refusal> {
    let (own, total) = (world.saved_for(principal), world.saved_total());
    let rules = &world.rules;
    let others = match principal {
        Principal::Anonymous(_) => {
            let strangers = world.saved_anonymous();
            total.is_at_limit(rules.saved_total)
                || strangers.is_at_limit(rules.saved_total.share(ANONYMOUS_SHARE))
        }
        Principal::Agent(_) | Principal::Operator => {
            total.is_at_limit(rules.saved_total) && own.is_at_limit(GUARANTEED_SIZE)
        }
    };
    match own.is_at_limit(rules.saved_per_principal) || others {
        true => Err(Refusal::TooManySavedAnswers),
        false => Ok(()),
    }
}

/// Saves an answer, replacing its receipt. Only the first record of a request needs capacity.
pub fn save_answer(draft: &mut Draft<'_>, order: SaveAnswer) -> Result<Answer, Refusal> {
    let SaveAnswer { idempotency: Idempotency { scope, request, principal }, answer: kept } = order;
    // The time counts from the receipt: ids then grow with age, and expiry goes by ids.
    let (id, at, principal) = match draft.world.idempotency_entry(scope, draft.now) {
        Some(known) => (known.id, known.at, known.principal),
        None => {
            check_capacity(draft.world, principal)?;
            let id = draft.next.answer;
            draft.next.answer = id.next();
            (id, draft.now, principal)
        }
    };
    draft.idempotency_records.push(IdempotencyRecord {
        id,
        scope,
        request,
        at,
        principal,
        answer: kept,
    });
    Ok(Answer::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::TestHub;
    use crate::world::Rules;

    const ADA: Principal = Principal::Agent(AgentId(1));

    fn scope(n: u32) -> Digest {
        Digest::of(&[b"scope", &n.to_be_bytes()])
    }

    fn address(n: u8) -> Principal {
        Principal::Anonymous(Digest::of(&[&[n]]))
    }

    fn try_note(
        scene: &mut TestHub,
        n: u32,
        by: Principal,
        kept: SavedAnswer,
    ) -> Result<Answer, Refusal> {
        let request = Digest::of(&[b"request"]);
        scene.run(Idempotency { scope: scope(n), request, principal: by }.save(kept))
    }

    fn note(scene: &mut TestHub, n: u32, kept: SavedAnswer) {
        try_note(scene, n, ADA, kept).unwrap();
    }

    fn answer(body: &str) -> SavedAnswer {
        SavedAnswer::Answer { status: 200, body: body.to_owned() }
    }

    /// What the store has of an answer that the world still holds.
    fn kept(scene: &TestHub, n: u32) -> Option<SavedAnswer> {
        let known = scene.world.idempotency_entry(scope(n), scene.now)?;
        Some(scene.store.rows.idempotency_records[&known.id].answer.clone())
    }

    /// What the lane does after every batch.
    fn forget(scene: &mut TestHub) -> usize {
        let stale = scene.world.expired_rows(scene.now, usize::MAX);
        scene.world.remove_expired(&stale);
        stale.answers.len()
    }

    #[test]
    fn an_answer_is_written_over_its_receipt() {
        let mut scene = TestHub::default();
        note(&mut scene, 1, SavedAnswer::Done(Receipt::Nothing));
        note(&mut scene, 1, answer("{}"));
        assert_eq!(kept(&scene, 1), Some(answer("{}")));
        assert_eq!(kept(&scene, 2), None);
        assert_eq!(scene.store.rows.idempotency_records.len(), 1, "one row, written twice");
    }

    #[test]
    fn an_answer_is_kept_for_a_day() {
        let mut scene = TestHub::default();
        note(&mut scene, 1, answer("{}"));
        scene.advance_without_timers(Millis(ANSWER_TTL.0 - 1));
        assert!(kept(&scene, 1).is_some());
        assert_eq!(forget(&mut scene), 0);
        scene.advance_without_timers(Millis(1));
        assert_eq!(kept(&scene, 1), None);
        assert_eq!(forget(&mut scene), 1);
        assert_eq!(forget(&mut scene), 0);
    }

    #[test]
    fn writing_an_answer_down_late_does_not_make_it_last_longer() {
        let mut scene = TestHub::default();
        note(&mut scene, 1, SavedAnswer::Done(Receipt::Nothing));
        note(&mut scene, 2, SavedAnswer::Done(Receipt::Nothing));
        scene.advance_without_timers(Millis::hours(23));
        note(&mut scene, 1, answer("late"));
        scene.advance_without_timers(Millis::hours(1));
        assert_eq!(kept(&scene, 1), None);
        assert_eq!(forget(&mut scene), 2, "and does not keep younger ones from expiring");
    }

    #[test]
    fn a_key_used_again_after_its_day_leaves_no_old_row_behind() {
        let mut scene = TestHub::default();
        note(&mut scene, 1, answer("first"));
        note(&mut scene, 2, answer("other"));
        scene.advance_without_timers(ANSWER_TTL);
        note(&mut scene, 1, answer("second"));
        for _ in 0..2 {
            assert_eq!(forget(&mut scene), 2, "the old row and the other one");
            assert_eq!(kept(&scene, 1), Some(answer("second")));
            assert_eq!(forget(&mut scene), 0);
            // The same after a restart in between.
            scene.world = scene.store.rebuild_world(scene.world.rules);
            assert_eq!(kept(&scene, 1), Some(answer("second")));
        }
    }

    #[test]
    fn what_is_kept_is_counted_for_its_caller_and_no_longer_than_it_is_kept() {
        let mut scene = TestHub::default();
        note(&mut scene, 1, SavedAnswer::Done(Receipt::Nothing));
        assert_eq!(scene.world.saved_for(ADA), SavedSize { answers: 1, bytes: 0 });
        note(&mut scene, 1, answer("12345"));
        try_note(&mut scene, 2, address(1), answer("123")).unwrap();
        for _ in 0..2 {
            assert_eq!(scene.world.saved_for(ADA), SavedSize { answers: 1, bytes: 5 });
            assert_eq!(scene.world.saved_anonymous(), SavedSize { answers: 1, bytes: 3 });
            assert_eq!(scene.world.saved_total(), SavedSize { answers: 2, bytes: 8 });
            scene.world = scene.store.rebuild_world(scene.world.rules);
        }
        scene.advance_without_timers(ANSWER_TTL);
        assert_eq!(forget(&mut scene), 2);
        for amount in [scene.world.saved_for(ADA), scene.world.saved_total()] {
            assert_eq!(amount, SavedSize::default());
        }
        assert_eq!(scene.world.saved_anonymous(), SavedSize::default());
    }

    #[test]
    fn a_caller_at_its_cap_keeps_nothing_new_and_loses_nothing_old() {
        let each = [SavedSize { answers: 2, bytes: 0 }, SavedSize { answers: 0, bytes: 8 }];
        for kept_per_principal in each {
            let mut scene =
                TestHub::new(Rules { saved_per_principal: kept_per_principal, ..Rules::default() });
            note(&mut scene, 1, SavedAnswer::Done(Receipt::Nothing));
            note(&mut scene, 2, answer("12345678"));
            let refused = try_note(&mut scene, 3, ADA, answer("x"));
            assert_eq!(refused, Err(Refusal::TooManySavedAnswers));
            // A request that has begun is finished, and a repeat still finds it.
            note(&mut scene, 1, answer("done"));
            assert_eq!(kept(&scene, 1), Some(answer("done")));
            try_note(&mut scene, 3, address(1), answer("x")).expect("others have their own share");
            scene.advance_without_timers(ANSWER_TTL);
            forget(&mut scene);
            note(&mut scene, 3, answer("x"));
        }
    }

    #[test]
    fn a_flood_of_callers_without_a_key_leaves_most_of_the_room_to_those_with_one() {
        let kept_total = SavedSize { answers: 40, bytes: 0 };
        let mut scene = TestHub::new(Rules { saved_total: kept_total, ..Rules::default() });
        for n in 0..10 {
            let by = address(u8::try_from(n).unwrap());
            try_note(&mut scene, n, by, answer("flood")).expect("they have a share");
        }
        let refused = try_note(&mut scene, 10, address(99), answer("flood"));
        assert_eq!(refused, Err(Refusal::TooManySavedAnswers), "whatever address it comes from");
        for n in 11..41 {
            note(&mut scene, n, answer("mine"));
        }
    }

    #[test]
    fn a_caller_below_its_quota_is_not_refused_because_of_others() {
        let kept_total = SavedSize { answers: 10, bytes: 0 };
        let mut scene = TestHub::new(Rules { saved_total: kept_total, ..Rules::default() });
        let crowd = |n: u32| Principal::Agent(AgentId(u64::from(n)));
        for n in 0..20 {
            try_note(&mut scene, n, crowd(n), answer("x")).expect("little each");
        }
        assert_eq!(
            try_note(&mut scene, 20, address(1), answer("x")),
            Err(Refusal::TooManySavedAnswers)
        );
        let guaranteed = u32::try_from(GUARANTEED_SIZE.answers).unwrap();
        for n in 0..guaranteed {
            try_note(&mut scene, 100 + n, Principal::Operator, answer("x")).expect("guaranteed");
        }
        let refused = try_note(&mut scene, 99, Principal::Operator, answer("x"));
        assert_eq!(
            refused,
            Err(Refusal::TooManySavedAnswers),
            "a caller above its guarantee waits"
        );
    }

    #[test]
    fn a_row_from_before_there_were_shares_still_loads() {
        let digest = "00".repeat(16);
        let row = format!(
            r#"{{"id":7,"scope":"{digest}","request":"{digest}","at":5,"kept":{{"Answer":{{"status":200,"body":"{{}}"}}}}}}"#
        );
        let row: IdempotencyRecord = serde_json::from_str(&row).expect("it parses");
        let known = IdempotencyEntry::from(&row);
        assert_eq!((known.bytes, known.receipt), (2, None));
        assert!(matches!(known.principal, Principal::Anonymous(_)));
    }
}
