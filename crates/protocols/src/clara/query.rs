//! The query strings of the other operations: processes, and messages to assign.

use super::failure::Failure;
use crate::kit::ans104::ItemId;
use crate::kit::query::Query;

/// `assign`: a message is to be assigned to a process again. `base-layer` and `exclude` are not
/// read, because the assignment has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignQuery {
    /// The process.
    pub process: ItemId,
    /// The message.
    pub message: ItemId,
}

/// The process of a result or a dry-run request.
pub fn read_process(raw: &str) -> Result<ItemId, Failure> {
    process_of(&Query::read(raw)?)
}

/// The assignment that a request to the message unit asks for, if any.
pub fn read_assign(raw: &str) -> Result<Option<AssignQuery>, Failure> {
    let query = Query::read(raw)?;
    let Some(message) = query.text("assign") else { return Ok(None) };
    let message = ItemId::read(message).ok_or_else(Failure::unknown_message)?;
    Ok(Some(AssignQuery { process: process_of(&query)?, message }))
}

fn process_of(query: &Query) -> Result<ItemId, Failure> {
    let given = query.text("process-id");
    let given = given.ok_or_else(|| Failure::bad_request("process-id is required"))?;
    ItemId::read(given).ok_or_else(Failure::unknown_process)
}
