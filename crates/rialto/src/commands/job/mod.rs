//! `rialto job`: post jobs, work on them and follow them.

mod dialogue;
mod follow;
mod logs;
mod post;
mod trace;
mod work;

use clap::Subcommand;
use rialto_client::CallError;
use rialto_core::time::Millis;
use rialto_protocols::kit::rfc3339;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::agent_names::AgentNameCache;
use super::output::{self, pretty};
use super::time::{parse_duration, to_duration};
use super::v1::{AgentView, JobState, JobView};
use super::{Answer, CliError, CliResult, Column, Exit, HubOptions, Table, V1, escape_line};
use dialogue::{describe_answered, describe_progress, describe_question};
use follow::{JobWait, Progress};

/// Hint for a job id that was not found, for its requester,
const HINT_ASKED: &str = "`rialto job ls` lists your jobs, with --as NAME those of an agent";
/// for its worker,
const HINT_WORKED: &str =
    "`rialto job ls --worked` lists jobs you work on; --as NAME acts as an agent of this machine";
/// and for both.
const HINT_OWN: &str = "`rialto job ls` lists jobs you posted, with --worked jobs you work on, with --as NAME those of an agent";

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Post a job, and optionally wait for its result
    Post(post::Args),
    /// List your jobs
    Ls(ListArgs),
    /// Show one job with its input and output
    Show {
        /// Id of the job: the hub's, or your own
        id: String,
    },
    /// Follow a job until it ends
    Watch {
        /// Id of the job: the hub's, or your own
        id: String,
        /// How long to wait [default: until it ends]
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        timeout: Option<Millis>,
    },
    /// Answer the question of a job's worker
    Answer(dialogue::AnswerArgs),
    /// Print the log of a job that ran on this machine
    Log {
        /// Id of the job: the hub's, or your own as given with --id
        id: String,
    },
    /// List the offers for a job
    Offers {
        /// Id of the job: the hub's, or your own
        id: String,
    },
    /// Accept an offer
    Accept(work::AcceptArgs),
    /// Decline a job that was assigned to you
    Decline {
        /// The hub's id of the job
        id: String,
        /// Reason; the requester may read it
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Report what you do on a job that was assigned to you
    Report(dialogue::ReportArgs),
    /// Hand over a part of the result before its end
    Part(dialogue::PartArgs),
    /// Ask the requester of a job that was assigned to you
    Ask(dialogue::AskArgs),
    /// Submit the result of a job that was assigned to you
    Submit(work::SubmitArgs),
    /// Cancel a job you posted
    Cancel {
        /// Id of the job: the hub's, or your own
        id: String,
        /// Reason; the worker may read it
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Show how a job was translated between the two protocols, field by field
    Trace {
        /// Id of the job: the hub's (header Rialto-Job), or your own
        id: String,
    },
}

#[derive(clap::Args)]
struct ListArgs {
    /// Jobs you posted (the default)
    #[arg(long, conflicts_with = "worked")]
    asked: bool,
    /// Jobs you work on or worked on
    #[arg(long)]
    worked: bool,
    /// Live jobs, ended jobs, or both
    #[arg(long, value_name = "WHICH", value_parser = ["live", "ended", "all"], default_value = "all")]
    state: String,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    options.run(async {
        match &args.verb {
            Verb::Post(args) => post::run(options, args).await,
            Verb::Ls(args) => list(options, args).await,
            Verb::Show { id } => show(options, id).await,
            Verb::Watch { id, timeout } => watch(options, id, *timeout).await,
            Verb::Answer(args) => dialogue::answer(options, args).await,
            Verb::Log { id } => logs::print_logs(options, id).await,
            Verb::Offers { id } => work::offers(options, id).await,
            Verb::Accept(args) => work::accept(options, args).await,
            Verb::Decline { id, reason } => work::decline(options, id, reason.as_deref()).await,
            Verb::Report(args) => dialogue::report(options, args).await,
            Verb::Part(args) => dialogue::part(options, args).await,
            Verb::Ask(args) => dialogue::ask(options, args).await,
            Verb::Submit(args) => work::submit(options, args).await,
            Verb::Cancel { id, reason } => work::cancel(options, id, reason.as_deref()).await,
            Verb::Trace { id } => trace::run(options, id).await,
        }
    })
}

/// The error for a job that the hub does not show or change.
fn job_error(error: CallError, where_to_look: &str) -> CliError {
    CliError::from(error).with_hint_on(Exit::NotFound, where_to_look)
}

/// Prints a job after a command: as JSON, or its id and state.
fn print_state(options: &HubOptions, answer: &Answer<JobState>) -> CliResult {
    output::print_answer(options.json, answer, |JobState { id, state }| {
        escape_line(&format!("{id} {state}"))
    })
}

async fn watch(options: &HubOptions, id: &str, time: Option<Millis>) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let progress = Some(Progress::with_logs());
    // A time beyond the clock's range means no limit.
    let until = time.and_then(|time| Instant::now().checked_add(to_duration(time)));
    JobWait { id, until, progress, hub_is_known: false, told_question: 0 }.run(options, &api).await
}

async fn list(options: &HubOptions, args: &ListArgs) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let side = if args.worked { "worked" } else { "asked" };
    let mut jobs = Vec::new();
    for state in ["live", "ended"] {
        if [state, "all"].contains(&args.state.as_str()) {
            let more = args.limit.saturating_sub(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
            jobs.extend(api.jobs(side, state).take(more).await?);
        }
    }
    if options.json {
        return Ok(output::print_list(jobs.iter().map(|job| job.text.as_str())));
    }
    let mut table = table(if args.worked { "FOR" } else { "BY" });
    let mut names = AgentNameCache::default();
    for job in &jobs {
        let job = job.parse()?;
        let other = if args.worked {
            names.get(&api, job.requester).await.or(job.guest.clone())
        } else {
            names.get(&api, job.worker).await
        };
        push_job(&mut table, &job, other.as_deref());
    }
    Ok(table.print())
}

/// Other commands need the id, so it is never cut; `rialto job show` has the rest.
fn table(other: &'static str) -> Table {
    Table::new([
        Column::text("ID"),
        Column::text("STATE"),
        Column::flexible("SKILL"),
        Column::flexible(other).droppable(2),
        Column::number("CREDITS").droppable(3),
        Column::time("OPENED").droppable(1),
    ])
}

fn push_job(table: &mut Table, job: &JobView, other: Option<&str>) {
    let credits = [&job.paid, &job.price, &job.budget].into_iter().find_map(Option::as_deref);
    let credits = credits.map_or("", RawValue::get);
    let other = other.unwrap_or_default();
    table.push_row([&*job.id, &job.state, &job.skill, other, credits, &job.opened_at]);
}

async fn show(options: &HubOptions, id: &str) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let answer = api.job(id, None).await.map_err(|error| job_error(error, HINT_OWN))?;
    if options.json {
        return Ok(output::print_data(answer.text));
    }
    let text = describe(&api, &answer.parse()?).await;
    Ok(output::print_data(text))
}

async fn describe(api: &V1, job: &JobView) -> String {
    let mut names = AgentNameCache::default();
    let requester = names.get(api, job.requester).await.or(job.guest.clone());
    let worker = names.get(api, job.worker).await;
    let absent = describe_wait(api, job).await.unwrap_or_else(|| "none".to_owned());
    // For a cancelled job the cause only repeats the state.
    let cause = job.cause.as_deref().filter(|cause| *cause != job.state);
    let cause = cause.map(|cause| format!(": {}", escape_line(cause)));
    let mut lines = vec![
        format!("job        {} {}{}", job.id, job.state, cause.unwrap_or_default()),
        format!("skill      {}", escape_line(&job.skill)),
        format!("requester  {}", escape_line(requester.as_deref().unwrap_or("-"))),
        format!("worker     {}", escape_line(worker.as_deref().unwrap_or(&absent))),
        format!("money      {}", describe_money([&job.budget, &job.price, &job.paid])),
    ];
    let details = [
        ("opened", Some(job.opened_at.as_str())),
        ("assigned", job.assigned_at.as_deref()),
        ("deadline", job.deadline.as_deref().filter(|_| !job.has_ended())),
        ("ended", job.ended_at.as_deref()),
        ("message", job.result.as_ref().and_then(|result| result.text.as_deref())),
    ];
    for (name, text) in details.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        lines.push(format!("{name:10} {}", escape_line(text)));
    }
    let (progress, question) = (describe_progress(job), describe_question(job));
    for (name, text) in [("progress", progress), ("question", question)] {
        lines.extend(text.map(|text| format!("{name:10} {}", escape_line(&text))));
    }
    // The open question is shown above.
    let open = job.question.as_ref().map(|question| question.number);
    for asked in job.questions.iter().filter(|asked| Some(asked.number) != open) {
        lines.push(format!("asked      {}", escape_line(&describe_answered(asked))));
    }
    for part in &job.parts {
        lines.push(format!("part\n{}", pretty(part.artifact.get())));
    }
    let contents = [("input", job.input.as_deref()), ("output", job.output())];
    for (name, json) in contents.into_iter().filter_map(|(name, json)| Some((name, json?))) {
        lines.push(format!("{name}\n{}", pretty(json.get())));
    }
    lines.join("\n")
}

/// The agent that a job waits for, and why it waits.
async fn describe_wait(api: &V1, job: &JobView) -> Option<String> {
    let agent = api.agent(&job.waits_for?.to_string()).await.ok()?;
    let agent: AgentView = agent.parse().ok()?;
    let problem = agent.server.and_then(|server| server.problem);
    let why = match (agent.online, problem) {
        (true, _) => "takes no job now".to_owned(),
        (false, None) => "is offline".to_owned(),
        (false, Some(problem)) => format!("is offline: its card {}", problem.text),
    };
    Some(format!("none; waits for {}, which {why}", agent.name))
}

/// The amounts of a job that are known.
fn describe_money(amounts: [&Option<Box<RawValue>>; 3]) -> String {
    let amounts = ["budget", "price", "paid"].into_iter().zip(amounts);
    let known = amounts.filter_map(|(name, amount)| Some((name, amount.as_deref()?)));
    known.map(|(name, amount)| format!("{name} {}", amount.get())).collect::<Vec<_>>().join(", ")
}

impl JobView {
    /// Whether the job has ended.
    pub fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether it was completed.
    pub fn is_completed(&self) -> bool {
        self.state == "completed"
    }

    /// The worker's output.
    pub fn output(&self) -> Option<&RawValue> {
        self.result.as_ref()?.output.as_deref()
    }

    /// How it ended, on one line; `worker` is the name of the last worker.
    pub fn describe_end(&self, worker: Option<&str>) -> String {
        let by = worker.map(|name| format!(" by {name}")).unwrap_or_default();
        let text = self.result.as_ref().and_then(|result| result.text.as_deref());
        let line = if self.is_completed() {
            let paid = self.paid.as_deref().map_or("nothing", RawValue::get);
            format!("done{by}{}, paid {paid}", self.time_taken())
        } else if let Some(text) = text.filter(|text| text.starts_with("cancelled by ")) {
            // It names who did.
            text.to_owned()
        } else {
            let why = text.map(str::to_owned).or_else(|| self.cause.as_deref().map(cause_text));
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            format!("{}{by}{why}", self.state)
        };
        escape_line(&line)
    }

    /// The time from posting to the end.
    fn time_taken(&self) -> String {
        let at = |text: &str| rfc3339::parse(text).ok();
        let end = self.ended_at.as_deref().and_then(at);
        match end.zip(at(&self.opened_at)) {
            Some((end, start)) => {
                let tenths = end.since(start).0.max(0).unsigned_abs().div_ceil(100);
                format!(" in {}.{} s", tenths / 10, tenths % 10)
            }
            None => String::new(),
        }
    }
}

/// Text for a cause, if the worker gave none.
fn cause_text(cause: &str) -> String {
    let known = match cause {
        "no_such_skill" => "no agent has this skill",
        "budget_too_low" => "no agent accepts this budget",
        "offline" => "the worker is offline",
        "timed_out" => "the deadline passed",
        "worker_left" => "the worker unregistered",
        "cancelled" => "it was cancelled",
        "nobody_left" => "no other worker is available",
        "payment" => "it could not be paid",
        "unusable" => "the result was unusable",
        "no_answer" => "the worker's question has no answer",
        other => other,
    };
    known.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;

    fn job(more: &str) -> JobView {
        let text = format!(
            r#"{{"id":"j","protocol":"registry","foreign_id":"f","skill":"sum","requester":1,"worker":2,"epoch":1,
            "opened_at":"2026-01-01T00:00:00.000Z","deadline":"2026-01-01T00:01:00.000Z",{more}}}"#
        );
        serde_json::from_str(&text).expect("a job")
    }

    #[test]
    fn an_ending_is_told_on_one_line() {
        let ended = r#""ended_at":"2026-01-01T00:00:00.350Z""#;
        let done = job(&format!(
            r#""state":"completed","paid":0.05,{ended},"result":{{"ok":true,"output":{{"n":0.50}}}}"#
        ));
        assert_eq!(done.describe_end(Some("shout")), "done by shout in 0.4 s, paid 0.05");
        assert_eq!(done.output().expect("an output").get(), r#"{"n":0.50}"#);
        let failed = job(&format!(
            r#""state":"failed","cause":"execution",{ended},"result":{{"ok":false,"output":null,"text":"it\nbroke"}}"#
        ));
        assert_eq!(failed.describe_end(Some("shout")), "failed by shout: it\\nbroke");
        let alone = job(&format!(r#""state":"expired","cause":"timed_out",{ended}"#));
        assert_eq!(alone.describe_end(None), "expired: the deadline passed");
        let cancelled = job(
            r#""state":"cancelled","cause":"cancelled","result":{"ok":false,"text":"cancelled by requester","took_ms":0}"#,
        );
        assert_eq!(cancelled.describe_end(Some("shout")), "cancelled by requester");
        assert!(alone.has_ended() && !alone.is_completed());
        assert!(!job(r#""state":"open""#).has_ended());
    }

    #[test]
    fn jobs_fit_a_terminal_with_their_ids_whole() {
        let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        let text = format!(
            r#"{{"id":"{id}","skill":"summarize_and_translate","state":"negotiating","requester":1,"worker":2,
            "epoch":1,"budget":100.00,"opened_at":"2026-02-11T14:15:09.123Z"}}"#
        );
        let mut table = table("BY");
        push_job(
            &mut table,
            &serde_json::from_str(&text).expect("a job"),
            Some("a worker with a long name"),
        );
        assert_fits(&table, "ID STATE SKILL BY CREDITS");
        assert!(table.lines(Some(80))[1].starts_with(id));
    }
}
