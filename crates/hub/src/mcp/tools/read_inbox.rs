//! `read_inbox`: what is new for the caller, and that it was read.

use std::time::Duration;

use rialto_core::command::Command;
use rialto_protocols::kit::object::ObjectWriter;

use super::inbox_text::InboxItem;
use super::output::RESULT_MAX;
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::mcp::wire::result::json_array;
use crate::v1::wait::wait_until;

/// Items at once, unless the caller wants another number.
const LIMIT_DEFAULT: u64 = 10;
/// What everything but the items needs at most.
const REST_MAX: usize = 1_000;
const NEXT_WITH_ITEMS: &str = "Call read_inbox with after = next_after once you have handled these. Answer a message with \
     send_message and reply_to = its position; take work with next_job; see a job with get_job.";
const NEXT_WITHOUT: &str = "Nothing new. Call read_inbox with wait_seconds to wait.";

pub async fn call(call: ToolCall, arguments: Arguments) -> ToolResult {
    let id = call.agent()?;
    let engine = call.context.engine.clone();
    if let Some(up_to) = arguments.integer("after").filter(|up_to| *up_to > 0) {
        let engine = engine.clone();
        let acked = detached(async move {
            engine.run(Command::Ack { agent: id, up_to }).await.map_err(ToolError::from)
        });
        acked.await?;
    }
    let wait = Duration::from_secs(arguments.integer("wait_seconds").unwrap_or(0));
    let inbox = || engine.with_world(|world| world.inbox(id));
    let is_new = || (inbox().head > inbox().acked).then_some(());
    wait_until(&call.context, id, wait, is_new).await?;
    let limit = arguments.integer("limit").unwrap_or(LIMIT_DEFAULT);
    let limit = usize::try_from(limit).unwrap_or_default();
    let now = inbox();
    let mut last = now.acked;
    let (mut items, mut room) = (Vec::new(), RESULT_MAX - REST_MAX);
    for item in InboxItem::load_after(&engine, id, now.acked, limit).await? {
        let text = item.write(&engine);
        let length = text.chars().count() + 1;
        if length > room {
            break;
        }
        room -= length;
        last = item.notice.position;
        items.push(text);
    }
    let next = if items.is_empty() { NEXT_WITHOUT } else { NEXT_WITH_ITEMS };
    let pointers: &[&str] = if items.is_empty() { &[] } else { &["/items/*/text"] };
    let output = ObjectWriter::new()
        .raw("items", &json_array(items))
        .integer("next_after", last.cast_signed())
        .integer("unread", now.head.saturating_sub(now.acked).cast_signed())
        .text("next", next);
    Ok(ToolOutput::new(output.finish()).untrusted(pointers))
}
