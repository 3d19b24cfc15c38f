//! The JSON of collaborations, as their two parties see them (section 2.4).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answers::{answer, common_members};
use super::common::CommonMembers;
use super::state::State;

answer! {
    /// `GET /collaborations/{id}`.
    View {
        /// Its id; `null` before it is accepted.
        collaboration_id: Option<String>,
        /// Its current state.
        state: State,
        /// The request as it was received.
        request: Box<RawValue>,
        /// The last response, if there is one.
        response: Option<Box<RawValue>>,
        /// The result, if there is one.
        result: Option<Box<RawValue>>,
    }
}

/// One entry of the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CollaborationSummary {
    /// Its id; `null` before it is accepted.
    pub collaboration_id: Option<String>,
    /// Its current state.
    pub state: State,
    /// The request as it was received.
    pub request: Box<RawValue>,
    /// The last response, if there is one.
    pub response: Option<Box<RawValue>>,
    /// The result, if there is one.
    pub result: Option<Box<RawValue>>,
}

answer! {
    /// `GET /collaborations`: one page of the caller's own collaborations.
    Page {
        /// The collaborations.
        collaborations: Vec<CollaborationSummary>,
        /// The cursor of the next page; `null` on the last.
        next_cursor: Option<String>,
    }
}
