//! `hire`: has a skill done by an agent, and pays for it.

use std::time::Duration;

use rialto_protocols::adapter::open_job::{OpenedJob, WorkerChoice};
use rialto_protocols::kit::name::check_name;

use super::hiring::{Hire, Waited, open, wait_for};
use super::job_view::{JobView, ended_error};
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, names, tasks};
use crate::v1::jobs::open::{BUDGET_DECIMALS, SKILL_MAX};

/// How long a call waits, unless it says otherwise.
pub const WAIT_SECONDS: u64 = 25;
/// What a repetition is told.
const REPEATED: &str = "this is the job of the same call less than 2 minutes ago, and it is paid once; to have it \
     done again, pass another idempotency_key";

pub async fn call(mut call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let wait = wait_of(&arguments, WAIT_SECONDS);
    let hire = read(&call, &arguments)?;
    let (by_offers, keyed) = (hire.choice == WorkerChoice::Offers, hire.key.is_some());
    let opened = open(&call.context, by, hire).await?;
    // Offers come later, and the caller chooses among them.
    let wait = if by_offers { Duration::ZERO } else { wait };
    let next = (opened.repeated && !keyed).then(|| REPEATED.to_owned());
    answer(&mut call, opened, wait, next).await
}

/// Waits for a job that was opened or assigned, and shows it.
pub async fn answer(
    call: &mut ToolCall,
    opened: OpenedJob,
    wait: Duration,
    next: Option<String>,
) -> ToolResult {
    let repeated = opened.repeated;
    let waited = wait_for(call, &opened, wait).await?;
    call.ensure_still_valid().map_err(|error| {
        let what = format!("the key was revoked meanwhile; job {} goes on", opened.job.uuid);
        ToolError::of(error.code, what)
    })?;
    match waited {
        Waited::Task(job) => Ok(ToolOutput::result(tasks::created(&job))),
        Waited::Job(job) => match ended_error(&job, repeated) {
            Some(error) => Err(error),
            None => {
                let view = JobView { repeated, next, ..JobView::default() };
                Ok(view.write(&call.context, &job, call.agent()?))
            }
        },
    }
}

/// `wait_seconds` of a call.
pub fn wait_of(arguments: &Arguments, default: u64) -> Duration {
    Duration::from_secs(arguments.integer("wait_seconds").unwrap_or(default))
}

fn read(call: &ToolCall, arguments: &Arguments) -> Result<Hire, ToolError> {
    let skill = arguments.text("skill").unwrap_or_default();
    if let Err(bad) = check_name(skill, SKILL_MAX) {
        return Err(ToolError::malformed("/skill", bad.to_string()));
    }
    let budget = arguments.credits("budget").unwrap_or_default();
    if budget.floor(BUDGET_DECIMALS) != budget {
        let what = format!("has more than {BUDGET_DECIMALS} decimals");
        return Err(ToolError::malformed("/budget", what));
    }
    let choice = match arguments.text("select") {
        Some("cheapest") => WorkerChoice::Cheapest,
        Some("offers") => WorkerChoice::Offers,
        _ => WorkerChoice::Best,
    };
    let named = arguments.text("agent");
    if named.is_some() && choice != WorkerChoice::Best {
        return Err(ToolError::malformed("/select", "must be left out if agent names one"));
    }
    let find = |name| names::find_agent(&call.context.engine, name);
    let worker = named.map(find).transpose().map_err(|error| error.with_field("/agent"))?;
    let key = arguments.text("idempotency_key").map(str::to_owned);
    if key.as_ref().is_some_and(String::is_empty) {
        return Err(ToolError::malformed("/idempotency_key", "must not be empty"));
    }
    Ok(Hire {
        tool: "hire".to_owned(),
        skill: skill.to_owned(),
        input: arguments.raw("input").unwrap_or("{}").to_owned(),
        budget,
        worker,
        choice,
        deadline_seconds: arguments.integer("deadline_seconds"),
        key,
    })
}
