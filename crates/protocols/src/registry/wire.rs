//! Request bodies, read strictly; errors name the field.

use std::collections::BTreeMap;

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::kit::api_doc::{AnyObject, Time};
use crate::kit::canonical::{job_digest, write_canonical};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::name::check_name;
use crate::kit::raw_json;

/// Credits have two decimals here.
pub const DECIMALS: usize = 2;
/// The longest name of an agent, an owner or a skill.
pub const NAME_MAX: usize = 128;
/// The maximum number of skills of one agent.
const SKILLS_MAX: usize = 64;
/// The longest description of a skill.
const ABOUT_MAX: usize = 4_096;
/// The maximum size in bytes of one schema, of all skills together, and of an endpoint: the hub
/// keeps them in memory.
const SCHEMA_MAX: usize = 16 << 10;
const SKILLS_BYTES_MAX: usize = 128 << 10;
const ENDPOINT_MAX: usize = 2_048;
/// The longest error text of a result.
const ERROR_TEXT_MAX: usize = 4_096;
/// The only currency.
pub const CURRENCY: &str = "chorus_credits_v1";
/// The supported version.
pub const VERSION: &str = "0.1";
/// The members of a job that this protocol defines.
const JOB_MEMBERS: [&str; 9] = [
    "job_id",
    "orchestrator_id",
    "agent_id",
    "skill_name",
    "input_data",
    "budget",
    "currency",
    "callback_url",
    "timestamp_utc",
];
/// Media types that an agent may name, and their length in bytes.
const INPUT_MODES_MAX: usize = 32;
const MEDIA_TYPE_MAX: usize = 128;
/// Prefixes of owner names that the hub gives to owners of other protocols.
pub const RESERVED_OWNERS: [&str; 6] = ["relay:", "openclaw:", "clara:", "agora:", "a2a:", "hub:"];

crate::request_members! {
    /// The body of `POST /register`.
    RegisterMembers {
        /// The agent's id; without it the hub makes one.
        agent_id: Option<Uuid>,
        #[schemars(length(min = 1, max = NAME_MAX))]
        agent_name: String,
        /// The owner that is paid and pays for the agent.
        #[schemars(length(min = 1, max = NAME_MAX))]
        owner_id: String,
        /// Where the agent gets its jobs; without it, the agent fetches them.
        api_endpoint: Option<String>,
        #[schemars(length(max = SKILLS_MAX))]
        skills: Option<Vec<SkillMembers>>,
        /// `0.1`.
        version: Option<String>,
        timestamp_utc: Option<Time>,
        /// Whether a known agent gets a new key.
        rotate_key: Option<bool>,
        /// The media types that the agent takes as input, such as `text/*`; shown to protocols that
        /// have them.
        #[schemars(length(max = INPUT_MODES_MAX))]
        input_modes: Option<Vec<String>>,
    }
}

crate::request_members! {
    /// A skill of a registration.
    SkillMembers {
        #[schemars(length(min = 1, max = NAME_MAX))]
        skill_name: String,
        #[schemars(length(max = ABOUT_MAX))]
        description: Option<String>,
        cost_per_call: Amount,
        /// Names and types.
        input_schema: Option<AnyObject>,
        output_schema: Option<AnyObject>,
    }
}

crate::request_members! {
    /// The body of `POST /jobs`. The worker also gets all members that are not listed here.
    JobMembers {
        /// The requester's id of the job; a repeat with the same id is the same job.
        job_id: Option<Uuid>,
        /// The requester, where no key says it.
        #[schemars(length(min = 1, max = NAME_MAX))]
        orchestrator_id: Option<String>,
        /// The agent that is to do it; otherwise the hub chooses.
        agent_id: Option<Uuid>,
        #[schemars(length(min = 1, max = NAME_MAX))]
        skill_name: String,
        input_data: Option<AnyObject>,
        /// The most that the job may cost.
        budget: Amount,
        currency: Option<Currency>,
        /// Where a late result is delivered.
        callback_url: Option<String>,
        timestamp_utc: Option<Time>,
    }
}

crate::words! {
    /// The only currency.
    Currency: "chorus_credits_v1"
}

crate::words! {
    /// The status of a job.
    StatusName: "SUCCESS" | "FAILURE" | "PENDING"
}

crate::request_members! {
    /// The body of `POST /results` and of a callback.
    ResultMembers {
        /// The job; a callback URL names it already.
        job_id: Option<Uuid>,
        agent_id: Option<Uuid>,
        status: StatusName,
        /// The result; required if `status` is `SUCCESS`.
        output_data: Option<serde_json::Value>,
        /// What it cost, at most the agreed price. An invalid value is ignored.
        execution_cost: Option<serde_json::Value>,
        /// An invalid value is ignored.
        execution_time_ms: Option<serde_json::Value>,
        #[schemars(length(max = ERROR_TEXT_MAX))]
        error_message: Option<String>,
        error_code: Option<String>,
    }
}

crate::request_members! {
    /// The body of `POST /transfer`.
    TransferMembers {
        /// The payer's id of the transfer; a repeat with the same id is the same transfer.
        transfer_id: Option<Uuid>,
        from_owner: String,
        to_owner: String,
        /// Above zero.
        amount: Amount,
        /// The job that it pays for.
        job_id: Option<Uuid>,
        timestamp_utc: Option<Time>,
    }
}

/// Credits in a request. The hub ignores the rounding noise of a double, also below zero.
pub enum Amount {}
crate::value_schema!(Amount, {
    "type": "number",
    "maximum": 1_000_000_000,
    "description": "Credits, not negative, with at most two decimals"
});

/// The body of a registration.
#[derive(Clone, Debug)]
pub struct RegisterBody {
    pub agent_id: Option<Uuid>,
    pub agent_name: String,
    pub owner_id: String,
    pub api_endpoint: Option<String>,
    pub skills: Vec<SkillOffer>,
    pub version: String,
    pub timestamp_utc: Option<Timestamp>,
    pub rotate_key: bool,
    /// The media types that the agent takes; `None` for the usual ones.
    pub input_modes: Option<Vec<String>>,
}

/// One skill an agent sells. Schemas are JSON text.
#[derive(Clone, Debug)]
pub struct SkillOffer {
    pub skill_name: String,
    pub description: String,
    pub cost_per_call: Credits,
    pub input_schema: String,
    pub output_schema: String,
}

/// The body of a job request.
#[derive(Clone, Debug)]
pub struct JobPost {
    pub job_id: Option<Uuid>,
    pub orchestrator_id: Option<String>,
    pub agent_id: Option<Uuid>,
    pub skill_name: String,
    /// JSON text as sent.
    pub input_data: String,
    pub budget: Credits,
    pub callback_url: Option<String>,
    /// Members the hub does not use and passes on.
    pub passthrough: PassthroughMembers,
    /// The digest of everything relevant but the worker, which a path may name as well.
    pub content: Digest,
}

/// Members of a job that only its worker reads; they are passed on unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PassthroughMembers {
    pub timestamp_utc: Option<String>,
    /// Members this protocol does not define.
    pub more: BTreeMap<String, Box<RawValue>>,
}

/// A worker's result of a job.
#[derive(Clone, Debug)]
pub struct ResultPost {
    pub job_id: Option<Uuid>,
    pub agent_id: Option<Uuid>,
    pub status: JobStatus,
    pub output_data: Option<String>,
    pub execution_cost: Option<Credits>,
    pub execution_time_ms: i64,
    pub error_message: Option<String>,
    pub error_code: Option<String>,
    /// Figures that could not be used, and what is used instead: for the worker to read.
    pub warnings: Vec<String>,
    pub content: Digest,
}

/// The three states of a job in this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    Success,
    Failure,
    Pending,
}

/// The body of a transfer.
#[derive(Clone, Debug)]
pub struct TransferPost {
    pub transfer_id: Option<Uuid>,
    pub from_owner: String,
    pub to_owner: String,
    pub amount: Credits,
    pub job_id: Option<Uuid>,
    pub content: Digest,
}

impl JobStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::Pending => "PENDING",
        }
    }
}

impl RegisterBody {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = Fields::read(&json, "")?;
        let owner_id = read_owner_name(&f, "owner_id")?;
        let version = f.text("version")?.unwrap_or(VERSION);
        if version != VERSION && !version.starts_with("0.1-") {
            return Err(f.malformed("version", "must be \"0.1\""));
        }
        Ok(Self {
            agent_id: f.uuid("agent_id")?,
            agent_name: f.required_name("agent_name", NAME_MAX)?.to_owned(),
            owner_id,
            api_endpoint: f.text("api_endpoint")?.filter(|url| !url.is_empty()).map(str::to_owned),
            skills: skills(&f)?,
            version: version.to_owned(),
            timestamp_utc: f.time("timestamp_utc")?,
            rotate_key: f.flag("rotate_key")?.unwrap_or(false),
            input_modes: input_modes(&f)?,
        })
    }
}

/// Media types as A2A writes them: `type/subtype`, where each may be `*`.
fn input_modes(f: &Fields<'_, '_>) -> Result<Option<Vec<String>>, Malformed> {
    let Some(items) = f.list("input_modes", INPUT_MODES_MAX)? else { return Ok(None) };
    let read = |item: &Json<'_>| match item.value() {
        JsonValue::String(text) if is_media_type(text) => Some(text.clone().into_owned()),
        _ => None,
    };
    let modes: Option<Vec<String>> = items.iter().map(read).collect();
    match modes.filter(|modes| !modes.is_empty()) {
        Some(modes) => Ok(Some(modes)),
        None => {
            let text = "must be media types, such as \"text/plain\" or \"*/*\"";
            Err(f.malformed("input_modes", text))
        }
    }
}

fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+*".contains(c);
        !part.is_empty() && part.chars().all(plain)
    };
    let parts = text.split_once('/');
    text.len() <= MEDIA_TYPE_MAX
        && parts.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

impl RegisterBody {
    /// The first member that has more bytes than the hub stores, as a JSON pointer, and its limit.
    pub fn oversized_member(&self) -> Option<(String, usize)> {
        let schemas = self.skills.iter().enumerate().find_map(|(at, skill)| {
            let both =
                [("input_schema", &skill.input_schema), ("output_schema", &skill.output_schema)];
            let (name, _) = both.into_iter().find(|(_, schema)| schema.len() > SCHEMA_MAX)?;
            Some((format!("/skills/{at}/{name}"), SCHEMA_MAX))
        });
        let bytes = |skill: &SkillOffer| {
            let schemas = skill.input_schema.len() + skill.output_schema.len();
            skill.skill_name.len() + skill.description.len() + schemas
        };
        let all = self.skills.iter().map(bytes).sum::<usize>();
        let all = (all > SKILLS_BYTES_MAX).then(|| ("/skills".to_owned(), SKILLS_BYTES_MAX));
        let endpoint = self.api_endpoint.as_ref().filter(|url| url.len() > ENDPOINT_MAX);
        let endpoint = endpoint.map(|_| ("/api_endpoint".to_owned(), ENDPOINT_MAX));
        schemas.or(all).or(endpoint)
    }
}

fn skills(f: &Fields<'_, '_>) -> Result<Vec<SkillOffer>, Malformed> {
    let mut offers: Vec<SkillOffer> = Vec::new();
    for (at, item) in f.list("skills", SKILLS_MAX)?.unwrap_or_default().iter().enumerate() {
        let s = Fields::read(item, format!("/skills/{at}"))?;
        let offer = SkillOffer {
            skill_name: s.required_name("skill_name", NAME_MAX)?.to_owned(),
            description: bounded(&s, "description", ABOUT_MAX)?.unwrap_or_default(),
            cost_per_call: s.required_credits("cost_per_call", DECIMALS)?,
            input_schema: schema(&s, "input_schema")?,
            output_schema: schema(&s, "output_schema")?,
        };
        if offers.iter().any(|known| known.skill_name == offer.skill_name) {
            return Err(s.malformed("skill_name", "is listed twice; list each skill once"));
        }
        offers.push(offer);
    }
    Ok(offers)
}

/// A simple schema: name to type name. Stored as sent.
fn schema(s: &Fields<'_, '_>, name: &str) -> Result<String, Malformed> {
    Ok(s.object(name)?.and(s.get(name)).map_or("{}", Json::raw).to_owned())
}

fn bounded(f: &Fields<'_, '_>, name: &str, max: usize) -> Result<Option<String>, Malformed> {
    let text = f.text(name)?;
    match text.filter(|text| text.chars().count() > max) {
        Some(_) => Err(f.malformed(name, format!("has more than {max} characters"))),
        None => Ok(text.map(str::to_owned)),
    }
}

/// An owner's name that a caller may use for itself.
pub fn read_owner_name(f: &Fields<'_, '_>, name: &str) -> Result<String, Malformed> {
    let owner = f.required_name(name, NAME_MAX)?;
    match reserved_prefix(owner) {
        Some(prefix) => Err(f.malformed(name, format!("must not start with \"{prefix}\""))),
        None => Ok(owner.to_owned()),
    }
}

/// The reserved prefix of a ledger name that the hub gave to an owner of another protocol.
pub fn reserved_prefix(owner: &str) -> Option<&'static str> {
    RESERVED_OWNERS.into_iter().find(|prefix| owner.starts_with(prefix))
}

/// Any name in the ledger, for operators and for payees.
pub fn read_ledger_name(f: &Fields<'_, '_>, name: &str) -> Result<String, Malformed> {
    Ok(f.required_name(name, NAME_MAX + 32)?.to_owned())
}

impl JobPost {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = Fields::read(&json, "")?;
        let currency = f.text("currency")?.unwrap_or(CURRENCY);
        if currency != CURRENCY {
            return Err(f.malformed("currency", format!("must be \"{CURRENCY}\"")));
        }
        let orchestrator_id = f.name("orchestrator_id", NAME_MAX)?.map(str::to_owned);
        let skill_name = f.required_name("skill_name", NAME_MAX)?.to_owned();
        let input = f.object("input_data")?.and(f.get("input_data"));
        let budget = f.required_credits("budget", DECIMALS)?;
        let callback_url = f.text("callback_url")?.filter(|url| !url.is_empty());
        let agent_id = f.uuid("agent_id")?;
        f.time("timestamp_utc")?;
        let mut more = BTreeMap::new();
        let mut other = Vec::new();
        for (name, value) in unknown(&json) {
            more.insert(name.to_owned(), raw_json::verbatim(value.raw()));
            other.extend(name.as_bytes());
            write_canonical(value, &mut other);
        }
        let passthrough =
            PassthroughMembers { timestamp_utc: f.text("timestamp_utc")?.map(str::to_owned), more };
        Ok(Self {
            job_id: f.uuid("job_id")?,
            orchestrator_id,
            agent_id,
            content: job_digest(&skill_name, input, budget, callback_url, &other),
            skill_name,
            input_data: input.map_or("{}", Json::raw).to_owned(),
            budget,
            callback_url: callback_url.map(str::to_owned),
            passthrough,
        })
    }
}

/// The members of a job that this protocol does not define, by name.
fn unknown<'j, 'a>(job: &'j Json<'a>) -> Vec<(&'j str, &'j Json<'a>)> {
    let JsonValue::Object(members) = job.value() else { return Vec::new() };
    let all = members.iter().map(|(name, value)| (name.as_ref(), value));
    let mut unknown: Vec<_> = all.filter(|(name, _)| !JOB_MEMBERS.contains(name)).collect();
    unknown.sort_by_key(|(name, _)| *name);
    unknown
}

impl ResultPost {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read_allowing_non_finite(body, &["execution_cost", "execution_time_ms"])?;
        let f = Fields::read(&json, "")?;
        let status = match f.required_text("status")? {
            "SUCCESS" => JobStatus::Success,
            "FAILURE" => JobStatus::Failure,
            "PENDING" => JobStatus::Pending,
            _ => {
                return Err(
                    f.malformed("status", "must be \"SUCCESS\", \"FAILURE\" or \"PENDING\"")
                );
            }
        };
        // An invalid figure does not void the work it comes with.
        let (time, cost) = (execution_time(&f), f.credits("execution_cost", DECIMALS));
        let mut warnings = Vec::new();
        if let Some(bad) = time.as_ref().err().filter(|_| status != JobStatus::Pending) {
            warnings.push(format!("{bad}; ignored"));
        }
        if let Some(bad) = cost.as_ref().err().filter(|_| status == JobStatus::Success) {
            warnings.push(format!("{bad}; the agreed price is used instead"));
        }
        let (execution_time_ms, cost) = (time.unwrap_or(0), cost.unwrap_or(None));
        let error_message =
            bounded(&f, "error_message", ERROR_TEXT_MAX)?.filter(|text| !text.is_empty());
        let output = match status {
            JobStatus::Success => {
                if error_message.is_some() {
                    return Err(f.malformed("error_message", "must be null when status is SUCCESS"));
                }
                f.object("output_data")?;
                Some(f.required("output_data", f.get("output_data"))?)
            }
            JobStatus::Failure | JobStatus::Pending => None,
        };
        let error_code = f.text("error_code")?.map(str::to_owned);
        let mut meaning = Vec::new();
        if let Some(output) = output {
            write_canonical(output, &mut meaning);
        }
        let content = Digest::of(&[
            status.as_str().as_bytes(),
            &meaning,
            &cost.map_or(-1, Credits::micros).to_be_bytes(),
            error_message.as_deref().unwrap_or_default().as_bytes(),
            error_code.as_deref().unwrap_or_default().as_bytes(),
        ]);
        Ok(Self {
            job_id: f.uuid("job_id")?,
            agent_id: f.uuid("agent_id")?,
            status,
            output_data: output.map(|json| json.raw().to_owned()),
            execution_cost: cost,
            execution_time_ms,
            error_message,
            error_code,
            warnings,
            content,
        })
    }
}

/// How long the work took, in milliseconds; 0 if absent.
fn execution_time(f: &Fields<'_, '_>) -> Result<i64, Malformed> {
    const NAME: &str = "execution_time_ms";
    match f.integer(NAME)?.unwrap_or(0) {
        ..0 => Err(f.malformed(NAME, "must not be negative")),
        millis => Ok(millis),
    }
}

impl TransferPost {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = Fields::read(&json, "")?;
        let (from_owner, to_owner) =
            (read_ledger_name(&f, "from_owner")?, read_ledger_name(&f, "to_owner")?);
        let amount = f.required_credits("amount", DECIMALS)?;
        if amount.is_zero() {
            return Err(f.malformed("amount", "must be above zero"));
        }
        let job_id = f.uuid("job_id")?;
        f.time("timestamp_utc")?;
        let content = Digest::of(&[
            from_owner.as_bytes(),
            to_owner.as_bytes(),
            &amount.micros().to_be_bytes(),
            job_id.map(Uuid::into_bytes).unwrap_or_default().as_slice(),
        ]);
        let transfer_id = f.uuid("transfer_id")?;
        Ok(Self { transfer_id, from_owner, to_owner, amount, job_id, content })
    }
}

/// A UUID in a path, in its canonical form.
pub fn read_path_uuid(text: &str, name: &str) -> Result<Uuid, Malformed> {
    let form = text.parse::<uuid::fmt::Hyphenated>().map(uuid::fmt::Hyphenated::into_uuid);
    form.map_err(|_| Malformed {
        field: name.to_owned(),
        message: format!("{name} must be a UUID like a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"),
    })
}

/// An owner name in a path.
pub fn read_path_owner(text: &str) -> Result<&str, Malformed> {
    check_name(text, NAME_MAX + 32).map(|()| text).map_err(|bad| Malformed {
        field: "owner_id".to_owned(),
        message: format!("owner_id {bad}"),
    })
}
