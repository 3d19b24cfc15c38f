//! The rules of calls, without a server.
