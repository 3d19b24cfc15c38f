//! The caller's own keys: rotate or revoke all, issue one more, list and revoke them one by one.
//!
//! A limited key sees itself alone, and changes none: core refuses that in every protocol.

use axum::extract::State;
use http::StatusCode;
use rialto_core::agent::key::{Holder, Key as StoredKey};
use rialto_core::agent::key_limits::{KeyLimits, KeyUse};
use rialto_core::answer::Answer;
use rialto_core::command::{Command, IssueLimitedKey};
use rialto_core::id::{AgentId, KeyId};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::keys::Key;
use rialto_engine::{Failure, key_use};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;

use super::auth::AgentCaller;
use super::params::Amount;
use super::problem::Problem;
use super::response::{HandlerResult, format_amount, format_time, json_response, ok_response};
use super::strict_fields;

/// Characters of a label at most.
const LABEL_MAX: usize = 100;
/// Decimals a limit may have.
const DECIMALS: usize = 6;

#[derive(Serialize, JsonSchema)]
pub struct RotateKeyResponse {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// When the last of the other keys expires.
    others_until: Option<Time>,
}

/// `POST /v1/keys/rotate`: issues a new key now. The other keys expire later, so that a running
/// agent can switch.
pub async fn rotate_key(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let key = Key::from_random(by.prefix, context.engine.random().new_key_bytes());
    let holder = Holder::Agent(by.id);
    let command =
        Command::IssueKey { holder, hash: key.hash(), retire_others: true, by_operator: false };
    let ran = context.engine.run_once(command, by.once).await?;
    let until = context.engine.with_world(|world| {
        world.keys_of(by.id).filter_map(|key| key.valid_until).max().map(format_time)
    });
    let fresh = (!ran.replayed).then(|| key.expose().to_owned());
    Ok(ok_response(&RotateKeyResponse { key: fresh, others_until: until }))
}

#[derive(Serialize, JsonSchema)]
pub struct RevokeKeysResponse {
    revoked: bool,
}

/// `DELETE /v1/keys`: revokes every key of the caller, this one too.
pub async fn revoke_keys(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    context.engine.run(Command::RevokeKeys { agent: by.id, by_operator: false }).await?;
    Ok(ok_response(&RevokeKeysResponse { revoked: true }))
}

/// `DELETE /v1/keys/{id}`: revokes one key of the caller.
pub async fn revoke_key(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    // An id that is no number is one that does not exist.
    let key = KeyId(id.parse().map_err(|_| Problem::not_found())?);
    context.engine.run_once(Command::RevokeKey { agent: by.id, key }, by.once).await?;
    Ok(ok_response(&RevokeKeysResponse { revoked: true }))
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/keys`.
    LimitedKeyBody {
        /// What the key is for, so that it is recognised in the list.
        #[schemars(length(min = 1, max = LABEL_MAX))]
        label: Option<String>,
        /// The most that one hold or transfer may be. Without it there is no such limit.
        per_job: Option<Amount>,
        /// The most that may be spent in one day (UTC). Without it there is no such limit.
        per_day: Option<Amount>,
        /// Whether the key may transfer credits; true by default.
        transfers: Option<bool>,
    }
}

fn parse_key(body: &[u8]) -> Result<(Option<String>, KeyLimits), Malformed> {
    let json = ijson::read(body)?;
    let f = strict_fields::parse_fields(&json, LimitedKeyBody::MEMBERS)?;
    let limits = KeyLimits {
        per_job: f.credits("per_job", DECIMALS)?,
        per_day: f.credits("per_day", DECIMALS)?,
        transfers: f.flag("transfers")?.unwrap_or(true),
    };
    Ok((f.name("label", LABEL_MAX)?.map(str::to_owned), limits))
}

#[derive(Serialize, JsonSchema)]
pub struct LimitedKeyResponse {
    id: u64,
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(flatten)]
    limits: LimitsView,
}

/// The limits of a key.
#[derive(Serialize, JsonSchema)]
struct LimitsView {
    /// The most that one hold or transfer may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_job: Option<Number>,
    /// The most that may be spent in one day (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    per_day: Option<Number>,
    /// Whether the key may transfer credits.
    transfers: bool,
}

impl LimitsView {
    fn of(limits: KeyLimits) -> Self {
        let KeyLimits { per_job, per_day, transfers } = limits;
        let (per_job, per_day) = (per_job.map(format_amount), per_day.map(format_amount));
        Self { per_job, per_day, transfers }
    }
}

/// `POST /v1/keys`: issues one more key, with limits if the body has any.
pub async fn issue_key(
    State(context): State<HubContext>,
    by: AgentCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let (label, limits) = parse_key(&body)?;
    let key = Key::from_random(by.prefix, context.engine.random().new_key_bytes());
    let (agent, hash) = (by.id, key.hash());
    let order = IssueLimitedKey { agent, hash, label: label.clone(), limits };
    let ran = context.engine.run_once(Command::IssueLimitedKey(Box::new(order)), by.once).await?;
    let Answer::Key { id } = ran.answer else { return Err(Failure::Fault.into()) };
    let fresh = (!ran.replayed).then(|| key.expose().to_owned());
    let limits = LimitsView::of(limits);
    let issued = LimitedKeyResponse { id: id.0, key: fresh, label, limits };
    Ok(json_response(StatusCode::CREATED, &issued))
}

/// The caller's keys.
#[derive(Serialize, JsonSchema)]
pub struct KeyList {
    items: Vec<KeyView>,
}

/// A key, without its secret. Of a key that was not issued by `POST /v1/keys`, the hub knows neither
/// label nor times.
#[derive(Serialize, JsonSchema)]
pub struct KeyView {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(flatten)]
    limits: LimitsView,
    /// What was spent today (UTC); of a key that was not issued here, what came through MCP.
    spent_today: Number,
    /// What may still be spent today; absent without a limit per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_today: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_at: Option<Time>,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<Time>,
    /// When it expires, after a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_until: Option<Time>,
    /// Whether it is the key of this request.
    current: bool,
}

impl KeyView {
    fn of(world: &World, agent: AgentId, key: &StoredKey, now: Timestamp) -> Self {
        let record = world.agent_state(agent).and_then(|state| state.key_record(key.id));
        let used = KeyUse { agent, key: key.id, by_default: false };
        let allowance = world.key_allowance(used, now);
        let spent = record.map(|record| record.spent_on_day_of(now)).unwrap_or_default();
        let current = key_use::current().is_some_and(|current| current.key == key.id);
        Self {
            id: key.id.0,
            label: record.and_then(|record| record.label.clone()),
            limits: LimitsView::of(allowance.limits),
            spent_today: format_amount(spent),
            left_today: allowance.left_today.map(format_amount),
            issued_at: record.and_then(|record| record.issued_at).map(format_time),
            last_used: record.and_then(|record| record.last_used).map(format_time),
            valid_until: key.valid_until.map(format_time),
            current,
        }
    }
}

/// `GET /v1/keys`: the caller's keys, oldest first. A limited key sees itself alone.
pub async fn list_keys(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let now = context.engine.now();
    let items = context.engine.with_world(|world| {
        let limited = key_use::current().map(|used| used.key);
        let limited = limited.filter(|key| world.is_limited_key(by.id, *key));
        let shown = |key: &StoredKey| key.is_valid(now) && limited.is_none_or(|own| key.id == own);
        let mut keys: Vec<_> = world.keys_of(by.id).filter(|key| shown(key)).collect();
        keys.sort_by_key(|key| key.id);
        keys.into_iter().map(|key| KeyView::of(world, by.id, key, now)).collect()
    });
    Ok(ok_response(&KeyList { items }))
}
