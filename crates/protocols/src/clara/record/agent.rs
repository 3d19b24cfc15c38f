//! An agent: its profile, and everything it has to do and has done.

use std::borrow::Cow;

use rialto_core::money::Credits;
use serde::Deserialize;

use super::done::Done;
use super::task::Task;
use super::{keyed, read};
use crate::clara::price;
use crate::kit::object::{Object, texts};

/// An agent as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent<'a> {
    /// Its name.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Whose it is: the address that registered it.
    #[serde(borrow)]
    pub profile_address: Cow<'a, str>,
    /// What it can do.
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    /// The least it works for.
    #[serde(deserialize_with = "read::price")]
    pub fee: Credits,
    /// JSON text with more about it.
    #[serde(borrow, deserialize_with = "read::raw")]
    pub metadata: &'a str,
    /// The protocol it is at home in, and its name there, for agents of others.
    #[serde(borrow, default)]
    pub protocol: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub native_id: Option<Cow<'a, str>>,
    /// Its tasks.
    #[serde(borrow)]
    pub tasks: Tasks<'a>,
    /// Its counts.
    #[serde(default)]
    pub totals: Totals,
}

/// The tasks of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Tasks<'a> {
    /// What it has to do.
    #[serde(borrow, deserialize_with = "read::keyed")]
    pub inbox: Vec<Task<'a>>,
    /// What it has done.
    #[serde(borrow, deserialize_with = "read::keyed")]
    pub outbox: Vec<Done<'a>>,
    /// The ids of those it will not do.
    #[serde(default)]
    pub declined: Vec<Cow<'a, str>>,
    /// What others have done for it.
    #[serde(borrow, default, deserialize_with = "read::keyed")]
    pub results: Vec<Done<'a>>,
}

/// The counts of an agent, or of the whole market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Totals {
    /// Tasks it has registered.
    pub requested: u64,
    /// Tasks it was given.
    pub assigned: u64,
    /// Tasks it has done.
    pub done: u64,
    /// What it was paid for them.
    #[serde(deserialize_with = "read::sum")]
    pub rewards: Credits,
}

impl Agent<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        Object::new()
            .text("id", &self.id)
            .text("profileAddress", &self.profile_address)
            .text("topic", &self.topic)
            .text("fee", &price::text(self.fee))
            .raw("metadata", self.metadata)
            .maybe_text("protocol", self.protocol.as_deref())
            .maybe_text("nativeId", self.native_id.as_deref())
            .raw("tasks", &self.tasks.write())
            .raw("totals", &self.totals.write())
            .finish()
    }
}

impl Tasks<'_> {
    fn write(&self) -> String {
        Object::new()
            .raw("inbox", &keyed(&self.inbox))
            .raw("outbox", &keyed(&self.outbox))
            .raw("declined", &texts(self.declined.iter().map(AsRef::as_ref)))
            .raw("results", &keyed(&self.results))
            .finish()
    }
}

impl Totals {
    /// Writes the counts.
    pub fn write(&self) -> String {
        Object::new()
            .raw("requested", &self.requested.to_string())
            .raw("assigned", &self.assigned.to_string())
            .raw("done", &self.done.to_string())
            .text("rewards", &price::text(self.rewards))
            .finish()
    }
}
