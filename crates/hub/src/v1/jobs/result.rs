//! What a worker reports about a job: its result, its failure, or that it declines.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, ReportResult};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job};
use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::adapter::{HubContext, api_protocol};
use rialto_protocols::kit::api_doc::AnyObject;
use rialto_protocols::kit::canonical::canonical_bytes;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson::{self, Json};
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::find_party_job;
use super::view::StateName;
use super::view::state_name;
use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_amount, ok_response};
use crate::v1::strict_fields;

/// Decimals an amount may have.
const DECIMALS: usize = 6;
/// Longest text about a failure.
pub const TEXT_MAX: usize = 4_096;
/// Longest code of a failure.
const CODE_MAX: usize = 128;
/// The text for a failure without a message.
const DEFAULT_FAILURE_TEXT: &str = "the agent reported a failure";

rialto_protocols::words! {
    /// Whether the worker failed, which is the default, the input was invalid, or the worker refuses
    /// the job, so that no other worker gets it unless the requester's protocol wants that.
    FailureCause: "execution" | "invalid_input" | "refused"
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/result`.
    #[schemars(deny_unknown_fields)]
    ResultBody {
        /// The epoch of the assignment; with it the result never counts for another one.
        epoch: Option<u32>,
        /// Whether the work is done.
        ok: bool,
        /// The result; required if `ok` is true.
        output: Option<AnyObject>,
        /// What it cost, at most the agreed price, which is the default. An invalid value is ignored.
        cost: Option<serde_json::Value>,
        /// How long it took, in milliseconds. An invalid value is ignored.
        took_ms: Option<serde_json::Value>,
        /// A code for the failure.
        #[schemars(length(min = 1, max = CODE_MAX))]
        code: Option<String>,
        /// What went wrong.
        #[schemars(length(max = TEXT_MAX))]
        message: Option<String>,
        cause: Option<FailureCause>,
    }
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/decline`.
    #[schemars(deny_unknown_fields)]
    DeclineBody {
        /// The epoch of the assignment.
        epoch: Option<u32>,
        /// Why.
        #[schemars(length(max = TEXT_MAX))]
        reason: Option<String>,
    }
}

/// What a worker reports at the end of its work.
pub struct WorkReport {
    pub epoch: Option<u32>,
    /// JSON text, or the failure.
    pub outcome: Result<String, FailureReport>,
    /// What it cost; the agreed price unless it is given.
    pub cost: Option<Credits>,
    pub took: Option<Millis>,
}

/// Why the work failed.
pub struct FailureReport {
    pub cause: Cause,
    pub text: String,
}

/// The parsed result request.
struct ResultRequest {
    report: WorkReport,
    /// Numbers that were invalid, and what is used instead.
    warnings: Vec<String>,
}

impl ResultRequest {
    fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read_allowing_non_finite(body, &["cost", "took_ms"])?;
        let f = strict_fields::parse_fields(&json, ResultBody::MEMBERS)?;
        let ok = f.required("ok", f.flag("ok")?)?;
        let outcome = if ok { Ok(parse_output(&f)?) } else { Err(FailureReport::read(&f)?) };
        // An invalid cost or duration does not void the result.
        let (cost, took) = (f.credits("cost", DECIMALS), parse_took(&f));
        let mut warnings = Vec::new();
        if let Some(bad) = cost.as_ref().err().filter(|_| ok) {
            warnings.push(format!("{bad}; the agreed price is used instead"));
        }
        if let Err(bad) = &took {
            warnings.push(format!("{bad}; the hub's own clock is used instead"));
        }
        let (cost, took) = (cost.unwrap_or(None), took.unwrap_or(None));
        let report = WorkReport { epoch: parse_epoch(&f)?, outcome, cost, took };
        Ok(Self { report, warnings })
    }
}

impl WorkReport {
    /// Digest of all relevant members, by which a repeat is recognised.
    fn content(&self) -> Digest {
        let meaning = match &self.outcome {
            Ok(output) => [b"done".to_vec(), canonical_bytes(output)],
            Err(failed) => [format!("{:?}", failed.cause).into_bytes(), failed.text.clone().into()],
        };
        let micros = self.cost.map_or(-1, Credits::micros).to_be_bytes();
        Digest::of(&[b"v1", &meaning[0], &meaning[1], &micros])
    }

    fn into_command(self, job: &Job, by: AgentId) -> Command {
        let content = self.content();
        let (ok, output, failed) = match self.outcome {
            Ok(output) => (true, Some(output), None),
            Err(failed) => (false, None, Some(failed)),
        };
        let (cause, text) = failed.map(|failed| (failed.cause, failed.text)).unzip();
        Command::ReportResult(Box::new(ReportResult {
            job: JobRef::Id(job.id),
            by,
            epoch: self.epoch,
            ok,
            is_final: true,
            knows_work: true,
            no_response: false,
            output,
            // Without a cost the worker gets its full price; the payment is capped by the price
            // anyway.
            cost: self.cost.unwrap_or(Credits::MAX),
            took: self.took,
            cause,
            text,
            meta: None,
            content,
        }))
    }
}

/// A job after its worker's report.
pub struct ReportedJob {
    pub job: Arc<Job>,
    pub paid: Credits,
    /// The same result was reported before.
    pub repeated: bool,
}

/// Takes a worker's report about one of its jobs, by any of the job's ids.
pub async fn report_work(
    context: &HubContext,
    by: AgentCaller,
    id: &str,
    report: WorkReport,
) -> Result<ReportedJob, Problem> {
    let job = find_party_job(context, by.id, id).await?;
    context.engine.record_seen(by.id);
    let order = report.into_command(&job, by.id);
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, repeated } => {
            let paid = job.result.as_ref().map_or(Credits::ZERO, |report| report.paid);
            Ok(ReportedJob { job, paid, repeated })
        }
        _ => Err(Problem::not_found()),
    }
}

/// The worker declines one of its jobs; the job afterwards.
pub async fn decline(
    context: &HubContext,
    by: AgentCaller,
    id: &str,
    epoch: Option<u32>,
    reason: Option<String>,
) -> Result<Arc<Job>, Problem> {
    let job = find_party_job(context, by.id, id).await?;
    context.engine.record_seen(by.id);
    let order = Command::Decline { job: JobRef::Id(job.id), by: by.id, epoch, reason };
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(job),
        _ => Err(Problem::not_found()),
    }
}

impl FailureReport {
    /// Invalid input and a refusal are not the worker's failure; everything else is.
    fn read(f: &Fields<'_, '_>) -> Result<Self, Malformed> {
        let code = f.name("code", CODE_MAX)?;
        let own = parse_text(f, "message")?;
        let text = own.unwrap_or_else(|| code.unwrap_or(DEFAULT_FAILURE_TEXT).to_owned());
        let by_code = code.map_or(Cause::Execution, |code| api_protocol().cause_of_code(code));
        let cause = match f.text("cause")? {
            None | Some("execution") => by_code,
            Some("invalid_input" | "refused") => Cause::Policy,
            Some(_) => {
                let text = "must be \"execution\", \"invalid_input\" or \"refused\"";
                return Err(f.malformed("cause", text));
            }
        };
        Ok(Self { cause, text })
    }
}

/// Must be an object, because some protocols cannot represent anything else.
fn parse_output(f: &Fields<'_, '_>) -> Result<String, Malformed> {
    f.object("output")?;
    let output = f.required("output", f.get("output"))?;
    if f.has_value("message") {
        return Err(f.malformed("message", "must be omitted if ok is true"));
    }
    Ok(Json::raw(output).to_owned())
}

/// A text about a failure; an empty text counts as none.
pub fn parse_text(f: &Fields<'_, '_>, name: &str) -> Result<Option<String>, Malformed> {
    let text = f.text(name)?.filter(|text| !text.is_empty());
    match text.filter(|text| text.chars().count() > TEXT_MAX) {
        Some(_) => Err(f.malformed(name, format!("has more than {TEXT_MAX} characters"))),
        None => Ok(text.map(str::to_owned)),
    }
}

/// How long the work took, by the worker's own clock.
fn parse_took(f: &Fields<'_, '_>) -> Result<Option<Millis>, Malformed> {
    match f.integer("took_ms")? {
        Some(..0) => Err(f.malformed("took_ms", "must not be negative")),
        took => Ok(took.map(Millis)),
    }
}

/// Which assignment a worker means.
pub fn parse_epoch(f: &Fields<'_, '_>) -> Result<Option<u32>, Malformed> {
    let epoch = f.integer("epoch")?.map(u32::try_from).transpose();
    epoch.map_err(|_| f.malformed("epoch", "must be the epoch of an assignment, such as 1"))
}

#[derive(Serialize, JsonSchema)]
pub struct ResultResponse {
    id: Uuid,
    #[schemars(with = "StateName")]
    state: &'static str,
    paid: Number,
    /// The same result was reported before.
    repeated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `POST /v1/jobs/{id}/result`: the final result, by the worker.
pub async fn submit_result(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let ResultRequest { report, warnings } = ResultRequest::parse(&body)?;
    let ReportedJob { job, paid, repeated } = report_work(&context, by, &id, report).await?;
    Ok(ok_response(&ResultResponse {
        id: job.uuid,
        state: state_name(job.state),
        paid: format_amount(paid),
        repeated,
        warnings,
    }))
}

#[derive(Serialize, JsonSchema)]
pub struct DeclineResponse {
    id: Uuid,
    #[schemars(with = "StateName")]
    state: &'static str,
}

/// `POST /v1/jobs/{id}/decline`: the worker declines the job.
pub async fn decline_job(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, DeclineBody::MEMBERS)?;
    let epoch = parse_epoch(&f)?;
    let reason = parse_text(&f, "reason")?;
    let job = decline(&context, by, &id, epoch, reason).await?;
    Ok(ok_response(&DeclineResponse { id: job.uuid, state: state_name(job.state) }))
}
