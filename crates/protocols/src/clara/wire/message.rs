//! An incoming message as its handler sees it (2.3): sender, tags and data; the process it is for;
//! and the query strings that name processes and messages.
//!
//! A message is a signed item, or the JSON of a dry-run, whose contents are all unproven. The hub
//! determines the arrival time and the number of earlier messages. The anchor only makes items
//! distinct and is not read.

use std::borrow::Cow;

use super::error::Failure;
use crate::clara::{BODY_MAX, CLAIM_MAX, PROCESS};
use crate::kit::ans104::{Item, ItemId, TAG_BYTES_MAX, Tag};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{self, Json};
use crate::kit::query::Query;

/// Tags that state an identity. They are never trusted (R74).
const DROPPED: [&str; 3] = ["From", "Owner", "From-Process"];
/// The most tags of a dry-run. An item cannot have more: each takes at least two bytes.
const TAGS_MAX: usize = TAG_BYTES_MAX / 2;

/// A message to the market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingMessage<'a> {
    /// Its id: derived from its signature, or as a dry-run claims.
    pub id: Cow<'a, str>,
    /// The sender: the signer's address, or the owner that a dry-run claims.
    pub from: Cow<'a, str>,
    /// Whether it is a signed item. Private data is only for signers (R74).
    pub signed: bool,
    /// The process it is addressed to.
    pub target: ItemId,
    /// Its tags, without those that state an identity.
    pub tags: Vec<Tag<'a>>,
    /// Its data.
    pub data: &'a str,
    /// The item as received, for storage as evidence.
    pub item: Option<&'a [u8]>,
}

impl<'a> IncomingMessage<'a> {
    /// Reads the message of an item. [`Item::verify`] checks the signature.
    pub fn of(item: &Item<'a>) -> Result<Self, Failure> {
        if item.tag("Type") == Some("Process") {
            return Err(Failure::spawn_unsupported());
        }
        let target = item.target.and_then(|target| target.try_into().ok()).map(ItemId);
        let target = target.ok_or_else(Failure::unknown_process)?;
        let data = std::str::from_utf8(item.data).map_err(|_| Failure::not_text())?;
        Ok(Self {
            id: item.id().to_string().into(),
            from: item.signer_address().into(),
            signed: true,
            target,
            tags: item.tags.iter().copied().filter(is_kept).collect(),
            data,
            item: None,
        })
    }

    /// Reads the message of a dry-run to `process`. A missing target means that process; another
    /// one is an error. Missing claims and data are empty.
    pub fn dry_run(json: &'a Json<'_>, process: ItemId) -> Result<Self, Failure> {
        let f = Fields::read(json, "")?;
        let target = f.text("Target")?;
        if target.is_some_and(|target| ItemId::read(target) != Some(process)) {
            return Err(Failure::unknown_process());
        }
        Ok(Self {
            id: claim(&f, "Id")?.into(),
            from: claim(&f, "Owner")?.into(),
            signed: false,
            target: process,
            tags: tags(&f)?,
            data: f.text("Data")?.unwrap_or_default(),
            item: None,
        })
    }

    /// The first tag of that name. Names are case-sensitive.
    pub fn tag(&self, name: &str) -> Option<&'a str> {
        self.tags.iter().find(|tag| tag.name == name).map(|tag| tag.value)
    }
}

/// Parses the body of a dry-run as JSON, for [`IncomingMessage::dry_run`].
pub fn read_dry_run(body: &[u8]) -> Result<Json<'_>, Failure> {
    if body.len() > BODY_MAX {
        return Err(Failure::too_large());
    }
    Ok(ijson::read(body)?)
}

fn is_kept(tag: &Tag<'_>) -> bool {
    !DROPPED.contains(&tag.name)
}

fn claim<'b>(f: &Fields<'_, 'b>, name: &str) -> Result<&'b str, Malformed> {
    let text = f.text(name)?.unwrap_or_default();
    if text.chars().count() > CLAIM_MAX {
        return Err(f.malformed(name, format_args!("has more than {CLAIM_MAX} characters")));
    }
    Ok(text)
}

/// The tags of a dry-run, with the same size limit as those of an item.
fn tags<'b>(f: &Fields<'_, 'b>) -> Result<Vec<Tag<'b>>, Malformed> {
    const NAME: &str = "Tags";
    let mut read = Vec::new();
    let mut bytes = 0;
    for (at, item) in f.list(NAME, TAGS_MAX)?.unwrap_or_default().iter().enumerate() {
        let inner = Fields::read(item, format!("{}/{at}", f.pointer(NAME)))?;
        let tag = Tag { name: inner.required_text("name")?, value: inner.required_text("value")? };
        bytes += tag.name.len() + tag.value.len();
        if bytes > TAG_BYTES_MAX {
            return Err(f.malformed(NAME, format_args!("have more than {TAG_BYTES_MAX} bytes")));
        }
        read.push(tag);
    }
    read.retain(is_kept);
    Ok(read)
}

/// The format of the market's messages (D1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// As in the spec.
    #[default]
    Spec,
    /// As the deployed processes do it.
    Deployed,
}

/// The process ids of the market. Every hub also answers to the published one ([`PROCESS`]), but
/// moves no money for orders to it: the same signed order would be valid on all hubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// This hub's own process, in the spec's dialect.
    pub spec: ItemId,
    /// The process in the deployed dialect, if the operator configured one.
    pub deployed: Option<ItemId>,
}

impl Processes {
    /// The dialect of a process; `None` if it is not the market (R67).
    pub fn dialect(&self, process: ItemId) -> Option<Dialect> {
        if process == self.spec {
            return Some(Dialect::Spec);
        }
        if Some(process) == self.deployed {
            return Some(Dialect::Deployed);
        }
        (ItemId::read(PROCESS) == Some(process)).then_some(Dialect::Spec)
    }

    /// Whether orders to a process may move money: it is this hub's own, or the operator configured
    /// it.
    pub fn may_move_money(&self, process: ItemId) -> bool {
        process == self.spec || Some(process) == self.deployed
    }
}

/// `assign`: a message is to be assigned to a process again. `base-layer` and `exclude` are not
/// read, because the assignment has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignQuery {
    /// The process.
    pub process: ItemId,
    /// The message.
    pub message: ItemId,
}

/// The process of a result or a dry-run request.
pub fn read_process(raw: &str) -> Result<ItemId, Failure> {
    process_of(&Query::read(raw)?)
}

/// The assignment that a request to the message unit asks for, if any.
pub fn read_assign(raw: &str) -> Result<Option<AssignQuery>, Failure> {
    let query = Query::read(raw)?;
    let Some(message) = query.text("assign") else { return Ok(None) };
    let message = ItemId::read(message).ok_or_else(Failure::unknown_message)?;
    Ok(Some(AssignQuery { process: process_of(&query)?, message }))
}

fn process_of(query: &Query) -> Result<ItemId, Failure> {
    let given = query.text("process-id");
    let given = given.ok_or_else(|| Failure::bad_request("process-id is required"))?;
    ItemId::read(given).ok_or_else(Failure::unknown_process)
}
