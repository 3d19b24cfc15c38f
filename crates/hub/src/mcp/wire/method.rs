//! Methods, and the era in which each exists.

use super::version::Era;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Initialize,
    Ping,
    Discover,
    ListTools,
    CallTool,
    ListResources,
    ListResourceTemplates,
    ReadResource,
    ListPrompts,
    GetPrompt,
    Complete,
    Listen,
    GetTask,
    UpdateTask,
    CancelTask,
}

impl Method {
    /// Every method with its name, and the only era it exists in, if there is only one.
    const ALL: [(Self, &str, Option<Era>); 15] = [
        (Self::Initialize, "initialize", Some(Era::Old)),
        (Self::Ping, "ping", Some(Era::Old)),
        (Self::Discover, "server/discover", Some(Era::New)),
        (Self::ListTools, "tools/list", None),
        (Self::CallTool, "tools/call", None),
        (Self::ListResources, "resources/list", None),
        (Self::ListResourceTemplates, "resources/templates/list", None),
        (Self::ReadResource, "resources/read", None),
        (Self::ListPrompts, "prompts/list", None),
        (Self::GetPrompt, "prompts/get", None),
        (Self::Complete, "completion/complete", None),
        (Self::Listen, "subscriptions/listen", Some(Era::New)),
        (Self::GetTask, "tasks/get", Some(Era::New)),
        (Self::UpdateTask, "tasks/update", Some(Era::New)),
        (Self::CancelTask, "tasks/cancel", Some(Era::New)),
    ];

    /// The method with this name in this era.
    pub fn parse(name: &str, era: Era) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, only)| *known == name && only.is_none_or(|only| only == era))
            .map(|(method, ..)| method)
    }

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The parameter that a request of the new era repeats in the header `Mcp-Name`.
    pub fn named_by(self) -> Option<&'static str> {
        match self {
            Self::CallTool | Self::GetPrompt => Some("name"),
            Self::ReadResource => Some("uri"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name_in_its_eras_only() {
        for (method, name, only) in Method::ALL {
            assert_eq!(method.name(), name);
            for era in [Era::Old, Era::New] {
                let exists = only.is_none_or(|only| only == era);
                assert_eq!(Method::parse(name, era), exists.then_some(method), "{name}");
            }
        }
        for name in ["", "nope", "logging/setLevel", "resources/subscribe", "TOOLS/LIST"] {
            assert_eq!(Method::parse(name, Era::Old), None, "{name}");
            assert_eq!(Method::parse(name, Era::New), None, "{name}");
        }
    }
}
