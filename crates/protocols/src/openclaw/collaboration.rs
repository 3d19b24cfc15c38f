//! Collaborations as their two parties see them (section 2.4).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answers::{answer, texts};
use super::common::Common;
use super::state::State;

answer! {
    /// `GET /collaborations/{id}`.
    View {
        /// Its id; none before it is accepted.
        collaboration_id: Option<String>,
        /// How it stands.
        state: State,
        /// The request, as it came.
        request: Box<RawValue>,
        /// The last response, if there is one.
        response: Option<Box<RawValue>>,
        /// The result, if there is one.
        result: Option<Box<RawValue>>,
    }
}

/// One of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Its id; none before it is accepted.
    pub collaboration_id: Option<String>,
    /// How it stands.
    pub state: State,
    /// The request, as it came.
    pub request: Box<RawValue>,
    /// The last response, if there is one.
    pub response: Option<Box<RawValue>>,
    /// The result, if there is one.
    pub result: Option<Box<RawValue>>,
}

answer! {
    /// `GET /collaborations`: one page of the caller's own.
    Page {
        /// The collaborations.
        collaborations: Vec<Listed>,
        /// Leads to the next page; `null` on the last.
        next_cursor: Option<String>,
    }
}
