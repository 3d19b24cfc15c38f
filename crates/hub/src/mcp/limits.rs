//! What the key of a caller may spend through MCP.

use rialto_core::agent::key_limits::{KeyAllowance, KeyUse};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::key_use;
use rialto_protocols::kit::object::ObjectWriter;

/// The member `limits` of `whoami`: JSON text with the limits that bind the key of this request, and
/// what is left of them today. What is not limited is left out.
pub fn write_limits(world: &World, now: Timestamp) -> String {
    let used = key_use::current().map(|used| KeyUse { by_default: true, ..used });
    // A guest has no key, and whatever its owner has.
    let Some(used) = used else { return ObjectWriter::new().raw("transfers", "true").finish() };
    let KeyAllowance { limits, left_today } = world.key_allowance(used, now);
    ObjectWriter::new()
        .maybe_text("per_job", limits.per_job.map(|most| most.to_text(2)).as_deref())
        .maybe_text("per_day", limits.per_day.map(|most| most.to_text(2)).as_deref())
        .maybe_text("left_today", left_today.map(|left| left.to_text(2)).as_deref())
        .raw("transfers", if limits.transfers { "true" } else { "false" })
        .finish()
}
