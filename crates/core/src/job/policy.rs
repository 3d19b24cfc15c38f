//! Policies: what the requester of a job permits the hub to do with it.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What a requester permits beyond one assignment to one worker. By default it permits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    #[serde(flatten)]
    pub reassignment: Reassignment,
    #[serde(flatten)]
    pub queueing: Queueing,
    #[serde(flatten)]
    pub named_worker: NamedWorker,
    #[serde(flatten)]
    pub requester: RequesterOptions,
}

/// When a worker is replaced by the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reassignment {
    #[serde(rename = "next_when_unreachable")]
    pub when_unreachable: bool,
    #[serde(rename = "next_when_declined")]
    pub when_declined: bool,
    /// The worker failed or did not respond.
    #[serde(rename = "next_when_failed")]
    pub when_failed: bool,
}

/// When a job waits for a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queueing {
    /// If there is no candidate, the job is queued instead of refused.
    #[serde(rename = "queue_unmatched")]
    pub when_unmatched: bool,
    /// A job that was assigned once is queued for the next worker instead of ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "queue_later")]
    pub after_failure: bool,
}

/// When a worker that the requester named gets the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedWorker {
    /// It may be offline: the job is assigned and waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "absent_too")]
    pub may_be_offline: bool,
    /// Not before this time, whether or not it is online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

/// How the requester is answered, and what it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequesterOptions {
    /// It gets an immediate answer and is notified of the rest. The worker's presence is checked
    /// before its price, and nothing is held while it is away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "presence_first")]
    pub answered_at_once: bool,
    /// It waits for the answer, even if the worker has yet to fetch the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "requester_waits")]
    pub waits: bool,
    /// Either party may cancel until there is a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "cancel_any_time")]
    pub cancels_any_time: bool,
    /// Prices only affect the choice: nothing is held and nothing is paid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpaid: bool,
    /// It follows the job's log: every step of the job is an entry there, and the requester's inbox
    /// gets no notice about the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_log: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_stored_as_one_flat_object() {
        let stored = concat!(
            r#"{"next_when_unreachable":true,"next_when_declined":false,"next_when_failed":true,"#,
            r#""queue_unmatched":false,"queue_later":true,"absent_too":true,"not_before":7,"#,
            r#""presence_first":true,"requester_waits":true,"cancel_any_time":true,"unpaid":true,"#,
            r#""follows_log":true}"#,
        );
        let policy: Policy = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), stored);
        let (when_declined, when_unmatched) = (false, false);
        let not_before = Some(Timestamp(7));
        assert_eq!(
            policy,
            Policy {
                reassignment: Reassignment {
                    when_unreachable: true,
                    when_declined,
                    when_failed: true
                },
                queueing: Queueing { when_unmatched, after_failure: true },
                named_worker: NamedWorker { may_be_offline: true, not_before },
                requester: RequesterOptions {
                    answered_at_once: true,
                    waits: true,
                    cancels_any_time: true,
                    unpaid: true,
                    follows_log: true
                },
            }
        );
        let least = concat!(
            r#"{"next_when_unreachable":false,"next_when_declined":false,"#,
            r#""next_when_failed":false,"queue_unmatched":false}"#,
        );
        assert_eq!(serde_json::from_str::<Policy>(least).unwrap(), Policy::default());
        assert_eq!(serde_json::to_string(&Policy::default()).unwrap(), least);
    }
}
