//! `rialto job post`: posts a job.

use std::time::Duration;

use rialto_client::{CallError, RetryPolicy};
use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_engine::random::{OsRandom, RandomSource};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::follow::{JobWait, Progress};
use super::job_error;
use crate::commands::agent_names::resolve_agent;
use crate::commands::time::{Deadline, now, parse_duration, to_duration};
use crate::commands::v1::{Amount, JobView, NewJob};
use crate::commands::{
    Answer, CliError, CliResult, Exit, HubOptions, V1, escape_line, input, output,
};

/// Decimals of a budget.
const DECIMALS: usize = 2;

#[derive(clap::Args)]
pub struct Args {
    /// Skill to hire
    #[arg(long, value_name = "NAME")]
    skill: String,
    /// Input of the job: JSON text, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    input: String,
    /// Maximum price, like 0.10
    #[arg(long, value_name = "CREDITS", value_parser = budget, allow_negative_numbers = true)]
    budget: Credits,
    /// Agent to hire, by any of its names [default: the hub chooses]
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// Wait for the result and print it
    #[arg(long)]
    wait: bool,
    /// Wait, and print progress on standard error
    #[arg(long)]
    watch: bool,
    /// How long to retry and wait; exit code 8 on timeout
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    timeout: Millis,
    /// Deadline: a duration like 10m, or a time like 2026-02-11T14:15:09Z
    #[arg(long, value_name = "WHEN", value_parser = Deadline::read)]
    deadline: Option<Deadline>,
    /// Your own id of the job, a UUID; posting the same id again does not post a second job
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    /// How to choose a worker; with `offers` you accept one of the offers
    #[arg(long, value_name = "HOW", value_parser = ["best", "cheapest", "offers"], conflicts_with = "to")]
    select: Option<String>,
    /// URL to which the hub posts the end of the job
    #[arg(long, value_name = "URL")]
    callback: Option<String>,
}

pub async fn run(options: &HubOptions, args: &Args) -> CliResult {
    let input = input::read_json("--input", &args.input)?;
    let id = args.id.unwrap_or_else(|| OsRandom.new_uuid());
    let to = match &args.to {
        Some(name) => Some(resolve_agent(options, &options.client()?.0, name).await?),
        None => None,
    };
    let deadline = args.deadline.map(|deadline| deadline.text(now()));
    let new_job = NewJob {
        id,
        skill: &args.skill,
        input: &input,
        budget: Amount(args.budget),
        to: to.as_deref(),
        select: args.select.as_deref(),
        callback: args.callback.as_deref(),
        deadline: deadline.as_deref(),
    };
    let (api, _) = options.client_or_register().await?;
    let (start, time) = (Instant::now(), to_duration(args.timeout));
    let answer = match post(&api, &new_job, start + time).await {
        Ok(answer) => answer,
        Err(PostError { error, time_is_over }) => {
            let cli_error = post_error(error, id, deadline.as_deref());
            let cli_error = with_name(cli_error, args.to.as_deref());
            return Err(if time_is_over { with_timeout_hint(cli_error, time) } else { cli_error });
        }
    };
    let job = answer.parse()?;
    if args.wait || args.watch {
        let progress = args.watch.then(Progress::new);
        let until = Some(start + time);
        let wait = JobWait { id: &job.id, until, progress, hub_is_known: true, told_question: 0 };
        return wait.run(options, &api).await;
    }
    Ok(output::print(options.json, answer.text, || {
        escape_line(&format!("{} {}", job.id, job.state))
    }))
}

/// Why a job was not posted.
struct PostError {
    error: CallError,
    /// It may still succeed, but there is no time for another attempt.
    time_is_over: bool,
}

/// Posts the job once, however often it is sent: the id stays the same. Temporary errors are
/// retried until the time limit; an unreachable hub only a few times.
async fn post(api: &V1, job: &NewJob<'_>, until: Instant) -> Result<Answer<JobView>, PostError> {
    let retry = RetryPolicy::default();
    let mut tries = 0;
    loop {
        let error = match timeout_at(until, api.post_job(job)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                let error = CallError::TimedOut { url: api.0.base().to_owned() };
                return Err(PostError { error, time_is_over: true });
            }
        };
        tries += 1;
        let has_answered = matches!(error, CallError::Refused { .. });
        let pause = retry.delay_after(&error, tries);
        let Some(pause) = pause.filter(|_| has_answered || tries < retry.max_attempts) else {
            return Err(PostError { error, time_is_over: false });
        };
        if Instant::now() + pause >= until {
            return Err(PostError { time_is_over: has_answered, error });
        }
        let seconds = pause.as_secs_f32().ceil();
        output::print_stderr(&escape_line(&format!("rialto: {error}; retrying in {seconds} s")));
        sleep(pause).await;
    }
}

/// An error about the agent that was named, with its name.
fn with_name(cli_error: CliError, to: Option<&str>) -> CliError {
    match to {
        Some(to) => {
            let named = format!("agent {}", escape_line(to));
            let message = cli_error.message.replacen("the agent", &named, 1);
            CliError { message, ..cli_error }
        }
        None => cli_error,
    }
}

/// Adds a hint for an error that ran out of time for a retry.
fn with_timeout_hint(cli_error: CliError, time: Duration) -> CliError {
    let message =
        format!("{}; no further attempt within {} s", cli_error.message, time.as_secs_f32());
    let longer = "allow more time with --timeout".to_owned();
    let next = cli_error.next.map_or(longer.clone(), |next| format!("{next}; {longer}"));
    CliError { exit: Exit::TimedOut, message, next: Some(next), ..cli_error }
}

/// The error for a failed post. If the answer was lost, the job may have been posted.
fn post_error(error: CallError, id: Uuid, deadline: Option<&str>) -> CliError {
    let may_be_there = error.min_retry_delay().is_some();
    let cli_error = job_error(error, "`rialto agent search` lists agents")
        .with_hint_on(Exit::Usage, "write it like `rialto job post --skill shout --input '{\"text\":\"hello\"}' --budget 0.10 --deadline 10m`");
    if !may_be_there {
        return cli_error;
    }
    // A relative deadline would be another time on a retry, and so another job.
    let by = deadline.map(|at| format!(" and --deadline {at}")).unwrap_or_default();
    let once = format!("run the same command with --id {id}{by}: the job is posted only once");
    let next = cli_error.next.map_or(once.clone(), |next| format!("{next}; {once}"));
    CliError { next: Some(next), ..cli_error }
}

fn budget(text: &str) -> Result<Credits, String> {
    Credits::parse(text, DECIMALS).map_err(|why| format!("the budget {why}: write it like 0.10"))
}
