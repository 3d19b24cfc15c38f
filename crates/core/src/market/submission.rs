//! Submitting an order to a market: executed once, whatever the result.

use std::sync::Arc;

use super::{Scribe, publish};
use crate::agent::{registration, suspension};
use crate::alias::{Protocol, Target, claim};
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{Enrol, JobRef, OpenJob, ReportWork};
use crate::draft::Draft;
use crate::id::AgentId;
use crate::job::{Requester, offer, open, work};
use crate::message;
use crate::money::Credits;
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::world::World;

/// A signed order submitted to a market.
#[derive(Clone, Debug)]
pub struct Post {
    pub market: Protocol,
    /// Its unique id.
    pub id: String,
    pub deed: Deed,
    /// Writes the result.
    pub scribe: Arc<dyn Scribe>,
}

/// What an order asks for.
#[derive(Clone, Debug)]
pub enum Deed {
    Enrol(Box<Enrol>),
    Open(Box<Opening>),
    Report(Box<ReportWork>),
    Decline {
        job: JobRef,
        by: AgentId,
    },
    Offer {
        job: JobRef,
        by: AgentId,
        price: Credits,
    },
    /// Everything up to here has been read.
    Read {
        agent: AgentId,
        up_to: u64,
    },
    /// Tries queued jobs again.
    Dispatch,
    /// Only records the order.
    Nothing,
}

/// Opens a job, and registers its requester first if it is unknown.
#[derive(Clone, Debug)]
pub struct Opening {
    pub order: OpenJob,
    /// How to register the requester, if it is unknown. It then becomes the job's requester.
    pub newcomer: Option<Enrol>,
}

/// Executes an order. Every order gets a record of its result, even if it is refused.
pub fn post(world: &World, order: Post, now: Timestamp) -> (Changes, Answer) {
    let name = claim::posted(order.market, &order.id);
    let mut draft = Draft::new(world, now);
    if let Some(Target::Posting(posting)) = draft.claimed(name) {
        return (Changes::default(), Answer::Posted { posting, repeated: true });
    }
    let closes = matches!(order.deed, Deed::Offer { .. } | Deed::Decline { .. });
    let outcome = carry_out(&mut draft, order.deed);
    if outcome.is_err() {
        // An order refused half-way changes nothing.
        draft = Draft::new(world, now);
    }
    let told = (order.market, &*order.scribe);
    let posting = publish::order(&mut draft, told, &order.id, outcome.as_ref(), closes);
    draft.claim(name, Target::Posting(posting));
    draft.next.posts += 1;
    (draft.finish(), Answer::Posted { posting, repeated: false })
}

fn carry_out(draft: &mut Draft<'_>, deed: Deed) -> Result<Answer, Refusal> {
    if let Some(by) = by(&deed) {
        suspension::refuse(draft, by)?;
    }
    match deed {
        Deed::Enrol(order) => registration::enrol(draft, *order),
        Deed::Open(opening) => {
            let Opening { mut order, newcomer } = *opening;
            if let Some(newcomer) = newcomer {
                // It may have registered since it was looked up.
                let known = draft.world.agent_named(newcomer.home, &newcomer.native);
                let agent = known.map_or_else(|| registration::arrive(draft, &newcomer), Ok)?;
                order.requester = Requester::Agent(agent);
            }
            open::open(draft, order)
        }
        Deed::Report(said) => work::report(draft, *said),
        Deed::Decline { job, by } => {
            let answer = offer::pass_or_decline(draft, &job, by)?;
            open::dispatch(draft);
            Ok(answer)
        }
        Deed::Offer { job, by, price } => offer::bid(draft, &job, by, price, ""),
        Deed::Read { agent, up_to } => {
            let mailbox = draft.mailbox(agent);
            match mailbox.acked < up_to.min(mailbox.head) {
                true => Ok(message::ack(draft, agent, up_to)),
                // Another reader was faster, or there is nothing to read.
                false => Err(Refusal::NotYours),
            }
        }
        Deed::Dispatch => {
            open::dispatch(draft);
            Ok(Answer::Done)
        }
        Deed::Nothing => Ok(Answer::Done),
    }
}

/// The order's author, for orders whose rules do not check suspension themselves.
fn by(deed: &Deed) -> Option<AgentId> {
    match deed {
        Deed::Report(said) => Some(said.by),
        Deed::Decline { by, .. } | Deed::Offer { by, .. } => Some(*by),
        Deed::Read { agent, .. } => Some(*agent),
        Deed::Enrol(_) | Deed::Open(_) | Deed::Dispatch | Deed::Nothing => None,
    }
}
