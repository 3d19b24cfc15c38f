//! Questions about jobs: the open one, for requesters whose protocol shows it with the job, and the
//! check of an answer.

use rialto_core::job::{Job, State};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::kit::api_doc::Time;
use crate::kit::raw_json;
use crate::kit::schema::Schema;

/// A question that waits for an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QuestionView {
    /// Counted from 1 for each job.
    pub number: u32,
    pub text: String,
    /// JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<RawValue>>,
    /// The requester signs in elsewhere, as the text says. The hub takes no answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auth: bool,
    /// When the job expires if the worker still waits.
    #[schemars(with = "Time")]
    pub until: String,
}

impl QuestionView {
    /// The open question, with its time as the protocol writes it.
    pub fn of(job: &Job, format_time: fn(Timestamp) -> String) -> Option<Self> {
        let State::InputRequired { until } = job.state else { return None };
        let (number, question) = job.open_question()?;
        let schema = question.schema.as_deref().map(raw_json::verbatim);
        let (text, auth) = (question.text.clone(), question.signs_in);
        Some(Self { number, text, schema, auth, until: format_time(until) })
    }
}

/// Answers that are checked at the same time; more wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Checks an answer against the schema of the open question. The answer to a question that is not
/// open, by its number, is checked by core: it may be a repeat.
pub async fn check_answer(job: &Job, number: Option<u32>, input: &str) -> Result<(), Refusal> {
    let answered = job.open_question().filter(|(open, _)| number.is_none_or(|one| one == *open));
    let schema = answered.and_then(|(_, question)| question.schema.clone());
    let Some(schema) = schema else { return Ok(()) };
    let Ok(_permit) = AT_ONCE.acquire().await else { return Ok(()) };
    let input = input.to_owned();
    let check = move || {
        // A question with a bad schema is refused when it is asked.
        let schema = Schema::compile(&schema).ok()?;
        let violations = schema.check(&input).err()?;
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Some(texts.join("; "))
    };
    match tokio::task::spawn_blocking(check).await.ok().flatten() {
        Some(reason) => Err(Refusal::InputRejected { reason }),
        None => Ok(()),
    }
}
