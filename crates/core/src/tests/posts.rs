//! Random market orders: every kind, by allowed and not allowed agents.

use std::sync::Arc;

use proptest::prelude::*;

use super::steps::{PRICES, Step, agent_at, job_at, pick};
use super::wishes::{Wish, wish};
use crate::command::{Actor, Command, JobRef, OfferTerms, Registration};
use crate::envelope::Envelope;
use crate::id::AgentId;
use crate::job::{Job, Selection, State};
use crate::refusal::Refusal;
use crate::testkit::market::market_order;
use crate::testkit::{HOME, TestHub, credits, registration};

/// One random order. The numbers are choices, taken modulo the available options.
#[derive(Clone, Debug)]
pub struct Posted {
    /// An id from a small pool, so that orders are submitted twice.
    id: Option<u8>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// What other protocols can do as well: a registration or a result.
    Other(Box<Step>),
    Open {
        wish: Wish,
        new_agent: Option<u8>,
    },
    Decline {
        job: u8,
        by: u8,
    },
    Offer {
        job: u8,
        by: u8,
        price: u8,
    },
    /// Every invited agent answers, one after the other.
    Answer {
        job: u8,
        price: u8,
    },
    Read {
        who: u8,
        up_to: u8,
    },
    Dispatch,
    Nothing,
}

pub fn posted(other: impl Strategy<Value = Step>) -> impl Strategy<Value = Posted> {
    let n = || any::<u8>();
    let rarely = || prop::option::weighted(0.15, any::<u8>());
    let what = prop_oneof![
        4 => other.prop_map(|step| What::Other(Box::new(step))),
        5 => (wish(), rarely()).prop_map(|(wish, new_agent)| What::Open { wish, new_agent }),
        4 => (n(), n()).prop_map(|(job, by)| What::Decline { job, by }),
        7 => (n(), n(), n()).prop_map(|(job, by, price)| What::Offer { job, by, price }),
        2 => (n(), n()).prop_map(|(job, price)| What::Answer { job, price }),
        1 => (n(), n()).prop_map(|(who, up_to)| What::Read { who, up_to }),
        1 => Just(What::Dispatch),
        1 => Just(What::Nothing),
    ];
    (rarely(), what).prop_map(|(id, what)| Posted { id, what })
}

impl Posted {
    pub fn envelope(&self, scene: &mut TestHub) -> Option<Envelope> {
        let command = self.what.command(scene)?;
        let id = match self.id {
            Some(id) => format!("again-{}", id % 4),
            None => format!("post-{}", scene.world.next.market_orders),
        };
        let new_agent = match self.what {
            What::Open { new_agent, .. } => new_agent.map(|who| newcomer(who % 4)),
            _ => None,
        };
        Some(market_order(HOME, &id, new_agent, command))
    }

    /// One order, or one for every invited agent.
    pub fn perform(&self, scene: &mut TestHub) -> Result<(), Refusal> {
        let What::Answer { job, price } = self.what else {
            let order = self.envelope(scene);
            return order.map_or(Ok(()), |order| scene.run(order).map(drop));
        };
        let Some(job) = auction_at(scene, job) else { return Ok(()) };
        for (at, by) in (price..=u8::MAX).zip(job.candidates.invited.clone()) {
            let (job, price) = (JobRef::Id(job.id), credits(pick(&PRICES, at)));
            let command = match at % 4 {
                0 => Command::Pass { job, by },
                _ => Command::Offer { job, by, price, terms: OfferTerms::Bid },
            };
            let id = format!("post-{}", scene.world.next.market_orders);
            scene.run(market_order(HOME, &id, None, command))?;
        }
        Ok(())
    }

    pub fn name(&self) -> &'static str {
        match &self.what {
            What::Other(step) if matches!(**step, Step::Enrol { .. }) => "enrol",
            What::Other(_) => "report",
            What::Open { new_agent: Some(_), .. } => "arrive",
            What::Open { new_agent: None, .. } => "open",
            What::Decline { .. } => "decline",
            What::Offer { .. } => "offer",
            What::Answer { .. } => "answer",
            What::Read { .. } => "read",
            What::Dispatch => "dispatch",
            What::Nothing => "nothing",
        }
    }
}

impl What {
    fn command(&self, scene: &mut TestHub) -> Option<Command> {
        Some(match *self {
            Self::Other(ref step) => match step.command(scene)? {
                command @ (Command::Register(_) | Command::ReportResult(_)) => command,
                _ => return None,
            },
            Self::Open { ref wish, .. } => wish.command(scene),
            Self::Decline { job, by } => {
                let job = job_at(scene, job)?;
                let by = concerned(scene, &job, by);
                Command::Pass { job: JobRef::Id(job.id), by }
            }
            Self::Offer { job, by, price } => {
                let found = (job < 230).then(|| auction_at(scene, job)).flatten();
                let job = found.or_else(|| job_at(scene, job))?;
                let by = concerned(scene, &job, by);
                Command::Offer {
                    job: JobRef::Id(job.id),
                    by,
                    price: credits(pick(&PRICES, price)),
                    terms: OfferTerms::Bid,
                }
            }
            Self::Read { who, up_to } => {
                Command::AckUnread { agent: agent_at(scene, who % 6), up_to: u64::from(up_to % 16) }
            }
            Self::Answer { .. } => return None,
            Self::Dispatch => Command::DispatchQueue,
            Self::Nothing => Command::RecordOnly,
        })
    }
}

/// An open auction, if there is one.
fn auction_at(scene: &TestHub, at: u8) -> Option<Arc<Job>> {
    let auction = |job: &&Arc<Job>| matches!(job.selection, Selection::Auction { .. });
    let open = scene.world.live_jobs().filter(|job| job.state == State::Negotiating);
    let mut open: Vec<Arc<Job>> = open.filter(auction).cloned().collect();
    open.sort_by_key(|job| job.id);
    (!open.is_empty()).then(|| open[usize::from(at) % open.len()].clone())
}

/// An agent that is not registered, the first time.
fn newcomer(who: u8) -> Registration {
    let order = registration(&format!("newcomer-{who}"), &format!("stranger-{who}"), &[]);
    Registration { actor: Actor::Owner, ..order }
}

/// Mostly the job's worker or one of its invited agents.
fn concerned(scene: &TestHub, job: &Job, by: u8) -> AgentId {
    match job.worker() {
        Some(worker) if by < 220 => worker,
        None if by < 220 && !job.candidates.invited.is_empty() => pick(&job.candidates.invited, by),
        _ => agent_at(scene, by),
    }
}
