//! Traces: a job from request to settlement, as each party may see it (B11, B18).

use std::collections::BTreeMap;

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::{Job, Requester, State};
use rialto_core::money::Credits;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::world::World;
use rialto_engine::Failure;
use rialto_engine::run::LogEntry;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::TracedJob;
use super::hop::{Hop, HopKind, field_map_of, hops};
use super::message_view::{Field, MessageView};
use super::note::NoteView;
use super::part::Part;
use crate::adapter::HubContext;
use crate::kit::api_doc::Time;
use crate::kit::raw_json::{self, Number};

/// How far back in an inbox a notice of the job is searched for.
const LOOK_BACK: u64 = 256;
/// Entries of a log that are read at once.
const LOG_PAGE: usize = 256;
/// The minimum number of decimals of an amount.
const DECIMALS_MIN: usize = 2;

/// Who views the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    Requester,
    Worker,
    /// Sees what happened, but no content.
    Operator,
}

/// A job from request to settlement.
#[derive(Serialize, JsonSchema)]
pub struct Trace {
    job: Uuid,
    #[schemars(with = "StateName")]
    state: &'static str,
    skill: String,
    requester: PartyView,
    worker: Option<PartyView>,
    money: MoneyView,
    opened_at: Time,
    deadline: Time,
    ended_at: Option<Time>,
    hops: Vec<HopView>,
    evidence: Vec<EvidenceView>,
}

/// A party: its name in its home protocol and its aliases elsewhere.
#[derive(Serialize, JsonSchema)]
struct PartyView {
    protocol: String,
    id: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    aliases: BTreeMap<String, String>,
}

#[derive(Serialize, JsonSchema)]
struct MoneyView {
    /// The requester's bid. The worker is paid its price, which may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Number>,
    price: Option<Number>,
    paid: Option<Number>,
}

#[derive(Serialize, JsonSchema)]
struct HopView {
    what: &'static str,
    from: String,
    to: String,
    at: Time,
    notes: Vec<NoteView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<String>,
}

/// What a party signed.
#[derive(Serialize, JsonSchema)]
struct EvidenceView {
    protocol: String,
    of: &'static str,
    text: String,
}

/// The trace of a job.
pub async fn trace(context: &HubContext, job: &Job, eyes: Viewer) -> Result<Trace, Failure> {
    let (start, end) = (start(context, job).await?, end(context, job).await?);
    let reports = context.engine.reports_of(job.progress.newest, 1).await?;
    let report = reports.rows.first();
    let log = log(context, job).await?;
    let (start, end, log) = (start.as_ref(), end.as_ref(), log.as_slice());
    let hops = hops(context, TracedJob { job, start, end, report, log });
    let signed = field_map_of(job.request.origin).and_then(|map| map.evidence(job));
    let hops = hops.into_iter().map(|hop| HopView::of(hop, eyes, signed.is_some())).collect();
    let signed = signed.filter(|_| eyes != Viewer::Operator);
    let evidence = signed.map(|text| EvidenceView {
        protocol: job.request.origin.to_string(),
        of: HopKind::Request.as_str(),
        text,
    });
    let (requester, worker) = context.engine.with_world(|world| {
        let worker = job.worker().and_then(|id| PartyView::agent(world, id));
        (PartyView::requester(world, job), worker)
    });
    Ok(Trace {
        job: job.uuid,
        state: state_name(job.state),
        skill: job.request.skill.clone(),
        requester,
        worker,
        money: MoneyView {
            budget: (eyes != Viewer::Worker).then(|| money(job.payment.budget)),
            price: job.assignment.map(|turn| money(turn.price)),
            paid: job.result.as_ref().map(|report| money(report.paid)),
        },
        opened_at: Time::millis(job.request.opened_at),
        deadline: Time::millis(job.request.deadline),
        ended_at: job.ended_at.map(Time::millis),
        hops,
        evidence: evidence.into_iter().collect(),
    })
}

/// The log, oldest first, if one of the parties writes or reads it in its own protocol.
async fn log(context: &HubContext, job: &Job) -> Result<Vec<LogEntry>, Failure> {
    let mut entries = Vec::new();
    let is_shown = job.policy.requester.follows_log || job.handover.is_some();
    let mut from = job.progress.newest.filter(|_| is_shown);
    while let Some(notice) = from {
        let page = context.engine.log_of(Some(notice), LOG_PAGE).await?;
        from = page.next.map(NoticeId);
        entries.extend(page.rows);
    }
    entries.reverse();
    Ok(entries)
}

/// The notice in the worker's inbox that starts the job, if it is recent enough.
async fn start(context: &HubContext, job: &Job) -> Result<Option<Notice>, Failure> {
    let Some(worker) = job.worker() else { return Ok(None) };
    near(context, worker, &NoticeKind::Assigned { job: job.id, epoch: job.epoch }).await
}

/// The notice in the requester's inbox that ends the job, if it is recent enough.
async fn end(context: &HubContext, job: &Job) -> Result<Option<Notice>, Failure> {
    match job.request.requester {
        Requester::Agent(reader) if job.ended_at.is_some() => {
            near(context, reader, &NoticeKind::Ended { job: job.id }).await
        }
        _ => Ok(None),
    }
}

async fn near(
    context: &HubContext,
    reader: AgentId,
    news: &NoticeKind,
) -> Result<Option<Notice>, Failure> {
    let head = context.engine.with_world(|world| world.inbox(reader).head);
    let limit = usize::try_from(LOOK_BACK).unwrap_or(usize::MAX);
    let (mut after, mut newest) = (head.saturating_sub(LOOK_BACK), None);
    loop {
        let page = context.engine.load_notices(reader, after, limit).await?;
        let Some(last) = page.last() else { return Ok(newest) };
        after = last.position;
        newest = page.into_iter().rev().find(|notice| notice.news == *news).or(newest);
    }
}

impl PartyView {
    fn agent(world: &World, id: AgentId) -> Option<Self> {
        let agent = world.agent(id)?;
        let others =
            crate::ALL.iter().map(|adapter| adapter.id()).filter(|other| *other != agent.home);
        let named = others.filter_map(|other| Some((other, world.alias_of(id, other)?)));
        let aliases = named.map(|(other, name)| (other.to_string(), name.to_owned())).collect();
        Some(Self { protocol: agent.home.to_string(), id: agent.native_id.clone(), aliases })
    }

    /// The requester; a guest has only the name it gave.
    fn requester(world: &World, job: &Job) -> Self {
        let guest = |name: &str| Self {
            protocol: job.request.origin.to_string(),
            id: name.to_owned(),
            aliases: BTreeMap::new(),
        };
        match &job.request.requester {
            Requester::Agent(id) => Self::agent(world, *id).unwrap_or_else(|| guest("")),
            Requester::Guest(name) => guest(name),
        }
    }
}

impl HopView {
    fn of(hop: Hop, eyes: Viewer, signed: bool) -> Self {
        let hop = seen(hop, eyes, signed);
        let all = hop.notes().into_iter();
        let Hop { kind: what, from, to, at, sent: asked, received: given } = hop;
        let whole = eyes != Viewer::Operator;
        Self {
            what: what.as_str(),
            from: from.to_string(),
            to: to.to_string(),
            at: Time::millis(at),
            notes: all.map(|note| note.view(whole)).collect(),
            asked: asked.map(|side| side.payload).filter(|_| whole),
            given: Some(given.payload).filter(|_| whole),
        }
    }
}

/// A hop without what one party has not disclosed to the other: private addresses, and, for the
/// worker, a bid that differs from the price it was shown. A signed request is signed with its bid,
/// which is public.
fn seen(hop: Hop, eyes: Viewer, signed: bool) -> Hop {
    let own = match hop.kind {
        HopKind::Request => Viewer::Requester,
        HopKind::Progress | HopKind::Question | HopKind::Result => Viewer::Worker,
    };
    let told = |field: &Field, given: &MessageView| {
        given.fields.iter().any(|other| other.part == field.part && other.value == field.value)
    };
    let Hop { sent: asked, received: given, .. } = hop;
    let asked = asked.map(|side| {
        side.redact(|field| {
            let bid = field.part == Part::Budget && !signed && !told(field, &given);
            (field.part.is_private() && eyes != own) || (bid && eyes == Viewer::Worker)
        })
    });
    let given = given.redact(|field| field.part.is_private() && eyes == own);
    Hop { sent: asked, received: given, ..hop }
}

fn money(amount: Credits) -> Number {
    raw_json::amount(amount, DECIMALS_MIN)
}

crate::words! {
    /// The state of a job.
    StateName: "open" | "queued" | "negotiating" | "deferred" | "assigned" | "running" | "asking"
        | "completed" | "failed" | "expired" | "cancelled" | "withdrawn"
}

/// A state's name in the API.
pub fn state_name(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Queued => "queued",
        State::Negotiating => "negotiating",
        State::Deferred { .. } => "deferred",
        State::Assigned => "assigned",
        State::Running => "running",
        State::InputRequired { .. } => "asking",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Expired => "expired",
        State::Cancelled => "cancelled",
        State::Withdrawn => "withdrawn",
    }
}
