//! What a call of a skill answers, once its job has ended or the caller waits no longer.

use rialto_core::job::{Job, State};
use rialto_core::world::World;
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;

use super::blocks::are_blocks;
use super::schema::OutputForm;
use crate::mcp::tools::ToolError;
use crate::mcp::tools::job_view::{DECIMALS, ended_error, paid_of};
use crate::mcp::tools::stranger_text::cut;
use crate::mcp::tools::waiting::shown_state;
use crate::mcp::wire::result::{ResultObject, as_text, json_array, text_block};

/// The longest text of a failure, in characters.
const FAILURE_MAX: usize = 2_000;

/// What a repetition of a failed call is told.
const REPEATED: &str = "; this is the job of the same call less than 2 minutes ago, so change an argument or \
     call again after that time";

/// The output schema of the skill under which its worker did a job, as the worker registered it.
pub fn output_schema(world: &World, job: &Job) -> String {
    let worker = job.worker().and_then(|worker| world.agent(worker));
    let skill = worker.and_then(|worker| worker.skill_for(job));
    skill.map(|skill| skill.output.clone()).unwrap_or_default()
}

/// The result of a call that opened this job. `is_repeated` says that an earlier call did.
pub fn of_job(job: &Job, output: &OutputForm, is_repeated: bool) -> ResultObject {
    let result = match job.state {
        State::Completed => completed(job, output),
        State::Failed => failed(job, is_repeated),
        _ => not_completed(job, is_repeated).into_result(),
    };
    result.meta("rialto/job", job_meta(job, is_repeated))
}

/// The names by which a program recognises the job.
fn job_meta(job: &Job, is_repeated: bool) -> String {
    let meta = ObjectWriter::new()
        .uuid("job_id", job.uuid)
        .text("state", shown_state(job))
        .text("paid", &paid_of(job).to_text(DECIMALS));
    if is_repeated { meta.flag("repeated", true).finish() } else { meta.finish() }
}

/// The output as the agent delivered it, if it is what the agent's own schema says.
fn completed(job: &Job, form: &OutputForm) -> ResultObject {
    let text = job.result.as_ref().and_then(|result| result.output.as_deref()).unwrap_or("{}");
    let bad_output = || {
        let (id, paid) = (job.uuid, paid_of(job).to_text(DECIMALS));
        let what = format!(
            "job {id} completed and {paid} was paid, but its output does not match the agent's own \
             schema"
        );
        ToolError::of("bad_output", what).into_result()
    };
    let Ok(json) = ijson::read(text.as_bytes()) else { return bad_output() };
    if form.schema().is_some_and(|schema| schema.check_json(&json).is_err()) {
        return bad_output();
    }
    let result = match form.is_textual() {
        true => match textual(&json) {
            Some(content) => ResultObject::default().raw("content", content),
            None => return bad_output(),
        },
        false => {
            let result = ResultObject::default().raw("content", json_array([text_block(text)]));
            match json.value() {
                JsonValue::Object(_) => result.raw("structuredContent", text),
                _ => result,
            }
        }
    };
    result.flag("isError", false).meta("rialto/untrusted", "true")
}

/// The blocks of a tool of another MCP server.
fn textual(output: &Json<'_>) -> Option<String> {
    match output.get("content") {
        Some(blocks) => are_blocks(blocks).then(|| blocks.raw().to_owned()),
        None => Some(json_array([text_block(as_text(output.get("text"))?)])),
    }
}

/// The worker's text alone, as its own tool would give it; without one, what the hub knows.
fn failed(job: &Job, is_repeated: bool) -> ResultObject {
    let text = job.result.as_ref().and_then(|result| result.text.as_deref());
    match text.filter(|text| !text.is_empty()) {
        Some(text) => ResultObject::default()
            .raw("content", json_array([text_block(cut(text, FAILURE_MAX))]))
            .flag("isError", true)
            .meta("rialto/untrusted", "true"),
        None => not_completed(job, is_repeated).into_result(),
    }
}

/// Why there is no output, in the hub's words.
fn not_completed(job: &Job, is_repeated: bool) -> ToolError {
    if let Some(error) = ended_error(job, false) {
        return if is_repeated { error.with_advice(REPEATED) } else { error };
    }
    let (id, state) = (job.uuid, shown_state(job));
    let what = format!("job {id} is {state} and goes on");
    let fix = format!(r#"call get_job with {{"job_id":"{id}","wait_seconds":50}}"#);
    ToolError { retryable: true, ..ToolError::new("not_finished", what, fix) }
}
