//! Exit codes, the same for every command.

use rialto_client::CallError;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Auth = 4,
    Conflict = 5,
    RateLimited = 6,
    Unreachable = 7,
    TimedOut = 8,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&CallError> for Exit {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Refused { status, .. } => match status {
                400 | 415 | 422 => Self::Usage,
                401 | 403 => Self::Auth,
                404 => Self::NotFound,
                409 => Self::Conflict,
                429 => Self::RateLimited,
                _ => Self::Failed,
            },
            CallError::Unreachable { .. } => Self::Unreachable,
            CallError::TimedOut { .. } => Self::TimedOut,
            CallError::Unreadable(_) => Self::Failed,
        }
    }
}
