//! The cursor of the caller's own collaborations, as the text that clients send back.

use rialto_core::id::JobId;

use super::state::Role;

/// Where a page begins: which list, and the position in it. A list is read to its end before the
/// next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollaborationCursor {
    /// Jobs assigned to the caller, after this priority and job.
    InHand(u8, JobId),
    /// Jobs that the caller worked on, from this job on; `None` starts at the newest.
    Worked(Option<JobId>),
    /// Jobs that the caller requested, from this job on; `None` starts at the newest.
    Asked(Option<JobId>),
}

impl CollaborationCursor {
    /// The cursor as text.
    pub fn write(self) -> String {
        let from = |job: Option<JobId>| job.map_or_else(String::new, |job| job.to_string());
        match self {
            Self::InHand(priority, job) => format!("w{priority}.{job}"),
            Self::Worked(job) => format!("d{}", from(job)),
            Self::Asked(job) => format!("a{}", from(job)),
        }
    }

    /// Reads a cursor; `None` if the text is not one.
    pub fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        let job = |text: &str| match text {
            "" => Some(None),
            digits => digits.parse().ok().map(|id| Some(JobId(id))),
        };
        match kind {
            "w" => {
                let (priority, id) = rest.split_once('.')?;
                Some(Self::InHand(priority.parse().ok()?, JobId(id.parse().ok()?)))
            }
            "d" => job(rest).map(Self::Worked),
            "a" => job(rest).map(Self::Asked),
            _ => None,
        }
    }

    /// The list that follows this one, when the caller asked for both roles.
    pub fn next_list(self, role: Option<Role>) -> Option<Self> {
        match self {
            Self::InHand(..) => Some(Self::Worked(None)),
            Self::Worked(_) if role.is_none() => Some(Self::Asked(None)),
            Self::Worked(_) | Self::Asked(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for at in [
            CollaborationCursor::InHand(3, JobId(9)),
            CollaborationCursor::Worked(None),
            CollaborationCursor::Worked(Some(JobId(4))),
            CollaborationCursor::Asked(None),
            CollaborationCursor::Asked(Some(JobId(77))),
        ] {
            assert_eq!(CollaborationCursor::read(&at.write()), Some(at));
        }
        for wrong in ["", "x", "w", "w3", "w3.x", "dx", "a-1", "\u{e9}"] {
            assert_eq!(CollaborationCursor::read(wrong), None, "{wrong}");
        }
    }
}
