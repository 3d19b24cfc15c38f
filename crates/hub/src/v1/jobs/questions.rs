//! Questions of workers and answers of requesters.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::{AnswerQuestion, AskQuestion, Command, JobRef};
use rialto_core::job::{Job, Question};
use rialto_protocols::adapter::question_view::{QuestionView, check_answer};
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::adapter::{HubContext, fidelity};
use rialto_protocols::kit::api_doc::{AnyObject, Time};
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::schema::Schema;
use rialto_protocols::kit::{ijson, raw_json, rfc3339};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::find_party_job;
use super::result::{TEXT_MAX, parse_epoch, parse_text};
use super::view::{JobView, StateName, Viewer, state_name};
use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_time, ok_response};
use crate::v1::strict_fields;

/// The longest schema of an answer, in bytes.
const SCHEMA_MAX: usize = 16 << 10;

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/ask`.
    #[schemars(deny_unknown_fields)]
    AskBody {
        /// The epoch of the assignment.
        epoch: Option<u32>,
        /// The question.
        #[schemars(length(max = TEXT_MAX))]
        text: String,
        /// JSON Schema of the answer.
        schema: Option<AnyObject>,
        /// The requester has to sign in elsewhere, as the text says. The hub takes no answer; the
        /// worker's next report says that it goes on.
        auth: Option<bool>,
    }
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/answer`: either `text` or `input`.
    #[schemars(deny_unknown_fields)]
    AnswerBody {
        /// The number of the question; without it, the open one.
        question: Option<u32>,
        /// The answer as text.
        text: Option<String>,
        /// The answer as an object.
        input: Option<AnyObject>,
    }
}

#[derive(Serialize, JsonSchema)]
pub struct AskResponse {
    id: Uuid,
    #[schemars(with = "StateName")]
    state: &'static str,
    question: Option<QuestionView>,
}

/// `POST /v1/jobs/{id}/ask`: the worker asks the requester for more input. If the requester has no
/// way to answer, the job ends at once, or goes to another worker.
pub async fn ask_question(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, AskBody::MEMBERS)?;
    let (epoch, text) = (parse_epoch(&f)?, parse_text(&f, "text")?);
    let (text, schema) = (f.required("text", text)?, parse_schema(&f)?);
    let signs_in = f.flag("auth")?.unwrap_or(false);
    if signs_in && schema.is_some() {
        return Err(f.malformed("schema", "must be omitted if auth is true").into());
    }
    let job = find_party_job(&context, by.id, &id).await?;
    context.engine.record_seen(by.id);
    let order = Box::new(AskQuestion { job: JobRef::Id(job.id), by: by.id, epoch, text, schema });
    let order = if signs_in { Command::AskToSignIn(order) } else { Command::AskQuestion(order) };
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(ok_response(&AskResponse {
            id: job.uuid,
            state: state_name(job.state),
            question: QuestionView::of(&job, rfc3339::format_millis),
        })),
        _ => Err(Problem::not_found()),
    }
}

/// A schema that answers can be checked against.
fn parse_schema(f: &Fields<'_, '_>) -> Result<Option<String>, Malformed> {
    f.object("schema")?;
    let Some(schema) = f.get("schema").filter(|_| f.has_value("schema")) else { return Ok(None) };
    if schema.raw().len() > SCHEMA_MAX {
        return Err(f.malformed("schema", format!("has more than {SCHEMA_MAX} bytes")));
    }
    Schema::of(schema).map_err(|bad| f.malformed("schema", bad))?;
    Ok(Some(schema.raw().to_owned()))
}

/// `POST /v1/jobs/{id}/answer`: the requester answers the open question.
pub async fn answer_question(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, AnswerBody::MEMBERS)?;
    let question = f.integer("question")?.map(u32::try_from).transpose();
    let question =
        question.map_err(|_| f.malformed("question", "must be its number, such as 1"))?;
    let input = parse_input(&f)?;
    let job = find_party_job(&context, by.id, &id).await?;
    if !job.is_requested_by(by.id) {
        return Err(Problem::not_found());
    }
    check_answer(&job, question, &input).await?;
    let order = AnswerQuestion { job: JobRef::Id(job.id), by: by.id, question, input };
    let order = Command::AnswerQuestion(Box::new(order));
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(ok_response(&JobView::full(&job, Viewer::Requester))),
        _ => Err(Problem::not_found()),
    }
}

/// The answer as JSON: a text, or any object.
fn parse_input(f: &Fields<'_, '_>) -> Result<String, Malformed> {
    f.object("input")?;
    let input = f.get("input").filter(|_| f.has_value("input")).map(|input| input.raw().to_owned());
    let text = f.text("text")?.map(|text| ObjectWriter::new().text("text", text).finish());
    match (input, text) {
        (Some(input), None) => Ok(input),
        (None, Some(text)) => Ok(text),
        _ => Err(f.malformed("text", "or \"input\" is required, and not both")),
    }
}

/// A question and its answer, for the parties.
#[derive(Serialize, JsonSchema)]
pub struct AskedQuestion {
    number: u32,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Box<RawValue>>,
    /// The requester signs in elsewhere.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auth: bool,
    asked_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<Time>,
    /// Members of the answer that the requester's protocol does not define.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_meta: Option<Box<RawValue>>,
}

impl AskedQuestion {
    fn of(job: &Job, (number, question): (u32, &Question)) -> Self {
        Self {
            number,
            text: question.text.clone(),
            schema: question.schema.as_deref().map(raw_json::verbatim),
            auth: question.signs_in,
            asked_at: format_time(question.asked_at),
            answer: question.answer.as_deref().map(raw_json::verbatim),
            answered_at: question.answered_at.map(format_time),
            answer_meta: answer_meta(job, number).as_deref().map(raw_json::verbatim),
        }
    }
}

/// All questions for the requester; for a worker only its own.
pub fn asked_questions(job: &Job, viewer: Viewer) -> Vec<AskedQuestion> {
    match viewer {
        Viewer::Requester => {
            (1..).zip(&job.questions).map(|asked| AskedQuestion::of(job, asked)).collect()
        }
        Viewer::Worker => {
            job.current_questions().map(|asked| AskedQuestion::of(job, asked)).collect()
        }
        Viewer::Operator => Vec::new(),
    }
}

/// Members of the answer to a question that the requester's protocol does not define.
pub fn answer_meta(job: &Job, question: u32) -> Option<String> {
    fidelity::extras_of_message(job, job.message_that_answers(question)?)
}
