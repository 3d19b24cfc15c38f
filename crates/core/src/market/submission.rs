//! Submitting an order to a market: executed once, whatever the result.

use super::{OrderOutcome, publish};
use crate::agent::{registration, suspension};
use crate::alias::{ClaimTarget, Protocol, claim};
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{JobRef, OpenJob, Registration, ReportResult};
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
pub struct MarketSubmission {
    pub market: Protocol,
    /// Its unique id.
    pub id: String,
    pub order: MarketOrder,
    /// How the market replies, in its own format.
    pub reply: String,
}

/// What an order asks for.
#[derive(Clone, Debug)]
pub enum MarketOrder {
    Register(Box<Registration>),
    OpenJob(Box<MarketJobRequest>),
    ReportResult(Box<ReportResult>),
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
    RecordOnly,
}

/// Opens a job, and registers its requester first if it is unknown.
#[derive(Clone, Debug)]
pub struct MarketJobRequest {
    pub order: OpenJob,
    /// How to register the requester, if it is unknown. It then becomes the job's requester.
    pub registration: Option<Registration>,
}

/// Executes an order. Every order gets a record of its result, even if it is refused.
pub fn submit(
    world: &World,
    order: MarketSubmission,
    now: Timestamp,
) -> Result<(Changes, Answer), Refusal> {
    let recorder = world.markets.get(&order.market).ok_or(Refusal::NotFound)?;
    let name = claim::market_order(order.market, &order.id);
    let mut draft = Draft::new(world, now);
    if let Some(ClaimTarget::MarketRecord(posting)) = draft.claim_target(name) {
        let answer = Answer::MarketOrder { record: posting, repeated: true };
        return Ok((Changes::default(), answer));
    }
    let closes = matches!(order.order, MarketOrder::Offer { .. } | MarketOrder::Decline { .. });
    let outcome = execute(&mut draft, order.order);
    if outcome.is_err() {
        // An order refused half-way changes nothing.
        draft = Draft::new(world, now);
    }
    let market = (order.market, &**recorder);
    let executed = (&*order.id, OrderOutcome { reply: &order.reply, result: outcome.as_ref() });
    let posting = publish::publish_order(&mut draft, market, executed, closes);
    draft.add_claim(name, ClaimTarget::MarketRecord(posting));
    draft.next.market_orders += 1;
    Ok((draft.into_changes(), Answer::MarketOrder { record: posting, repeated: false }))
}

fn execute(draft: &mut Draft<'_>, signed_order: MarketOrder) -> Result<Answer, Refusal> {
    if let Some(by) = order_author(&signed_order) {
        suspension::ensure_not_suspended(draft, by)?;
    }
    match signed_order {
        MarketOrder::Register(order) => registration::register(draft, *order),
        MarketOrder::OpenJob(opening) => {
            let MarketJobRequest { mut order, registration: new_agent } = *opening;
            if let Some(new_agent) = new_agent {
                // It may have registered since it was looked up.
                let known = draft.world.agent_by_alias(new_agent.home, &new_agent.native_id);
                let agent = known
                    .map_or_else(|| registration::register_on_first_order(draft, &new_agent), Ok)?;
                order.requester = Requester::Agent(agent);
            }
            open::open(draft, order)
        }
        MarketOrder::ReportResult(said) => work::report_result(draft, *said),
        MarketOrder::Decline { job, by } => {
            let answer = offer::pass_or_decline(draft, &job, by)?;
            open::dispatch_queue(draft);
            Ok(answer)
        }
        MarketOrder::Offer { job, by, price } => offer::place_bid(draft, &job, by, price, ""),
        MarketOrder::Read { agent, up_to } => {
            let mailbox = draft.inbox(agent);
            match mailbox.acked < up_to.min(mailbox.head) {
                true => Ok(message::ack(draft, agent, up_to)),
                // Another reader was faster, or there is nothing to read.
                false => Err(Refusal::NotFound),
            }
        }
        MarketOrder::Dispatch => {
            open::dispatch_queue(draft);
            Ok(Answer::Done)
        }
        MarketOrder::RecordOnly => Ok(Answer::Done),
    }
}

/// The order's author, for orders whose rules do not check suspension themselves.
fn order_author(signed_order: &MarketOrder) -> Option<AgentId> {
    match signed_order {
        MarketOrder::ReportResult(said) => Some(said.by),
        MarketOrder::Decline { by, .. } | MarketOrder::Offer { by, .. } => Some(*by),
        MarketOrder::Read { agent, .. } => Some(*agent),
        MarketOrder::Register(_)
        | MarketOrder::OpenJob(_)
        | MarketOrder::Dispatch
        | MarketOrder::RecordOnly => None,
    }
}
