//! What the parties of a job say to each other before its result: reports, parts, questions and answers.

use std::time::Duration;

use rialto_client::{CallError, RetryPolicy};
use rialto_core::time::Millis;
use rialto_engine::random::{OsRandom, RandomSource};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::work::current_epoch;
use super::{HINT_ASKED, HINT_WORKED, job_error, print_state};
use crate::commands::output::{pretty, shorten};
use crate::commands::time::{parse_duration, to_duration};
use crate::commands::v1::{AnswerBody, AskBody, AskedView, JobView, PartBody, ReportBody};
use crate::commands::{
    Answer, CliError, CliResult, Exit, HubOptions, V1, escape_line, input, output,
};

/// Characters of a part or an answer on one line.
const SHOWN_MAX: usize = 200;
/// How often to look for an answer.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub struct AnswerArgs {
    /// Id of the job: the hub's, or your own
    id: String,
    /// The answer as text
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    text: Option<String>,
    /// The answer as a JSON object: text, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Number of the question [default: the open one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    question: Option<u32>,
}

#[derive(clap::Args)]
pub struct ReportArgs {
    /// The hub's id of the job
    id: String,
    /// What you do now; without it and --fraction only that the work goes on
    text: Option<String>,
    /// How much is done, between 0 and 1
    #[arg(long, value_name = "F", value_parser = fraction)]
    fraction: Option<f64>,
}

#[derive(clap::Args)]
pub struct PartArgs {
    /// The hub's id of the job
    id: String,
    /// A part of the result: a JSON object as text, @FILE, or - for standard input
    part: String,
    /// It continues the part before
    #[arg(long)]
    append: bool,
}

#[derive(clap::Args)]
pub struct AskArgs {
    /// The hub's id of the job
    id: String,
    /// The question
    text: String,
    /// JSON Schema of the answer: text, @FILE, or - for standard input
    #[arg(long, value_name = "SCHEMA", conflicts_with = "sign_in")]
    schema: Option<String>,
    /// The requester has to sign in elsewhere, as the text says; there is no answer
    #[arg(long)]
    sign_in: bool,
    /// Wait for the answer and print it
    #[arg(long, conflicts_with = "sign_in")]
    wait: bool,
    /// How long to wait; exit code 8 on timeout [default: until the job ends]
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = parse_duration)]
    timeout: Option<Millis>,
}

fn fraction(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| "must be a number between 0 and 1, like 0.25".to_owned())
}

pub async fn answer(options: &HubOptions, args: &AnswerArgs) -> CliResult {
    let input =
        args.input.as_deref().map(|given| input::read_json("--input", given)).transpose()?;
    let (api, _) = options.client_with_key()?;
    let body =
        AnswerBody { question: args.question, text: args.text.as_deref(), input: input.as_deref() };
    // Safe to retry: the hub recognizes a repeat.
    let send = async || api.answer(&args.id, &body).await;
    let answer = RetryPolicy::default().call(send).await.map_err(|error| {
        let next = format!("`rialto job show {}` shows what is asked", args.id);
        job_error(error, HINT_ASKED)
            .with_hint_on(Exit::Conflict, next.as_str())
            .with_hint_on(Exit::Usage, next.as_str())
    })?;
    print_state(options, &answer)
}

pub async fn report(options: &HubOptions, args: &ReportArgs) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let epoch = current_epoch(&api, &args.id).await?;
    let body = ReportBody { epoch, fraction: args.fraction, text: args.text.as_deref() };
    let answer = once(async |key| api.report(&args.id, &body, key).await).await;
    print_state(options, &answer.map_err(|error| worker_error(error, &args.id))?)
}

pub async fn part(options: &HubOptions, args: &PartArgs) -> CliResult {
    let artifact = input::read_json("the part", &args.part)?;
    let (api, _) = options.client_with_key()?;
    let epoch = current_epoch(&api, &args.id).await?;
    let body = PartBody { epoch, artifact: &artifact, append: args.append };
    let answer = once(async |key| api.add_part(&args.id, &body, key).await).await;
    print_state(options, &answer.map_err(|error| worker_error(error, &args.id))?)
}

pub async fn ask(options: &HubOptions, args: &AskArgs) -> CliResult {
    let schema =
        args.schema.as_deref().map(|given| input::read_json("--schema", given)).transpose()?;
    let (api, _) = options.client_with_key()?;
    let epoch = current_epoch(&api, &args.id).await?;
    let auth = args.sign_in;
    let body = AskBody { epoch, text: &args.text, schema: schema.as_deref(), auth };
    let asked = once(async |key| api.ask(&args.id, &body, key).await).await;
    let asked = asked.map_err(|error| worker_error(error, &args.id))?;
    let state = asked.parse()?;
    let Some(question) = state.question.filter(|_| args.wait) else {
        return Ok(output::print(options.json, asked.text, || {
            escape_line(&format!("{} {}", state.id, state.state))
        }));
    };
    let until = args.timeout.and_then(|time| Instant::now().checked_add(to_duration(time)));
    wait_for_answer(options, &api, &args.id, question.number, until).await
}

/// Waits for the answer to a question and prints it.
async fn wait_for_answer(
    options: &HubOptions,
    api: &V1,
    id: &str,
    number: u32,
    until: Option<Instant>,
) -> CliResult {
    loop {
        let look = async || api.job(id, None).await;
        let job = RetryPolicy::default().call(look).await;
        let job: JobView = job.map_err(|error| worker_error(error, id))?.parse()?;
        let asked = job.questions.iter().find(|asked| asked.number == number);
        if let Some(answer) = asked.and_then(|asked| asked.answer.as_deref()) {
            let text = answer.get().to_owned();
            return Ok(output::print(options.json, text.clone(), || pretty(&text)));
        }
        if job.has_ended() || asked.is_none() {
            let text = format!("job {id} has no answer: it is {}", job.state);
            let next = format!("`rialto job show {id}` shows its end");
            return Err(CliError::failed(text, next));
        }
        if until.is_some_and(|until| Instant::now() + POLL_INTERVAL > until) {
            let text = format!("timed out waiting for the answer to question {number} of job {id}");
            output::print_stderr(&format!(
                "rialto: {}; the question stays open",
                escape_line(&text)
            ));
            return Ok(Exit::TimedOut);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Makes a call that has one effect, however often it is sent.
async fn once<T>(
    call: impl AsyncFn(&str) -> Result<Answer<T>, CallError>,
) -> Result<Answer<T>, CallError> {
    let key = OsRandom.new_uuid().to_string();
    RetryPolicy::default().call(async || call(&key).await).await
}

fn worker_error(error: CallError, id: &str) -> CliError {
    let next = format!("`rialto job show {id}` shows its state");
    job_error(error, HINT_WORKED).with_hint_on(Exit::Conflict, next)
}

/// How far a job is, on one line.
pub fn describe_progress(job: &JobView) -> Option<String> {
    let progress = job.progress.as_ref()?;
    let percent = progress.fraction.map(|fraction| format!("{} %", (fraction * 100.0).round()));
    let known: Vec<String> = [percent, progress.text.clone()].into_iter().flatten().collect();
    Some(known.join(", ")).filter(|text| !text.is_empty())
}

/// The open question, and how to answer it.
pub fn describe_question(job: &JobView) -> Option<String> {
    let question = job.question.as_ref()?;
    if question.auth {
        return Some(format!("asks you to sign in: {}", question.text));
    }
    Some(format!("asks: {} (`rialto job answer {} TEXT`)", question.text, job.id))
}

/// An answered question, on one line.
pub fn describe_answered(asked: &AskedView) -> String {
    let answer = asked.answer.as_deref().map_or("no answer", RawValue::get);
    format!("{} -> {}", asked.text, shorten(answer, SHOWN_MAX))
}

/// A part, on one line.
pub fn describe_part(part: &RawValue) -> String {
    shorten(part.get(), SHOWN_MAX)
}
