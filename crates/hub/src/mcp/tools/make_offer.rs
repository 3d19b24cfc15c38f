//! `make_offer`: names the caller's price for a job whose requester collects offers.

use rialto_core::time::Millis;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;

use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::v1::jobs::offers::{self, VALID_DEFAULT};

/// Decimals that an amount has at least.
const DECIMALS: usize = 2;

pub async fn call(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let price = arguments.credits("price").unwrap_or_default();
    let seconds =
        arguments.integer("valid_seconds").and_then(|seconds| i64::try_from(seconds).ok());
    let valid_for = seconds.map_or(VALID_DEFAULT, Millis::seconds);
    let id = arguments.text("job_id").unwrap_or_default().to_owned();
    let context = call.context;
    let offered = detached(async move {
        offers::offer_price(&context, by, &id, price, valid_for).await.map_err(ToolError::from)
    });
    let job = offered.await?;
    let (_, offer) = offers::newest_offer(&job, by.id).ok_or_else(ToolError::not_found)?;
    let output = ObjectWriter::new()
        .uuid("job_id", job.uuid)
        .text("price", &offer.price.to_text(DECIMALS))
        .text("valid_until", &rfc3339::format_millis(offer.valid_until));
    Ok(ToolOutput::new(output.finish()))
}
