//! Pushes: what is recorded about each attempt to send a notice to a URL.

use crate::agent::{Agent, Liveness, presence};
use crate::answer::Answer;
use crate::command::PushEnd;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::NoticeId;
use crate::notice::Push;

/// Records how an attempt ended.
pub fn done(draft: &mut Draft<'_>, notice: NoticeId, ended: PushEnd) -> Answer {
    let Some(push) = draft.world.push(notice).map(|push| Push::clone(push)) else {
        return Answer::Done;
    };
    let attempts = push.attempts + 1;
    match ended {
        PushEnd::Delivered => {
            // A connection that failed is made good by the next one that does not.
            if let Some(agent) = own_endpoint(draft, &push).map(|agent| agent.id)
                && draft.desk(agent).is_some_and(|desk| desk.presence.unreachable)
            {
                presence::seen(draft, agent);
            }
            draft.put_push(notice, None);
            draft.event(Event::PushDelivered { notice });
        }
        PushEnd::Failed { why, next_try } => {
            draft.put_push(notice, Some(Push { attempts, next_try, trouble: Some(why), ..push }));
            draft.event(match next_try {
                Some(_) => Event::PushFailed { notice, attempts },
                None => Event::PushGivenUp { notice },
            });
        }
        PushEnd::Gone => {
            switch_off(draft, &push);
            let trouble = Some("the endpoint is gone".to_owned());
            draft.put_push(notice, Some(Push { attempts, next_try: None, trouble, ..push }));
            draft.event(Event::PushGivenUp { notice });
        }
    }
    Answer::Done
}

/// An endpoint that says it is gone is not called again; its agent has to come by itself.
fn switch_off(draft: &mut Draft<'_>, push: &Push) {
    let Some(agent) = own_endpoint(draft, push).cloned() else { return };
    if agent.liveness == Liveness::Reached {
        draft.event(Event::EndpointSwitchedOff { agent: agent.id });
        draft.put_agent(Agent { liveness: Liveness::Polls, ..agent });
    }
}

/// The agent, if the push went to its own endpoint; a callback may be elsewhere.
fn own_endpoint<'d>(draft: &'d Draft<'_>, push: &Push) -> Option<&'d Agent> {
    let agent = push.to.and_then(|id| draft.agent(id))?;
    let own = agent.endpoint.as_deref().is_some_and(|endpoint| push.url.starts_with(endpoint));
    own.then_some(agent)
}
