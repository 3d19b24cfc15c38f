//! Collaborations from the view of a party: read, list, cancel, approve.

use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::openclaw::wire::answers::{self, CollaborationSummary, CollaborationView};
use rialto_protocols::openclaw::wire::words::{Role, State};
use rialto_protocols::openclaw::wire::{CollaborationResult, Message, Request, Response};
use uuid::Uuid;

use super::agent::Agent;
use super::response::ServerResponse;
use super::{response, server};
use crate::call::CallError;

/// A collaboration and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Collaboration {
    /// Its id; `None` before it is accepted.
    pub collaboration_id: Option<Uuid>,
    /// Its state.
    pub state: State,
    /// The request.
    pub request: Request,
    /// The last response, if there is one.
    pub response: Option<Response>,
    /// The result, if it has ended, with its original text.
    pub result: Option<Message<CollaborationResult>>,
}

/// Which of an agent's own collaborations to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollaborationFilter {
    /// Only those it requested, or only those it works on.
    pub role: Option<Role>,
    /// Only those in this state.
    pub state: Option<State>,
    /// Page size; the hub's default if not set.
    pub limit: Option<u32>,
}

/// One page of an agent's own collaborations.
#[derive(Clone, Debug, PartialEq)]
pub struct CollaborationPage {
    /// The collaborations.
    pub collaborations: Vec<Collaboration>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

impl Agent {
    /// The state of a collaboration. `id` is its own id, or the request's before there is one.
    pub async fn collaboration(&self, id: Uuid) -> Result<Collaboration, CallError> {
        let url = self.server().url(&["collaborations", &id.to_string()]);
        Collaboration::from_response(&self.server().get(url).await?)
    }

    /// One page of the agent's own collaborations: the first, or the one at a cursor.
    pub async fn collaborations(
        &self,
        listing: &CollaborationFilter,
        after: Option<&str>,
    ) -> Result<CollaborationPage, CallError> {
        let mut url = self.server().url(&["collaborations"]);
        let pairs = [
            ("role", listing.role.map(|role| role.to_string())),
            ("state", listing.state.map(|state| state.to_string())),
            ("limit", listing.limit.map(|limit| limit.to_string())),
            ("after", after.map(str::to_owned)),
        ];
        let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
        url.query_pairs_mut().extend_pairs(given);
        let page: answers::CollaborationPage = self.server().get(url).await?.value()?;
        let all = page.collaborations.into_iter().map(Collaboration::read);
        Ok(CollaborationPage {
            collaborations: all.collect::<Result<_, _>>()?,
            next_cursor: page.next_cursor,
        })
    }

    /// Cancels a collaboration, as its requester or its responder; returns the `cancelled` result.
    pub async fn cancel(
        &self,
        id: Uuid,
        reason: Option<&str>,
    ) -> Result<CollaborationResult, CallError> {
        let url = self.server().url(&["collaborations", &id.to_string(), "cancel"]);
        let body = server::new_common_fields()?
            .write_to(ObjectWriter::new().maybe_text("reason", reason))
            .finish();
        self.server().post(url, body).await?.message()
    }

    /// Approves or rejects work that needs approval. Operators use [`super::Server::approve`].
    pub async fn approve(&self, id: Uuid, approved: bool) -> Result<(), CallError> {
        self.server().approve(id, approved).await
    }
}

impl Collaboration {
    /// Parses the response with one collaboration.
    pub(super) fn from_response(answer: &ServerResponse) -> Result<Self, CallError> {
        let CollaborationView { collaboration_id, state, request, response, result, .. } =
            answer.value()?;
        Self::read(CollaborationSummary { collaboration_id, state, request, response, result })
    }

    fn read(listed: CollaborationSummary) -> Result<Self, CallError> {
        let id = listed.collaboration_id.map(|id| id.parse()).transpose();
        Ok(Self {
            collaboration_id: id
                .map_err(|_| CallError::Unreadable("collaboration_id is not a UUID".to_owned()))?,
            state: listed.state,
            request: response::parse_message(listed.request.get())?,
            response: listed.response.map(|raw| response::parse_message(raw.get())).transpose()?,
            result: listed
                .result
                .map(|raw| response::parse_message_with_text(raw.get()))
                .transpose()?,
        })
    }
}
