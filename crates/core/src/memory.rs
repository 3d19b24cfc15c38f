//! Memory: answers kept so that a repeated request gets the first one again.

use serde::{Deserialize, Serialize};

use crate::alias::Digest;
use crate::draft::Draft;
use crate::id::{AgentId, AnswerId, JobId, NoticeId, OwnerId, TransferId};
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// How long an answer is kept.
pub const KEPT_FOR: Millis = Millis::hours(24);

/// One remembered answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub id: AnswerId,
    /// Of caller, path and key.
    pub scope: Digest,
    /// Of the request's body.
    pub request: Digest,
    pub at: Timestamp,
    pub kept: Kept,
}

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// The command has run; the answer had not been written down yet.
    Done(Receipt),
    /// The whole answer, secrets left out.
    Answer { status: u16, body: String },
}

/// What a command did, by reference, so that its answer can be told again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    Nothing,
    Agent(AgentId),
    Owner(OwnerId),
    Job(JobId),
    Transfer(TransferId),
    Message(NoticeId),
    Refused(Refusal),
}

impl Memory {
    /// When it may be forgotten.
    pub fn until(&self) -> Timestamp {
        self.at.plus(KEPT_FOR)
    }
}

/// Writes an answer down, over the receipt that stood there.
pub fn remember(draft: &mut Draft<'_>, scope: Digest, request: Digest, kept: Kept) {
    // The time is counted from the receipt: ids then grow with age, and forgetting goes by ids.
    let known = draft.world.memory(scope, draft.now).map(|memory| (memory.id, memory.at));
    let (id, at) = known.unwrap_or_else(|| {
        let id = draft.next.answer;
        draft.next.answer = id.next();
        (id, draft.now)
    });
    draft.memories.push(Memory { id, scope, request, at, kept });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::testkit::Scene;

    fn scope(n: u8) -> Digest {
        Digest::of(&[b"scope", &[n]])
    }

    fn note(scene: &mut Scene, n: u8, kept: Kept) {
        let request = Digest::of(&[b"request"]);
        scene.run(Command::Remember { scope: scope(n), request, kept }).unwrap();
    }

    fn answer(body: &str) -> Kept {
        Kept::Answer { status: 200, body: body.to_owned() }
    }

    fn kept(scene: &Scene, n: u8) -> Option<Kept> {
        scene.world.memory(scope(n), scene.now).map(|memory| memory.kept.clone())
    }

    /// What the lane does behind every batch.
    fn forget(scene: &mut Scene) -> usize {
        let stale: Vec<AnswerId> = scene.world.stale_memories(scene.now).collect();
        scene.world.forget(&stale);
        stale.len()
    }

    #[test]
    fn an_answer_is_written_over_its_receipt() {
        let mut scene = Scene::default();
        note(&mut scene, 1, Kept::Done(Receipt::Nothing));
        note(&mut scene, 1, answer("{}"));
        assert_eq!(kept(&scene, 1), Some(answer("{}")));
        assert_eq!(kept(&scene, 2), None);
        assert_eq!(scene.store.rows.memories.len(), 1, "one row, written twice");
    }

    #[test]
    fn an_answer_is_kept_for_a_day() {
        let mut scene = Scene::default();
        note(&mut scene, 1, answer("{}"));
        scene.sleep(Millis(KEPT_FOR.0 - 1));
        assert!(kept(&scene, 1).is_some());
        assert_eq!(forget(&mut scene), 0);
        scene.sleep(Millis(1));
        assert_eq!(kept(&scene, 1), None);
        assert_eq!(forget(&mut scene), 1);
        assert_eq!(forget(&mut scene), 0);
    }

    #[test]
    fn writing_an_answer_down_late_does_not_make_it_last_longer() {
        let mut scene = Scene::default();
        note(&mut scene, 1, Kept::Done(Receipt::Nothing));
        note(&mut scene, 2, Kept::Done(Receipt::Nothing));
        scene.sleep(Millis::hours(23));
        note(&mut scene, 1, answer("late"));
        scene.sleep(Millis::hours(1));
        assert_eq!(kept(&scene, 1), None);
        assert_eq!(forget(&mut scene), 2, "and does not keep younger ones from being forgotten");
    }

    #[test]
    fn a_key_used_again_after_its_day_leaves_no_old_row_behind() {
        let mut scene = Scene::default();
        note(&mut scene, 1, answer("first"));
        note(&mut scene, 2, answer("other"));
        scene.sleep(KEPT_FOR);
        note(&mut scene, 1, answer("second"));
        for _ in 0..2 {
            assert_eq!(forget(&mut scene), 2, "the old row and the other one");
            assert_eq!(kept(&scene, 1), Some(answer("second")));
            assert_eq!(forget(&mut scene), 0);
            // The same after a restart in the middle.
            scene.world = scene.store.rebuilt(scene.world.rules);
            assert_eq!(kept(&scene, 1), Some(answer("second")));
        }
    }
}
