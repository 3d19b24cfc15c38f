//! Identities: an agent, its capabilities, and the schemas of their input and output.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::reader::{MessageReader, ObjectPart};
use super::reputation::Score;
use super::status::ReportedStatus;
use super::words::{Category, Mode};
use super::{Kind, MessageBody};
use crate::kit::ijson::{Json, JsonValue as Is};
use crate::kit::object::ObjectWriter;
use crate::kit::schema::Schema;
use crate::openclaw::{NAME_MAX, TEXT_MAX, VERSION};

/// The only agent type in the spec (R9).
pub const AGENT_TYPE: &str = "autonomous_content_node";
/// The most characters of an endpoint.
const ENDPOINT_MAX: usize = 2_048;
/// Patterns in all schemas of one agent together. Patterns take most of the memory of a schema.
const PATTERNS_MAX: usize = 128;
/// Capabilities of one agent. The spec has no limit; the hub needs one.
const CAPABILITIES_MAX: usize = 128;

/// The content of an identity.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Its id.
    pub agent_id: Uuid,
    /// Its name.
    pub agent_name: String,
    /// The version of the agent.
    pub version: String,
    /// The version of the specifications it follows.
    pub spec_version: Option<String>,
    /// Its capabilities, each id at most once.
    pub capabilities: Vec<PublishedCapability>,
    /// Its status.
    pub report: ReportedStatus,
    /// The reputation that it claims.
    pub trust_signals: Option<ClaimedTrustSignals>,
    /// Its capacity limits.
    pub limits: ResourceLimits,
    /// When it was published, as the agent reports it.
    pub published_at: Option<Timestamp>,
    /// Where webhook deliveries go (not in the spec). The hub decides whether it allows this URL.
    pub endpoint: Option<String>,
    /// Who responds to requests for the agent (not in the spec).
    pub response_mode: Mode,
}

/// The reputation that an agent claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedTrustSignals {
    /// Its score.
    pub reputation_score: Option<Score>,
    /// The number of all collaborations so far.
    pub total_collaborations: Option<i64>,
    /// The share of completed collaborations.
    pub success_rate: Option<Score>,
    /// The average time from acceptance to result.
    pub average_response_time_ms: Option<i64>,
}

/// The capacity limits of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// The most tasks at the same time.
    pub max_concurrent_tasks: Option<i64>,
    /// The number of tasks that it reports as running.
    pub current_task_count: Option<i64>,
    /// The most new tasks in any 60 seconds.
    pub rate_limit_per_minute: Option<i64>,
}

impl MessageBody for Identity {
    const KIND: Kind = Kind::Identity;

    fn read(r: &mut MessageReader<'_, '_>) -> Option<Self> {
        let whole = r.root();
        let agent_id = r.uuid(&whole, "agent_id");
        let agent_name = r.name(&whole, "agent_name", NAME_MAX);
        let version = r.bounded(&whole, "version", NAME_MAX);
        let spec_version = r.bounded(&whole, "spec_version", NAME_MAX);
        let capabilities = read_capabilities(r, &whole.part("capabilities"));
        let report = ReportedStatus::find(r, &whole.part("status"), false);
        let trust = whole.part("trust_signals");
        let trust_signals = trust.exists().then(|| ClaimedTrustSignals {
            reputation_score: r.score(&trust, "reputation_score"),
            total_collaborations: r.number(&trust, "total_collaborations"),
            success_rate: r.score(&trust, "success_rate"),
            average_response_time_ms: r.number(&trust, "average_response_time_ms"),
        });
        let limits = whole.part("resource_limits");
        let limits = ResourceLimits {
            max_concurrent_tasks: r.number(&limits, "max_concurrent_tasks"),
            current_task_count: r.number(&limits, "current_task_count"),
            rate_limit_per_minute: r.number(&limits, "rate_limit_per_minute"),
        };
        let published_at = r.time(&whole, "published_at");
        let endpoint = r.bounded(&whole, "endpoint", ENDPOINT_MAX);
        let wanted = "must be \"auto\" or \"ask\"";
        let response_mode = r.convert(&whole, "response_mode", wanted, |json| match json.value() {
            Is::String(text) => Mode::read(text),
            _ => None,
        });
        Some(Self {
            agent_id: agent_id?,
            agent_name: agent_name?,
            version: version?,
            spec_version,
            capabilities: capabilities?,
            report: report?,
            trust_signals,
            limits,
            published_at,
            endpoint: endpoint.filter(|url| !url.is_empty()),
            response_mode: response_mode.unwrap_or(Mode::Auto),
        })
    }
}

impl Identity {
    /// The capability with this id.
    pub fn capability(&self, id: &str) -> Option<&PublishedCapability> {
        self.capabilities.iter().find(|capability| capability.id == id)
    }

    /// The number of patterns in all its schemas.
    pub fn patterns(&self) -> usize {
        let schemas = self.capabilities.iter().flat_map(|one| [&one.input, &one.output]);
        schemas.flatten().map(Schema::patterns).sum()
    }

    /// The JSON text of the message. An identity has no timestamp and no correlation id of its own.
    pub fn write(&self) -> String {
        let capabilities = self.write_capabilities();
        let mode = (self.response_mode != Mode::Auto).then_some(self.response_mode.as_str());
        ObjectWriter::new()
            .uuid("agent_id", self.agent_id)
            .text("agent_name", &self.agent_name)
            .text("agent_type", AGENT_TYPE)
            .text("version", &self.version)
            .maybe_text("spec_version", self.spec_version.as_deref())
            .raw("capabilities", &capabilities)
            .raw("status", &self.report.write_to(ObjectWriter::new()).finish())
            .maybe_raw(
                "trust_signals",
                self.trust_signals.as_ref().map(ClaimedTrustSignals::write).as_deref(),
            )
            .maybe_raw("resource_limits", self.limits.write().as_deref())
            .maybe_time("published_at", self.published_at)
            .maybe_text("endpoint", self.endpoint.as_deref())
            .maybe_text("response_mode", mode)
            .text("protocol_version", VERSION)
            .finish()
    }

    /// The JSON text of the capabilities and their schemas.
    pub fn write_capabilities(&self) -> String {
        let list: Vec<_> = self.capabilities.iter().map(PublishedCapability::write).collect();
        let map = |of: fn(&PublishedCapability) -> Option<&Schema>| {
            let given = self.capabilities.iter().filter_map(|one| Some((one, of(one)?)));
            given
                .fold(ObjectWriter::new(), |map, (one, schema)| map.raw(&one.id, schema.text()))
                .finish()
        };
        ObjectWriter::new()
            .raw("advertised_capabilities", &format!("[{}]", list.join(",")))
            .raw("input_schemas", &map(|one| one.input.as_ref()))
            .raw("output_schemas", &map(|one| one.output.as_ref()))
            .finish()
    }
}

impl ClaimedTrustSignals {
    /// The JSON text.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .maybe_raw("reputation_score", self.reputation_score.map(Score::text).as_deref())
            .maybe_integer("total_collaborations", self.total_collaborations)
            .maybe_raw("success_rate", self.success_rate.map(Score::text).as_deref())
            .maybe_integer("average_response_time_ms", self.average_response_time_ms)
            .finish()
    }
}

impl ResourceLimits {
    fn write(self) -> Option<String> {
        (self != Self::default()).then(|| {
            ObjectWriter::new()
                .maybe_integer("max_concurrent_tasks", self.max_concurrent_tasks)
                .maybe_integer("current_task_count", self.current_task_count)
                .maybe_integer("rate_limit_per_minute", self.rate_limit_per_minute)
                .finish()
        })
    }
}

/// One capability of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedCapability {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its category.
    pub category: Category,
    /// The estimated duration.
    pub estimated_duration_ms: Option<i64>,
    /// Whether a person must approve each request.
    pub requires_approval: bool,
    /// Its price (not in the spec).
    pub price: Option<Credits>,
    /// The schema of the input; without one, any object is valid (R26).
    pub input: Option<Schema>,
    /// The schema of the output; without one, any object is valid.
    pub output: Option<Schema>,
}

/// All capabilities of an identity; `None` when one of them is incomplete.
fn read_capabilities(
    r: &mut MessageReader<'_, '_>,
    from: &ObjectPart<'_, '_>,
) -> Option<Vec<PublishedCapability>> {
    let mut patterns = 0;
    let inputs = compile_schemas(r, &from.part("input_schemas"), &mut patterns);
    let outputs = compile_schemas(r, &from.part("output_schemas"), &mut patterns);
    let mut all: Vec<PublishedCapability> = Vec::new();
    let mut whole = true;
    let items = from.items("advertised_capabilities");
    if items.len() > CAPABILITIES_MAX {
        let says = format!("must have at most {CAPABILITIES_MAX} items");
        r.add_violation(from, "advertised_capabilities", says);
        return None;
    }
    for item in items {
        let found = read_capability(r, &item, &inputs, &outputs);
        match found {
            Some(found) if all.iter().any(|other| other.id == found.id) => {
                r.add_violation(
                    &item,
                    "capability_id",
                    "occurs twice; each capability has one entry",
                );
            }
            Some(found) => all.push(found),
            None => whole = false,
        }
    }
    whole.then_some(all)
}

fn read_capability(
    r: &mut MessageReader<'_, '_>,
    item: &ObjectPart<'_, '_>,
    inputs: &[(&str, Schema)],
    outputs: &[(&str, Schema)],
) -> Option<PublishedCapability> {
    let id = r.name(item, "capability_id", NAME_MAX);
    let name = r.name(item, "capability_name", NAME_MAX);
    let description = r.bounded(item, "description", TEXT_MAX);
    let estimated_duration_ms = r.number(item, "estimated_duration_ms");
    let requires_approval = r.flag(item, "requires_approval").unwrap_or(false);
    let price = r.amount(item, "price");
    let of = |all: &[(&str, Schema)]| {
        let own = all.iter().find(|(name, _)| Some(*name) == id.as_deref());
        own.map(|(_, schema)| schema.clone())
    };
    let (input, output) = (of(inputs), of(outputs));
    Some(PublishedCapability {
        id: id?,
        name: name?,
        description: description?,
        category: item.text("category").and_then(Category::read)?,
        estimated_duration_ms,
        requires_approval,
        price,
        input,
        output,
    })
}

/// Every schema of a map, compiled, whether or not a capability has its name (R18). A reference to
/// a schema elsewhere is treated as plain text and never followed (D22).
fn compile_schemas<'b>(
    r: &mut MessageReader<'_, '_>,
    map: &ObjectPart<'_, 'b>,
    patterns: &mut usize,
) -> Vec<(&'b str, Schema)> {
    let Some(Is::Object(members)) = map.json().map(Json::value) else { return Vec::new() };
    let mut made = Vec::new();
    for (name, schema) in members.iter().filter(|(_, json)| matches!(json.value(), Is::Object(_))) {
        if *patterns > PATTERNS_MAX {
            break;
        }
        match Schema::of(schema) {
            Ok(schema) => {
                *patterns += schema.patterns();
                made.push((name.as_ref(), schema));
                if *patterns > PATTERNS_MAX {
                    let says = format!("brings the schemas to more than {PATTERNS_MAX} patterns");
                    r.add_violation(map, name, says);
                }
            }
            Err(bad) => {
                r.add_violation(map, name, format_args!("is not a supported schema: {bad}"))
            }
        }
    }
    made
}

impl PublishedCapability {
    /// The JSON text, without the schemas.
    fn write(&self) -> String {
        ObjectWriter::new()
            .text("capability_id", &self.id)
            .text("capability_name", &self.name)
            .text("description", &self.description)
            .text("category", self.category.as_str())
            .maybe_integer("estimated_duration_ms", self.estimated_duration_ms)
            .flag("requires_approval", self.requires_approval)
            .maybe_credits("price", self.price)
            .finish()
    }
}
