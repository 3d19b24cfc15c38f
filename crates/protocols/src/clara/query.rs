//! The query strings of the other operations: processes, and messages to assign.

use super::failure::Failure;
use crate::kit::ans104::Id;
use crate::kit::query::Query;

/// `assign`: a message is to be assigned to a process again. `base-layer` and `exclude` are not
/// read, because the assignment has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assign {
    /// The process.
    pub process: Id,
    /// The message.
    pub message: Id,
}

/// The process of a result or a dry-run request.
pub fn process(raw: &str) -> Result<Id, Failure> {
    process_of(&Query::read(raw)?)
}

/// The assignment that a request to the message unit asks for, if any.
pub fn assign(raw: &str) -> Result<Option<Assign>, Failure> {
    let query = Query::read(raw)?;
    let Some(message) = query.text("assign") else { return Ok(None) };
    let message = Id::read(message).ok_or_else(Failure::unknown_message)?;
    Ok(Some(Assign { process: process_of(&query)?, message }))
}

fn process_of(query: &Query) -> Result<Id, Failure> {
    let given = query.text("process-id");
    let given = given.ok_or_else(|| Failure::bad_request("process-id is required"))?;
    Id::read(given).ok_or_else(Failure::unknown_process)
}
