//! Calls a skill: hires its agent, waits for the end of the job, and answers as the tool would.

use std::time::Duration;

use rialto_core::job::Job;
use rialto_protocols::adapter::open_job::WorkerChoice;
use rialto_protocols::kit::ijson::{Json, JsonValue};

use super::AgentsCatalogue;
use super::offered_skill::OfferedSkill;
use super::result;
use super::schema::{InputForm, OutputForm, WRAPPER};
use crate::mcp::tools::hiring::{self, Hire, Waited};
use crate::mcp::tools::{ToolCall, ToolError, tasks};
use crate::mcp::wire::message::ClientRequest;
use crate::mcp::wire::result::ResultObject;

/// How long a call waits for the end of its job.
const WAIT: Duration = Duration::from_secs(50);
/// Decimals of amounts.
const DECIMALS: usize = 2;
/// Keeps calls of skills apart from calls of `hire`.
const ACTION: &str = "skill";

/// Calls a skill with these arguments.
pub async fn call(
    catalogue: &AgentsCatalogue,
    offered: OfferedSkill,
    arguments: Option<&Json<'_>>,
    request: ClientRequest,
) -> Result<ResultObject, ToolError> {
    let mut call = catalogue.hub.tool_call(request);
    let by = call.agent_caller()?;
    let max_price = catalogue.door.max_price;
    let budget = offered.budget(max_price).ok_or_else(|| too_expensive(&offered, catalogue))?;
    let skill = offered.skill();
    let (input, output) = (skill.input.clone(), skill.output.clone());
    let forms = move || (InputForm::of(&input), OutputForm::of(&output));
    let forms = tokio::task::spawn_blocking(forms).await;
    let (input, output) = forms.map_err(|_| ToolError::of("internal", "the hub failed"))?;
    let hire = Hire {
        tool: ACTION.to_owned(),
        skill: skill.name.clone(),
        input: read_input(&input, arguments)?,
        budget,
        worker: Some(offered.agent()),
        choice: WorkerChoice::Best,
        deadline_seconds: None,
        key: None,
    };
    let opened = hiring::open(&call.context, by, hire).await?;
    let waited = hiring::wait_for(&mut call, &opened, WAIT).await?;
    call.ensure_still_valid()?;
    Ok(match waited {
        Waited::Task(job) => tasks::created(&job),
        // A repetition is answered as the first call was.
        Waited::Job(job) if opened.repeated && became_task(&call, &job) => tasks::created(&job),
        Waited::Job(job) => result::of_job(&job, &output, opened.repeated),
    })
}

/// Whether a call that understands tasks got one for this job, which has ended since.
fn became_task(call: &ToolCall, job: &Job) -> bool {
    let took = job.ended_at.map(|ended_at| ended_at.since(job.request.opened_at));
    call.client.tasks && took.is_some_and(|took| took > call.context.settings.mcp.task_after)
}

fn too_expensive(offered: &OfferedSkill, catalogue: &AgentsCatalogue) -> ToolError {
    let price = offered.price().unwrap_or_default().to_text(DECIMALS);
    let most = catalogue.door.max_price.to_text(DECIMALS);
    ToolError::new(
        "over_limit",
        format!("a call costs {price} credits, and this connection pays at most {most} for one"),
        "find a cheaper agent; only the user can raise max_price in the address of this connection",
    )
}

/// The input of the job: JSON text of an object.
fn read_input(form: &InputForm, arguments: Option<&Json<'_>>) -> Result<String, ToolError> {
    let is_object = |json: &Json<'_>| matches!(json.value(), JsonValue::Object(_));
    let arguments = arguments.filter(|json| *json.value() != JsonValue::Null);
    if arguments.is_some_and(|json| !is_object(json)) {
        return Err(ToolError::malformed("", "must be an object"));
    }
    if !form.is_wrapped {
        return Ok(arguments.map_or("{}", Json::raw).to_owned());
    }
    let field = format!("/{WRAPPER}");
    let input = arguments.and_then(|json| json.get(WRAPPER));
    let input = input.ok_or_else(|| ToolError::malformed(&*field, "is missing"))?;
    match is_object(input) {
        true => Ok(input.raw().to_owned()),
        false => Err(ToolError::malformed(field, "must be an object, as the input of every job")),
    }
}

#[cfg(test)]
mod tests {
    use rialto_protocols::kit::ijson;

    use super::*;

    fn read(form: &InputForm, arguments: Option<&str>) -> Result<String, String> {
        let json = arguments.map(|text| ijson::read(text.as_bytes()).expect("JSON"));
        read_input(form, json.as_ref()).map_err(|error| error.text())
    }

    #[test]
    fn arguments_are_the_input_with_their_digits() {
        let form = InputForm::of("{}");
        assert_eq!(read(&form, Some(r#"{"n": 1.50}"#)), Ok(r#"{"n": 1.50}"#.to_owned()));
        assert_eq!(read(&form, None), Ok("{}".to_owned()));
        assert_eq!(read(&form, Some("null")), Ok("{}".to_owned()));
        let refused = read(&form, Some("[1]")).expect_err("no object");
        assert!(refused.starts_with("malformed: arguments must be an object"), "{refused}");
    }

    #[test]
    fn a_wrapped_input_is_one_argument() {
        let form = InputForm::of(r#"{"oneOf":[{"type":"string"},{"type":"object"}]}"#);
        assert_eq!(read(&form, Some(r#"{"input":{"a":1}}"#)), Ok(r#"{"a":1}"#.to_owned()));
        for arguments in [None, Some("{}"), Some(r#"{"input":"text"}"#)] {
            assert!(read(&form, arguments).is_err_and(|text| text.contains("/input")));
        }
    }
}
