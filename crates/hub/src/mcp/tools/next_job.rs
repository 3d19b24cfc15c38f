//! `next_job`: hands over the oldest job that the caller does not have in hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::world::World;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::open_job::skill_name;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use uuid::Uuid;

use super::names::address_of;
use super::part::{Part, cut_part, is_long};
use super::stranger_text::is_plain_name;
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::v1::wait::wait_until;
use crate::v1::work;

/// Seconds to wait, unless the caller says otherwise.
const WAIT_DEFAULT: u64 = 25;
/// Decimals that an amount has at least.
const DECIMALS: usize = 2;
const NEXT_WITH_JOB: &str = "Do the work, then call submit_result (or decline_job) with job_id and epoch before the deadline.";
const NEXT_WITH_PART: &str = "The input is long: get the rest with get_job, part input and from = to of this part. Then do the work \
     and call submit_result (or decline_job) with job_id and epoch before the deadline.";
const NEXT_WITHOUT: &str = "No job now. Call next_job again to wait for one.";

pub async fn call(call: ToolCall, arguments: Arguments) -> ToolResult {
    let id = call.agent()?;
    let except = read_except(&arguments)?;
    let wait = Duration::from_secs(arguments.integer("wait_seconds").unwrap_or(WAIT_DEFAULT));
    let engine = &call.context.engine;
    let look = || engine.with_world(|world| find_oldest(world, id, &except));
    let found = wait_until(&call.context, id, wait, look).await?;
    call.ensure_still_valid()?;
    let context = call.context.clone();
    let taken = detached(async move { hand_over(&context, id, found).await });
    match taken.await? {
        Some(job) => {
            let more = engine.with_world(|world| {
                let mut others = work::assigned_jobs(world, id);
                others.any(|other| other.id != job.id && !except.contains(&other.uuid))
            });
            Ok(show(&call.context, &job, more))
        }
        None => {
            let output = ObjectWriter::new().flag("more", false).text("next", NEXT_WITHOUT);
            Ok(ToolOutput::new(output.finish()))
        }
    }
}

/// The jobs that the caller has in hand.
fn read_except(arguments: &Arguments) -> Result<BTreeSet<Uuid>, ToolError> {
    let ids = arguments.list("except").unwrap_or_default();
    let read = |(at, id): (usize, &str)| {
        let id = id.parse::<uuid::fmt::Hyphenated>().map(uuid::fmt::Hyphenated::into_uuid);
        id.map_err(|_| {
            ToolError::malformed(format!("/except/{at}"), "must be a job_id of next_job")
        })
    };
    ids.into_iter().enumerate().map(read).collect()
}

fn find_oldest(world: &World, agent: AgentId, except: &BTreeSet<Uuid>) -> Option<Arc<Job>> {
    work::assigned_jobs(world, agent).find(|job| !except.contains(&job.uuid)).cloned()
}

/// The same job, marked as read by its worker; `None` if it was taken back meanwhile.
async fn hand_over(
    context: &HubContext,
    agent: AgentId,
    found: Option<Arc<Job>>,
) -> Result<Option<Arc<Job>>, ToolError> {
    let jobs = found.into_iter().collect();
    let given = work::mark_handed_over(context, agent, jobs).await?;
    Ok(given.into_iter().find(|job| job.worker() == Some(agent) && job.state.is_assigned()))
}

fn show(context: &HubContext, job: &Job, more: bool) -> ToolOutput {
    let (skill, requester) = context.engine.with_world(|world| {
        let requester = match job.request.requester {
            Requester::Agent(agent) => Some(address_of(world, agent)),
            Requester::Guest(_) => None,
        };
        (skill_name(world, job), requester)
    });
    let shown = ObjectWriter::new()
        .uuid("job_id", job.uuid)
        .integer("epoch", i64::from(job.epoch))
        .text("skill", &skill);
    let input = &job.request.input;
    let (shown, pointer, next) = if is_long(input) {
        let part = cut_part(input, 0).write(Part::Input);
        (shown.raw("part", &part), "/job/part/text", NEXT_WITH_PART)
    } else {
        (shown.raw("input", input), "/job/input", NEXT_WITH_JOB)
    };
    let turn = job.assignment;
    let shown = shown
        .maybe_text("requester", requester.as_deref())
        .maybe_text("price", turn.map(|turn| turn.price.to_text(DECIMALS)).as_deref())
        .text(
            "deadline",
            &rfc3339::format_millis(
                turn.map_or(job.request.deadline, |turn| turn.until.min(job.request.deadline)),
            ),
        );
    let output =
        ObjectWriter::new().raw("job", &shown.finish()).flag("more", more).text("next", next);
    let mut pointers = vec![pointer];
    if !is_plain_name(&skill) {
        pointers.insert(0, "/job/skill");
    }
    ToolOutput::new(output.finish()).untrusted(&pointers)
}
