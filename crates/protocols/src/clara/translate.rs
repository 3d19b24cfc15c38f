//! Translates the market's orders into commands, each with its reply.

use std::sync::Arc;

use rialto_core::agent::{Agent, Liveness, Skill};
use rialto_core::alias::Digest;
use rialto_core::command::{
    Actor, Command, JobRef, OfferTerms, OpenJob, Registration, ReportResult,
};
use rialto_core::id::AgentId;
use rialto_core::job::{DEFAULT_PRIORITY, Job, Policy, Requester, Selection};
use rialto_core::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::reputation::Score;
use rialto_core::time::Millis;
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;

use super::ClaraContext;
use super::auth::{self, WALLET_PREFIX};
use super::record_writer::OrderReply;
use super::results::ReadQuery;
use super::task::{self, ItemWithoutPayload, TaskMeta};
use super::wire::order::{DeclineTask, SendResult, SubmitOffer};
use super::wire::outgoing::OutgoingMessage;
use super::wire::register::{RegisterAgent, RegisterTask, Service};
use super::{Dialect, ID, IncomingMessage, Order, OrderError, Settings, Strategy, read_orders};
use crate::adapter::input_check::{self, InputCheck};
use crate::adapter::{NewAgent, make_aliases};
use crate::kit::ans104::ItemId;

/// How long an assigned agent may take to respond (R62), unless the operator sets it.
const LEASE: Millis = Millis::hours(24);
/// The most copies of one task.
const COPIES_MAX: usize = 1_024;
/// The most bytes sent to all recipients of one task together.
const AUDIENCE_BYTES_MAX: usize = 8 << 20;

/// Fees and rewards are whole credits, and at least 1.
const PRICE_STEP: PriceStep = PriceStep { decimals: 0, minimum: Credits::from_micros(1_000_000) };

/// The command of an order, and the reply if it succeeds.
pub struct OrderPlan {
    pub command: Command,
    pub reply: OrderReply,
    /// How to register the requester of a task, if it is unknown.
    pub registration: Option<Box<Registration>>,
}

impl OrderPlan {
    pub fn new(command: Command, reply: OrderReply) -> Self {
        Self { command, reply, registration: None }
    }

    /// An order that only reads: these messages, and whether they are public.
    pub fn read_only(messages: Vec<OutgoingMessage>, shown: bool, ask: Option<ReadQuery>) -> Self {
        Self::new(Command::RecordOnly, OrderReply::Answer { messages, shown, ask })
    }
}

/// Why there is no plan.
pub enum PlanError {
    /// The order is invalid.
    Order(OrderError),
    Engine(EngineFailure),
}

impl From<OrderError> for PlanError {
    fn from(fault: OrderError) -> Self {
        Self::Order(fault)
    }
}

impl From<EngineFailure> for PlanError {
    fn from(failure: EngineFailure) -> Self {
        Self::Engine(failure)
    }
}

/// Plans the order of a message.
pub async fn plan_order(
    context: &ClaraContext,
    message: &IncomingMessage<'_>,
    dialect: Dialect,
) -> Result<OrderPlan, PlanError> {
    let order = Order::read(message, &context.state.settings.topics, dialect)?;
    let from = message.from.as_ref();
    let processes = &context.state.processes;
    if order.moves_money() && !processes.may_move_money(message.target) {
        return Err(OrderError::SharedProcess { own: processes.spec }.into());
    }
    match order {
        Order::RegisterAgent(order) => Ok(register(context, from, &order)?),
        Order::RegisterTask(order) => Ok(open(context, message, dialect, &order).await?),
        Order::SendResult(order) => result(context, from, &order).await,
        Order::Decline(order) => decline(context, message, &order).await,
        // Until the auction closes, whether an agent has made an offer is secret (R77).
        Order::SubmitOffer(_) if !message.signed => Err(OrderError::SignToRead.into()),
        Order::SubmitOffer(order) => offer(context, from, &order).await,
        Order::DispatchTasks => Ok(OrderPlan::new(Command::DispatchQueue, OrderReply::Dispatched)),
        Order::Unknown => Ok(OrderPlan::read_only(Vec::new(), false, None)),
        order => read_orders::plan_read_order(context, message, order, dialect).await,
    }
}

/// Finds an agent of the sender by its id.
pub fn own_agent(world: &World, from: &str, agent_id: &str) -> Result<AgentId, OrderError> {
    let found = world.agent_by_alias(ID, agent_id).and_then(|id| world.agent(id));
    let owner = world.owner_by_name(&auth::owner_name(from));
    let is_own =
        |agent: &&Arc<Agent>| agent.active && agent.home == ID && Some(agent.owner) == owner;
    found.filter(is_own).map(|agent| agent.id).ok_or_else(|| OrderError::NotRegistered {
        agent: agent_id.to_owned(),
        address: from.to_owned(),
    })
}

fn register(
    context: &ClaraContext,
    from: &str,
    order: &RegisterAgent<'_>,
) -> Result<OrderPlan, OrderError> {
    let named = |prefix: &str| order.id.to_lowercase().starts_with(prefix);
    if named(WALLET_PREFIX) {
        return Err(OrderError::ReservedAgentId("wallet"));
    }
    // An agent that registered such an id before this rule existed keeps it.
    let new = || context.engine.with_world(|world| world.agent_by_alias(ID, order.id).is_none());
    if let Some(first) = auth::imitated_prefix(order.id).filter(|_| new()) {
        return Err(OrderError::ReservedAgentId(first));
    }
    // Another sender's address is the name of that sender's wallet.
    if order.id != from && ItemId::read(order.id).is_some() {
        return Err(OrderError::AddressAsId);
    }
    let name = order.name();
    let new_agent = NewAgent { home: ID, native: order.id, name: &name };
    let skill = |service: Service<'_>| Skill {
        name: task::skill_of_topic(service.topic),
        price: service.fee,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        category: None,
        native_name: None,
        description: String::new(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    let enrol = Registration {
        skills: order.service.map(skill).into_iter().collect(),
        card: order.metadata.to_owned(),
        ..registration(context, from, order.id.to_owned(), new_agent)
    };
    let reply = OrderReply::Registered { agent_id: order.id.to_owned() };
    Ok(OrderPlan::new(Command::Register(Box::new(enrol)), reply))
}

/// The registration of an agent or wallet of this address. It polls, so it counts as always
/// reachable.
fn registration(
    context: &ClaraContext,
    from: &str,
    native: String,
    new_agent: NewAgent<'_>,
) -> Registration {
    Registration {
        actor: Actor::Owner,
        home: ID,
        aliases: make_aliases(&context.engine, new_agent),
        owner: auth::owner_name(from),
        name: new_agent.name.to_owned(),
        native_id: native,
        endpoint: None,
        liveness: Liveness::Always,
        skills: Vec::new(),
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: None,
        rotate_key: false,
    }
}

/// The requester: the sender's agent if the order names one, otherwise its wallet (R27).
fn requester(
    context: &ClaraContext,
    from: &str,
    named: Option<&str>,
) -> Result<(Requester, Option<Registration>), OrderError> {
    if let Some(named) = named {
        let agent = context.engine.with_world(|world| own_agent(world, from, named))?;
        return Ok((Requester::Agent(agent), None));
    }
    let native = auth::wallet_name(from);
    let known = context.engine.with_world(|world| world.agent_by_alias(ID, &native));
    Ok(match known {
        Some(agent) => (Requester::Agent(agent), None),
        None => {
            // The wallet is listed under its address.
            let new_agent = NewAgent { home: ID, native: from, name: from };
            let enrol = registration(context, from, native, new_agent);
            (Requester::Guest(from.to_owned()), Some(enrol))
        }
    })
}

async fn open(
    context: &ClaraContext,
    message: &IncomingMessage<'_>,
    dialect: Dialect,
    order: &RegisterTask<'_>,
) -> Result<OrderPlan, OrderError> {
    let (settings, now) = (&context.state.settings, context.engine.now());
    let (requester, new_agent) = requester(context, &message.from, order.agent_id)?;
    let (selection, skill) = choice(context, order)?;
    let (named, of) = match selection {
        Selection::Direct(agent) => (true, Some(agent)),
        _ => (false, None),
    };
    // Prices that only guide the choice in this market are real prices in other protocols (R80).
    let elsewhere = context.engine.with_world(|world| {
        let named = of.and_then(|agent| world.agent(agent));
        named.is_some_and(|agent| agent.home != ID)
    });
    let also = if named || !settings.payments {
        Vec::new()
    } else {
        settings.bridged.skill_names_of(order.topic)
    };
    let names: Vec<&str> =
        [skill.as_str()].into_iter().chain(also.iter().map(String::as_str)).collect();
    audience(context, selection, &names, order.payload)?;
    let wanted = InputCheck { origin: ID, skill_names: &names, agent: of, input: order.payload };
    let unfit = input_check::find_unfit_agents(context, &wanted).await;
    let crosses = context.engine.with_world(|world| task::may_leave_protocol(world, of, &names));
    let meta = TaskMeta {
        context_id: order.context_id.map(Into::into),
        requester_id: order.agent_id.map(Into::into),
        strategy: order.strategy.as_str().into(),
        topic: order.topic.into(),
        deployed: dialect == Dialect::Deployed,
        item: message
            .item
            .filter(|_| crosses)
            .and_then(|item| ItemWithoutPayload::of(item, order.payload)),
    };
    // A dry-run can claim any sender, so it must not reveal what a sender can pay (R74).
    let unpaid = !settings.payments && !elsewhere || !message.signed;
    let open = OpenJob {
        uuid: context.engine.random().new_uuid(),
        origin: ID,
        foreign_id: message.id.to_string(),
        content: Digest::of(&[message.id.as_bytes()]),
        requester,
        skill,
        alternative_skills: also,
        input: order.payload.to_owned(),
        budget: order.reward,
        price_step: PRICE_STEP,
        selection,
        unfit_agents: unfit,
        policy: Policy {
            requester: RequesterOptions { unpaid, ..policy(selection, settings).requester },
            ..policy(selection, settings)
        },
        deadline: now.plus(settings.task_ttl),
        lease: context.settings.lease_or(LEASE),
        wanted_by: None,
        priority: DEFAULT_PRIORITY,
        callback: None,
        input_error: None,
        meta: serde_json::to_string(&meta).unwrap_or_default(),
        hops: 0,
        request_id: None,
    };
    let command = Command::OpenJob(Box::new(open));
    let registration = new_agent.map(Box::new);
    Ok(OrderPlan { command, reply: OrderReply::Task, registration })
}

/// What happens when the first agent does not do the task. A task for any agent goes to the next
/// one. A task for a named agent or for all agents does not.
fn policy(selection: Selection, settings: &Settings) -> Policy {
    let named = matches!(selection, Selection::Direct(_));
    let goes_on =
        !named && !matches!(selection, Selection::Broadcast | Selection::BroadcastToProtocol);
    Policy {
        // A named agent may be offline: agents of this market read their tasks when they poll.
        reassignment: Reassignment {
            when_declined: goes_on,
            when_failed: goes_on,
            ..Reassignment::default()
        },
        queueing: Queueing {
            when_unmatched: settings.queue_unmatched && goes_on,
            after_failure: goes_on,
        },
        named_worker: NamedWorker { may_be_offline: named, ..NamedWorker::default() },
        ..Policy::default()
    }
}

/// Checks that the payload is not too large for all of its recipients together.
fn audience(
    context: &ClaraContext,
    selection: Selection,
    names: &[&str],
    payload: &str,
) -> Result<(), OrderError> {
    let agents = context.engine.with_world(|world| {
        let able =
            || names.iter().map(|name| world.skills.count_online(name, None, Score::MIN)).sum();
        match selection {
            Selection::BroadcastToProtocol => {
                world.agents().filter(|agent| agent.home == ID).count()
            }
            Selection::Broadcast => able(),
            Selection::Auction { .. } => COPIES_MAX.min(able()),
            _ => 1,
        }
    });
    let copies = matches!(selection, Selection::BroadcastToProtocol | Selection::Broadcast);
    if agents > 1 && payload.len().saturating_mul(agents) > AUDIENCE_BYTES_MAX {
        return Err(OrderError::TooLargeForAll { agents, bytes: AUDIENCE_BYTES_MAX / agents });
    }
    if copies && agents > COPIES_MAX {
        return Err(OrderError::TooManyAgents { agents, max: COPIES_MAX });
    }
    Ok(())
}

/// How the agent is chosen, and the skill it needs.
fn choice(
    context: &ClaraContext,
    order: &RegisterTask<'_>,
) -> Result<(Selection, String), OrderError> {
    if let Some(named) = order.target_agent_id {
        let found = context.engine.with_world(|world| {
            let agent = world.agent(world.agent_by_alias(ID, named)?)?;
            let first = || agent.skills.first().map(|skill| skill.name.clone());
            let skill = order.capability.map(str::to_owned).or_else(first)?;
            agent.active.then_some((agent.id, skill))
        });
        let (agent, skill) = found.ok_or(OrderError::NoAgents)?;
        return Ok((Selection::Direct(agent), skill));
    }
    let closes = context.engine.now().plus(context.settings.auction_window);
    let selection = match order.strategy {
        _ if order.is_broadcast() => Selection::BroadcastToProtocol,
        Strategy::RoundRobin => Selection::RoundRobin,
        Strategy::Cheapest => Selection::Cheapest,
        Strategy::LeastOccupied => Selection::LeastOccupied,
        Strategy::Broadcast => Selection::Broadcast,
        Strategy::Query => Selection::Auction { closes },
    };
    Ok((selection, task::skill_of_topic(order.topic)))
}

/// The job that an agent means by a task id. If there are several copies, the one assigned to that
/// agent.
pub async fn find_task_job(
    context: &ClaraContext,
    agent: AgentId,
    task_id: &str,
) -> Result<Option<Arc<Job>>, EngineFailure> {
    let is_it = |job: &&Arc<Job>| task::task_id(job) == task_id;
    let in_hand =
        context.engine.with_world(|world| world.assigned_jobs(agent).find(is_it).cloned());
    if in_hand.is_some() {
        return Ok(in_hand);
    }
    if let Ok(uuid) = task_id.parse() {
        return context.engine.find_job(&JobRef::Uuid(uuid)).await;
    }
    let named =
        async |id: String| context.engine.find_job(&JobRef::Foreign { origin: ID, id }).await;
    let Some(first) = named(task_id.to_owned()).await? else { return Ok(None) };
    if !task::is_broadcast(&first) || first.worker() == Some(agent) {
        return Ok(Some(first));
    }
    for copy in 1..COPIES_MAX {
        match named(format!("{task_id}#{copy}")).await? {
            Some(job) if job.worker() == Some(agent) => return Ok(Some(job)),
            Some(_) => {}
            None => break,
        }
    }
    Ok(Some(first))
}

async fn result(
    context: &ClaraContext,
    from: &str,
    order: &SendResult<'_>,
) -> Result<OrderPlan, PlanError> {
    let by = context.engine.with_world(|world| own_agent(world, from, order.agent_id))?;
    let job = find_task_job(context, by, order.task_id).await?.ok_or(OrderError::NotAssigned)?;
    let command = Command::ReportResult(Box::new(ReportResult {
        job: JobRef::Id(job.id),
        by,
        epoch: None,
        ok: true,
        is_final: true,
        knows_work: true,
        no_response: false,
        output: Some(order.result.to_owned()),
        // The agreed fee is paid.
        cost: Credits::MAX,
        took: Some(Millis(0)),
        cause: None,
        text: None,
        // Only requesters of this market read it.
        meta: order.recipient.filter(|_| job.request.origin == ID).map(task::write_result_meta),
        // Every message is unique, so a second result never counts as a repeat of the first (R49).
        content: Digest::of(&[context.engine.random().new_uuid().as_bytes()]),
    }));
    Ok(OrderPlan::new(command, OrderReply::Result { task_id: order.task_id.to_owned() }))
}

async fn decline(
    context: &ClaraContext,
    message: &IncomingMessage<'_>,
    order: &DeclineTask<'_>,
) -> Result<OrderPlan, PlanError> {
    let by = context.engine.with_world(|world| own_agent(world, &message.from, order.agent_id))?;
    let job = find_task_job(context, by, order.task_id).await?.ok_or(OrderError::NotAssigned)?;
    // The next agent and its fee would reveal the bids of others (R77).
    if !message.signed && matches!(job.selection, Selection::Auction { .. }) {
        return Err(OrderError::SignToRead.into());
    }
    let reply = OrderReply::Declined {
        task_id: order.task_id.to_owned(),
        agent_id: order.agent_id.to_owned(),
    };
    Ok(OrderPlan::new(Command::Pass { job: JobRef::Id(job.id), by }, reply))
}

async fn offer(
    context: &ClaraContext,
    from: &str,
    order: &SubmitOffer<'_>,
) -> Result<OrderPlan, PlanError> {
    let by = context.engine.with_world(|world| own_agent(world, from, order.agent_id))?;
    let job = find_task_job(context, by, order.task_id).await?.ok_or(OrderError::NotAssigned)?;
    let reply = OrderReply::Offer {
        task_id: order.task_id.to_owned(),
        agent_id: order.agent_id.to_owned(),
        fee: order.fee,
        reward: job.payment.budget,
    };
    let (job, price, terms) = (JobRef::Id(job.id), order.fee, OfferTerms::Bid);
    Ok(OrderPlan::new(Command::Offer { job, by, price, terms }, reply))
}
