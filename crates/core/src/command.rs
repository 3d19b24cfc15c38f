//! Commands: what the hub can be asked to do. Identity is already proven when one comes here.

use std::sync::Arc;

use uuid::Uuid;

use crate::agent::key::{Holder, KeyHash};
use crate::agent::said::Condition;
use crate::agent::{Liveness, Skill, Terms};
use crate::alias::{Digest, Protocol};
use crate::grain::Grain;
use crate::id::{AgentId, JobId, NoticeId, OwnerId};
use crate::job::{Cause, Policy, Requester, Selection};
use crate::market::Post;
use crate::memory::{Kept, Principal};
use crate::money::Credits;
use crate::signed::Signed;
use crate::time::{Millis, Timestamp};

/// An order.
#[derive(Clone, Debug)]
pub enum Command {
    Enrol(Box<Enrol>),
    Remove {
        agent: AgentId,
        by_operator: bool,
    },
    IssueKey {
        holder: Holder,
        hash: KeyHash,
        retire_others: bool,
        by_operator: bool,
    },
    RevokeKeys {
        agent: AgentId,
        by_operator: bool,
    },
    /// Only the operator suspends, and lets go on again.
    Suspend {
        subject: Subject,
        suspended: bool,
    },
    /// The store was restored from a backup: what the original did since then did not happen here.
    BeginEpoch,
    /// A new webhook secret; the ones before it run out.
    RenewSecret {
        agent: AgentId,
    },
    Beat {
        agent: AgentId,
    },
    /// Somebody who was away has shown up.
    Return {
        agent: AgentId,
    },
    OpenAccount {
        name: String,
    },
    Grant {
        name: String,
        amount: Credits,
    },
    Burn {
        name: String,
        amount: Credits,
    },
    Pay(Box<Pay>),
    OpenJob(Box<OpenJob>),
    Offer {
        job: JobRef,
        by: AgentId,
        price: Credits,
        valid_for: Millis,
    },
    AcceptOffer {
        job: JobRef,
        by: AgentId,
        offer: OfferRef,
    },
    /// The worker has the job and will answer later.
    Start {
        job: JobRef,
        by: AgentId,
    },
    Report(Box<ReportWork>),
    /// An agent that answers for itself says whether it takes a job.
    Respond {
        job: JobRef,
        by: AgentId,
        said: Response,
    },
    /// Somebody agrees to a job that needs it, or does not.
    Approve {
        job: JobRef,
        by: Approver,
        yes: bool,
    },
    /// How an agent says it is doing.
    Stand {
        agent: AgentId,
        told: Condition,
    },
    /// How well an agent says it does.
    Boast {
        agent: AgentId,
        words: Arc<str>,
    },
    Decline {
        job: JobRef,
        by: AgentId,
        /// Which of the job's turns it is about, if whoever says it knows.
        epoch: Option<u32>,
        /// Why, in its own words.
        reason: Option<String>,
    },
    Defer {
        job: JobRef,
        by: AgentId,
        until: Timestamp,
    },
    /// The worker has read these jobs; they can no longer be called back.
    HandOver {
        agent: AgentId,
        jobs: Vec<JobId>,
    },
    /// The worker has asked for its work and been shown these jobs, or none, without taking them;
    /// they can still be called back.
    Show {
        agent: AgentId,
        jobs: Vec<JobId>,
    },
    /// The requester is about to be told to wait.
    MarkPending {
        job: JobId,
    },
    /// The assigned worker could not connect.
    Unreachable {
        job: JobId,
        epoch: u32,
    },
    Cancel {
        job: JobRef,
        by: Canceller,
        /// Why, in its own words.
        reason: Option<String>,
    },
    /// Only the operator takes a job away from its worker.
    Requeue {
        job: JobRef,
    },
    /// Whatever somebody has signed.
    Signed(Box<Signed>),
    /// Whatever somebody has posted to a market.
    Post(Box<Post>),
    /// Names in protocols that came later than the agent.
    Name {
        agent: AgentId,
        aliases: Vec<(Protocol, String)>,
    },
    Send(Box<SendMessage>),
    Ack {
        agent: AgentId,
        up_to: u64,
    },
    /// Somebody who reads for the agent has been handed everything up to here.
    Present {
        agent: AgentId,
        up_to: u64,
    },
    /// Whether messages of another agent are refused from now on.
    Block {
        agent: AgentId,
        whom: AgentId,
        blocked: bool,
    },
    /// Try a push now, also one that was given up.
    PushAgain {
        notice: NoticeId,
    },
    PushDone {
        notice: NoticeId,
        ended: PushEnd,
    },
    Remember(Box<Remember>),
    Tick(Timer),
}

impl Command {
    /// Whether the operator gave it, for the history.
    pub fn is_by_operator(&self) -> bool {
        match self {
            Self::Enrol(order) => order.actor == Actor::Operator,
            Self::Send(order) => order.by_operator,
            Self::Remove { by_operator, .. }
            | Self::IssueKey { by_operator, .. }
            | Self::RevokeKeys { by_operator, .. } => *by_operator,
            Self::Approve { by, .. } => *by == Approver::Operator,
            Self::Cancel { by, .. } => *by == Canceller::Operator,
            Self::Grant { .. }
            | Self::Burn { .. }
            | Self::Requeue { .. }
            | Self::Suspend { .. }
            | Self::BeginEpoch => true,
            _ => false,
        }
    }
}

/// Who is suspended: one agent, or an owner with all its agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Agent(AgentId),
    Owner(OwnerId),
}

/// Who asks, as far as it has been proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Nobody,
    /// Holder of this agent's key, whether or not the agent is still registered.
    Agent(AgentId),
    Operator,
    /// Whoever the order names as owner: that is what was proven.
    Owner,
    /// A hub that takes everybody's word, for agents native to the protocol in question.
    Open,
}

/// Keep an answer for whoever repeats the request.
#[derive(Clone, Debug)]
pub struct Remember {
    /// Of caller, path and key.
    pub scope: Digest,
    /// Of the request's body.
    pub request: Digest,
    /// Whose share it counts against.
    pub principal: Principal,
    pub kept: Kept,
}

/// Register an agent, or update it.
#[derive(Clone, Debug)]
pub struct Enrol {
    pub actor: Actor,
    pub home: Protocol,
    pub native: String,
    /// Its names in the other protocols.
    pub aliases: Vec<(Protocol, String)>,
    pub owner: String,
    pub name: String,
    pub endpoint: Option<String>,
    pub liveness: Liveness,
    pub skills: Vec<Skill>,
    pub terms: Terms,
    /// How it is doing, if it says so.
    pub condition: Option<Condition>,
    pub card: String,
    /// Hash of a fresh key, used for a new agent or when `rotate` is set.
    pub key: Option<KeyHash>,
    pub rotate: bool,
}

/// Move credits, or confirm that a job's hold already did.
#[derive(Clone, Debug)]
pub struct Pay {
    pub origin: Protocol,
    /// The payer's id for it; a fresh one when it gave none.
    pub foreign: String,
    pub named: bool,
    pub from: String,
    pub to: String,
    pub amount: Credits,
    pub job: Option<String>,
    /// Whether an unknown payee gets an account.
    pub open_payee: bool,
    pub content: Digest,
}

/// Write to another agent.
#[derive(Clone, Debug)]
pub struct SendMessage {
    /// `None` for somebody the hub does not know.
    pub from: Option<AgentId>,
    pub to: AgentId,
    /// The protocol whose words the body is in.
    pub words: Protocol,
    pub body: String,
    /// Where to send it besides the inbox.
    pub url: Option<String>,
    /// How long whoever gives this order keeps the first try to itself.
    pub first_try: Millis,
    /// What makes a repeat of it recognisable for as long as it is kept.
    pub turn: Option<Turn>,
    /// The operator wrote it in the sender's name.
    pub by_operator: bool,
}

/// One turn of a conversation between two agents.
#[derive(Clone, Debug)]
pub struct Turn {
    pub conversation: String,
    pub number: u64,
    pub content: Digest,
}

/// Ask for work.
#[derive(Clone, Debug)]
pub struct OpenJob {
    pub uuid: Uuid,
    pub origin: Protocol,
    pub foreign: String,
    pub content: Digest,
    pub requester: Requester,
    pub skill: String,
    /// Other names under which somebody may offer what is wanted.
    pub also: Vec<String>,
    pub input: String,
    pub budget: Credits,
    /// How finely the requester counts.
    pub grain: Grain,
    pub selection: Selection,
    /// Who could not use the input, and why.
    pub unfit: Vec<Unfit>,
    pub policy: Policy,
    pub deadline: Timestamp,
    pub lease: Millis,
    /// By when the requester wants it; without, by when the worker says it takes.
    pub promised: Option<Timestamp>,
    /// 1 is the most urgent.
    pub priority: u8,
    pub callback: Option<String>,
    /// What is wrong with it in its origin protocol's words, to be told once its worker is back.
    pub flaw: Option<String>,
    pub meta: String,
    pub hops: u8,
    /// Another id by which the parties may name it. Two requesters may use the same one, and then it
    /// names neither job.
    pub request_id: Option<String>,
}

/// Somebody who could not use what a job would hand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub agent: AgentId,
    /// What is wrong, in words.
    pub why: String,
}

/// A job, by whichever name the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRef {
    Id(JobId),
    Uuid(Uuid),
    Foreign { origin: Protocol, id: String },
}

/// One offer for a job, as its requester names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferRef {
    /// By its place among the offers, as notices tell it.
    Place(u32),
    /// By its maker and the price that was shown.
    Price { by: AgentId, price: Credits },
    /// By its maker alone, which is enough while that has made only one.
    Only { by: AgentId },
}

/// What a worker says about a job it was given.
#[derive(Clone, Debug)]
pub struct ReportWork {
    pub job: JobRef,
    pub by: AgentId,
    /// Which of the job's turns it is about, if whoever says it knows.
    pub epoch: Option<u32>,
    pub ok: bool,
    /// The worker said nothing about the work: its endpoint refused the request, or the connection
    /// broke. The turn fails, and counts as silence does.
    pub silent: bool,
    pub output: Option<String>,
    /// `Credits::MAX` from a worker that names no cost: the agreed price counts.
    pub cost: Credits,
    pub took: Millis,
    pub cause: Option<Cause>,
    pub text: Option<String>,
    /// What only the worker's protocol understands, as JSON text.
    pub words: Option<String>,
    pub content: Digest,
}

/// Who calls a job off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canceller {
    Agent(AgentId),
    /// Whoever asked without being registered; it has nothing to show but its word.
    Guest,
    Operator,
}

/// Whether an agent takes a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    Accept {
        /// When it will be ready, as far as it knows.
        ready_at: Option<Timestamp>,
        /// What it calls the job, if it has a name of its own for it.
        called: Option<Uuid>,
    },
    Refuse {
        cause: Cause,
        text: String,
        /// What only its own protocol understands, as JSON text.
        words: Option<String>,
    },
    /// Not before then.
    Defer { until: Timestamp },
}

/// Who agrees to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    Agent(AgentId),
    Operator,
}

/// How an attempt to push a notice ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushEnd {
    /// What was answered, if the message's protocol keeps it.
    Delivered { reply: Option<String> },
    /// There is nothing left to send, though nothing arrived.
    Over,
    /// Try again at that moment, or give up.
    Failed { why: String, next_try: Option<Timestamp> },
    /// The endpoint said it is gone for good.
    Gone,
}

/// Something that is due by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    Job(JobId),
    /// Somebody who came without proof has had its time to show itself.
    Agent(AgentId),
}
