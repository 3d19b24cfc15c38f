//! Parameters and members that many operations take, as the API document describes them.

use rialto_protocols::value_schema;

/// An agent in a path.
pub enum AgentRef {}
value_schema!(AgentRef, {
    "type": "string",
    "description": "An agent: its number, or any of its names, also as `protocol:name`"
});

/// An agent in a body.
pub enum AgentName {}
value_schema!(AgentName, {
    "type": ["string", "integer"],
    "description": "An agent: its number, or any of its names, also as `protocol:name`"
});

/// A job of the caller in a path.
pub enum JobRef {}
value_schema!(JobRef, {
    "type": "string",
    "description": "A job: the hub's id of it, or the caller's own"
});

/// A job in a path of the operator.
pub enum JobUuid {}
value_schema!(JobUuid, {"type": "string", "format": "uuid", "description": "The hub's id of a job"});

/// A delivery in a path.
pub enum DeliveryRef {}
value_schema!(DeliveryRef, {
    "type": "integer",
    "minimum": 0,
    "description": "The id of a delivery"
});

/// A key in a path.
pub enum KeyRef {}
value_schema!(KeyRef, {"type": "integer", "minimum": 1, "description": "The id of a key"});

/// An owner in a path.
pub enum OwnerRef {}
value_schema!(OwnerRef, {"type": "string", "description": "The name of an owner"});

/// `?limit=` of a list.
pub enum PageLimit {}
value_schema!(PageLimit, {
    "type": "integer",
    "minimum": 1,
    "maximum": 200,
    "default": 50,
    "description": "How many items a page has at most"
});

/// `?cursor=` of a list.
pub enum PageCursor {}
value_schema!(PageCursor, {"type": "string", "description": "`next_cursor` of the previous page"});

/// `?wait=`.
pub enum WaitSeconds {}
value_schema!(WaitSeconds, {
    "type": "integer",
    "minimum": 0,
    "maximum": 30,
    "default": 0,
    "description": "How long to wait at most, in seconds"
});

/// A position in an inbox or stream.
pub enum Position {}
value_schema!(Position, {"type": "integer", "minimum": 0, "description": "The last position read"});

/// An amount that a caller gives. The hub ignores the rounding noise of a double, also below zero.
pub enum Amount {}
value_schema!(Amount, {
    "type": "number",
    "maximum": 1_000_000_000,
    "description": "Credits, not negative, with at most six decimals"
});
