//! `send_message`: writes to an agent, or answers what stands at a position of the caller's inbox.

use std::sync::Arc;

use rialto_core::alias::Digest;
use rialto_core::command::{AnswerQuestion, Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::question_view::check_answer;
use rialto_protocols::kit::ijson::{self, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;

use super::inbox_text::InboxItem;
use super::names::{address_of, find_agent};
use super::repetition::Action;
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::mcp::wire::result::json_string;
use crate::v1::auth::AgentCaller;
use crate::v1::messages::{SentMessage, store_message};

const NEXT_OF_REPETITION: &str = "The same message was sent less than 2 minutes ago, so it was not sent again. To send it twice, \
     give each its own idempotency_key.";

/// What the text is for.
enum Addressee {
    Agent(AgentId),
    /// A worker that asked the caller a question about its job.
    Question {
        job: Arc<Job>,
        number: u32,
        worker: AgentId,
    },
}

pub async fn call(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let text = arguments.text("text").unwrap_or_default().to_owned();
    let (to, reply_to) = (arguments.text("to"), arguments.integer("reply_to"));
    let engine = &call.context.engine;
    let addressee = match (to, reply_to) {
        (Some(to), None) => Addressee::Agent(find_agent(engine, to)?),
        (None, Some(position)) => find_addressee(&call.context, by.id, position).await?,
        (Some(_), Some(_)) => {
            return Err(ToolError::malformed("/reply_to", "must be left out if to is given"));
        }
        (None, None) => return Err(ToolError::malformed("/to", "is missing; or give reply_to")),
    };
    let key = arguments.text("idempotency_key").map(str::to_owned);
    let is_keyed = key.is_some();
    let context = call.context.clone();
    let sent = detached(async move {
        match addressee {
            Addressee::Agent(to) => send(&context, by, to, &text, reply_to, key).await,
            Addressee::Question { job, number, worker } => {
                answer_question(&context, by, &job, number, &text).await?;
                // The answer is a notice of the worker, and not a message.
                let position = context.engine.with_world(|world| world.inbox(worker).head);
                Ok((worker, SentMessage { position, repeated: false }))
            }
        }
    });
    let (to, SentMessage { position, repeated }) = sent.await?;
    let output = ObjectWriter::new()
        .text("to", &engine.with_world(|world| address_of(world, to)))
        .integer("position", position.cast_signed());
    let output = match (repeated, is_keyed) {
        (false, _) => output,
        (true, true) => output.flag("repeated", true),
        (true, false) => output.flag("repeated", true).text("next", NEXT_OF_REPETITION),
    };
    Ok(ToolOutput::new(output.finish()))
}

/// The author of what stands at a position of the caller's inbox.
async fn find_addressee(
    context: &HubContext,
    by: AgentId,
    position: u64,
) -> Result<Addressee, ToolError> {
    let before = position.saturating_sub(1);
    let found = InboxItem::load_after(&context.engine, by, before, 1).await?;
    let item = found.into_iter().find(|item| item.notice.position == position);
    let none = |what: String| ToolError::of("not_found", what).with_field("/reply_to");
    let item =
        item.ok_or_else(|| none(format!("your inbox has nothing at position {position}")))?;
    if let Some((job, number)) = item.asked_question()
        && let Some(worker) = job.worker()
    {
        return Ok(Addressee::Question { job: job.clone(), number, worker });
    }
    let from = item.from().map(Addressee::Agent);
    from.ok_or_else(|| none(format!("nobody here can be answered at position {position}")))
}

async fn send(
    context: &HubContext,
    by: AgentCaller,
    to: AgentId,
    text: &str,
    reply_to: Option<u64>,
    key: Option<String>,
) -> Result<(AgentId, SentMessage), ToolError> {
    let reply_to = reply_to.unwrap_or(0).to_be_bytes();
    let content = Digest::of(&[b"message", &to.0.to_be_bytes(), &reply_to, text.as_bytes()]);
    let action = Action { by: by.id, tool: "send_message".to_owned(), content, key };
    let once = action.idempotency(context).await;
    let by = AgentCaller { once: Some(once.id), ..by };
    let sent = store_message(context, by, to, json_string(text)).await?;
    Ok((to, sent))
}

/// Answers a worker's question, so that its job goes on.
async fn answer_question(
    context: &HubContext,
    by: AgentCaller,
    job: &Job,
    number: u32,
    text: &str,
) -> Result<(), ToolError> {
    let question = (1..).zip(&job.questions).find(|(asked, _)| *asked == number);
    let wants_object = question.is_some_and(|(_, question)| question.schema.is_some());
    let is_object = || {
        let json = ijson::read(text.as_bytes());
        json.is_ok_and(|json| matches!(json.value(), JsonValue::Object(_)))
    };
    let input = match wants_object && is_object() {
        true => text.to_owned(),
        false => ObjectWriter::new().text("text", text).finish(),
    };
    check_answer(job, Some(number), &input).await?;
    let answer =
        AnswerQuestion { job: JobRef::Id(job.id), by: by.id, question: Some(number), input };
    context.engine.run(Command::AnswerQuestion(Box::new(answer))).await?;
    Ok(())
}
