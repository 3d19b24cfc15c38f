//! What a worker reports before its result: how far it is, and parts of the result.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, ReportProgress};
use rialto_core::job::Job;
use rialto_core::job::progress::{Fraction, ProgressReport, ProgressUpdate, ResultPart};
use rialto_core::money::Credits;
use rialto_engine::run::LoggedReport;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::kit::api_doc::{AnyObject, Time};
use rialto_protocols::kit::budget::ByteBudget;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson::JsonValue;
use rialto_protocols::kit::raw_json::Number;
use rialto_protocols::kit::{ijson, raw_json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::find_party_job;
use super::result::{TEXT_MAX, parse_epoch, parse_text};
use super::view::{StateName, state_name};
use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_time, ok_response};
use crate::v1::strict_fields;

/// Parts that a job shows, and their bytes; older ones are in the requester's inbox.
const PARTS_SHOWN: usize = 100;
const PARTS_SHOWN_BYTES: usize = 256 << 10;

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/progress`: `fraction`, `text`, both, or neither. Without them it
    /// is a sign of life: the work has started or goes on.
    #[schemars(deny_unknown_fields)]
    ProgressBody {
        /// The epoch of the assignment.
        epoch: Option<u32>,
        /// How much of the work is done.
        #[schemars(with = "Option<f64>", range(min = 0, max = 1))]
        fraction: Option<Number>,
        /// What the worker does now.
        #[schemars(length(max = TEXT_MAX))]
        text: Option<String>,
    }
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/parts`.
    #[schemars(deny_unknown_fields)]
    PartBody {
        /// The epoch of the assignment.
        epoch: Option<u32>,
        /// The part.
        artifact: AnyObject,
        /// Whether it continues the part before it.
        append: Option<bool>,
    }
}

#[derive(Serialize, JsonSchema)]
pub struct ReportResponse {
    id: Uuid,
    #[schemars(with = "StateName")]
    state: &'static str,
    /// The number of this report among those of the job; a sign of life has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    /// By then the worker must give another sign of life.
    lease_until: Option<Time>,
}

/// `POST /v1/jobs/{id}/progress`: how far the worker is.
pub async fn report_progress(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, ProgressBody::MEMBERS)?;
    let update =
        ProgressUpdate { fraction: parse_fraction(&f)?, text: parse_text(&f, "text")?, part: None };
    report(&context, by, &id, parse_epoch(&f)?, update).await
}

/// `POST /v1/jobs/{id}/parts`: a part of the result.
pub async fn add_part(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, PartBody::MEMBERS)?;
    // Must be an object, because some protocols cannot represent anything else.
    f.object("artifact")?;
    let content = f.required("artifact", f.get("artifact"))?.raw().to_owned();
    let append = f.flag("append")?.unwrap_or(false);
    let part = Some(ResultPart { content, append });
    let update = ProgressUpdate { part, ..ProgressUpdate::default() };
    report(&context, by, &id, parse_epoch(&f)?, update).await
}

/// A number between 0 and 1, rounded to millionths: programs send quotients such as 1/3.
fn parse_fraction(f: &Fields<'_, '_>) -> Result<Option<Fraction>, Malformed> {
    let Some(json) = f.get("fraction").filter(|_| f.has_value("fraction")) else {
        return Ok(None);
    };
    let value: Option<f64> = match json.value() {
        JsonValue::Number(digits) => digits.parse().ok(),
        _ => None,
    };
    let within = value.filter(|value| (0.0..=1.0).contains(value));
    let fraction = within.and_then(|value| Fraction::from_millionths((value * 1e6).round() as u32));
    fraction.map(Some).ok_or_else(|| f.malformed("fraction", "must be a number between 0 and 1"))
}

async fn report(
    context: &HubContext,
    by: AgentCaller,
    id: &str,
    epoch: Option<u32>,
    update: ProgressUpdate,
) -> HandlerResult {
    let job = find_party_job(context, by.id, id).await?;
    context.engine.record_seen(by.id);
    let has_content = !update.is_empty();
    let order = ReportProgress { job: JobRef::Id(job.id), by: by.id, epoch, update };
    let order = Command::ReportProgress(Box::new(order));
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(ok_response(&ReportResponse {
            id: job.uuid,
            state: state_name(job.state),
            number: has_content.then_some(job.progress.reports),
            lease_until: job.assignment.map(|turn| format_time(turn.until)),
        })),
        _ => Err(Problem::not_found()),
    }
}

/// The progress of a job, for its parties.
#[derive(Serialize, JsonSchema)]
pub struct ProgressView {
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// How many reports and parts there were.
    reports: u32,
}

impl ProgressView {
    /// `None` if nothing was reported.
    pub fn of(job: &Job) -> Option<Self> {
        let progress = &job.progress;
        (progress.worker_reports() > 0).then(|| Self {
            fraction: progress.fraction.map(format_fraction),
            text: progress.text.clone(),
            reports: progress.worker_reports(),
        })
    }
}

/// A part of a result, as parties see it.
#[derive(Serialize, JsonSchema)]
pub struct PartView {
    number: u32,
    at: Time,
    artifact: Box<RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    append: bool,
}

/// The newest parts of a job's result, oldest first.
pub async fn load_parts(context: &HubContext, job: &Job) -> Result<Vec<PartView>, Problem> {
    let log = context.engine.reports_of(job.progress.newest, PARTS_SHOWN).await?;
    let mut budget = ByteBudget::new(PARTS_SHOWN_BYTES);
    let fits = |part: &PartView| budget.take(part.artifact.get().len());
    let mut parts: Vec<PartView> =
        log.rows.into_iter().filter_map(PartView::of).take_while(fits).collect();
    parts.reverse();
    Ok(parts)
}

impl PartView {
    fn of(logged: LoggedReport) -> Option<Self> {
        let LoggedReport { at, report } = logged;
        let ResultPart { content, append } = report.update.part?;
        let artifact = raw_json::verbatim(&content);
        Some(Self { number: report.number, at: format_time(at), artifact, append })
    }
}

/// A report in a notice.
#[derive(Serialize, JsonSchema)]
pub struct ReportView {
    /// The number of the report among those of the job.
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    append: bool,
}

impl ReportView {
    pub fn of(report: &ProgressReport) -> Self {
        let ProgressUpdate { fraction, text, part } = &report.update;
        Self {
            number: report.number,
            fraction: fraction.map(format_fraction),
            text: text.clone(),
            artifact: part.as_ref().map(|part| raw_json::verbatim(&part.content)),
            append: part.as_ref().is_some_and(|part| part.append),
        }
    }
}

fn format_fraction(fraction: Fraction) -> Number {
    raw_json::amount(Credits::from_micros(fraction.millionths().into()), 0)
}
