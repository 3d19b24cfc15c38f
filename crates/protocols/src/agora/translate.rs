//! Translates a proven envelope into a signed command, and a job's id and state into this
//! protocol's.

use std::borrow::Cow;

use rialto_core::agent::presence::Availability;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::alias::Digest;
use rialto_core::command::{
    AbandonJob, AcceptOffer, AcceptedOffer, Actor, Command, ExternalRef, JobRef, JobRequest,
    OfferTerms, PaymentBinding, ProfileUpdate, Registration, ReportResult, RequestTarget,
};
use rialto_core::envelope::Signature;
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, State};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use uuid::Uuid;

use super::AgoraContext;
use super::envelope::{Destination, EnvelopeSource, Parties};
use super::stored_envelope::{write_evidence, write_stored_envelope};
use super::wire::envelope::{Envelope, MessageType};
use super::wire::error::{Code, Failure};
use super::wire::hello::{Capability, Hello};
use super::wire::payload::{ErrorPayload, Payload, Request};
use super::wire::signature::Proof;
use super::wire::status::{AgentStatus, RequestState, StatusUpdate};
use super::{CURRENCY, ID, directory};
use crate::adapter::{NewAgent, make_aliases};
use crate::kit::ed25519::PublicKey;

/// The name of an agent that gave none.
const NAMELESS: &str = "key";

/// Everything known about an envelope before it is executed.
pub struct ProvenEnvelope<'a> {
    pub envelope: &'a Envelope<'a>,
    pub proof: Proof,
    /// When it arrived, by the clock that its timestamp was checked against.
    pub received_at: Timestamp,
    pub payload: Payload<'a>,
    pub source: EnvelopeSource,
    pub parties: Parties,
}

impl ProvenEnvelope<'_> {
    /// The key it is addressed to, whether or not an agent has it.
    pub fn recipient(&self) -> Option<PublicKey> {
        self.source.path_agent.or(self.envelope.recipient)
    }
}

/// The author of a signed command is its signer, as the signature says.
const SIGNER: AgentId = AgentId(0);

/// The signature of an envelope.
pub fn signature(context: &AgoraContext, proven: &ProvenEnvelope<'_>) -> Signature {
    let ProvenEnvelope { envelope, proof, received_at, .. } = proven;
    let native = envelope.sender_did.clone().into_owned();
    let is_new = proven.parties.sender.is_none();
    let new_agent = is_new.then(|| Box::new(new_agent(context, &native, name(proven))));
    Signature {
        home: ID,
        registration: new_agent,
        id: envelope.id.to_owned(),
        content: content(context, proven),
        body: write_stored_envelope(envelope, proof, *received_at),
        native_id: native,
    }
}

/// The digest of content and recipient. A recipient that follows from the content does not count.
fn content(context: &AgoraContext, proven: &ProvenEnvelope<'_>) -> Digest {
    let (url, signed) = (proven.source.path_agent, proven.envelope.recipient);
    let contradicts = url.is_some() && signed.is_some() && url != signed;
    let counts = match &proven.payload {
        Payload::Request(_) | Payload::Error(ErrorPayload { request_id: None, .. }) => true,
        Payload::Unspecified => proven.recipient() != Some(context.state.signer.key()),
        _ => contradicts,
    };
    let bound = proven.recipient().filter(|_| counts);
    let bound = bound.as_ref().map_or(&[][..], |key| key.as_bytes());
    Digest::of(&[b"agora", &proven.proof.content, bound])
}

/// The name that a new agent gives in its first message.
fn name<'p>(proven: &'p ProvenEnvelope<'_>) -> &'p str {
    let hello = proven.envelope.message_type == MessageType::Hello;
    let hello = hello.then(|| Hello::read(proven.envelope.payload).ok()).flatten();
    hello.and_then(|hello| hello.name).unwrap_or(NAMELESS)
}

fn new_agent(context: &AgoraContext, native: &str, name: &str) -> Registration {
    Registration {
        // The key proves the ownership of the id that is derived from it.
        actor: Actor::OpenRegistration,
        home: ID,
        native_id: native.to_owned(),
        aliases: make_aliases(&context.engine, NewAgent { home: ID, native, name }),
        owner: format!("{ID}:{native}"),
        name: name.to_owned(),
        endpoint: None,
        liveness: Liveness::ByPolling,
        skills: Vec::new(),
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: None,
        rotate_key: false,
    }
}

/// What shows that an order to pay was signed for this hub.
fn binding(context: &AgoraContext, proven: &ProvenEnvelope<'_>) -> PaymentBinding {
    match (proven.envelope.recipient, proven.parties.sender) {
        (Some(_), _) => PaymentBinding::NamesHub,
        (None, Some(signer)) => PaymentBinding::ReadUpTo(context.engine.read_position(signer)),
        (None, None) => PaymentBinding::ReadUpTo(0),
    }
}

/// The command of an envelope to its destination. `uuid` is the id of the job that it may open.
pub fn signed_command(
    context: &AgoraContext,
    proven: &ProvenEnvelope<'_>,
    named: Option<Destination>,
    uuid: Uuid,
) -> Result<Command, Failure> {
    Ok(match &proven.payload {
        Payload::Request(request) => {
            let meta = write_evidence(proven.envelope.raw(), request);
            // The path is not signed: a replay could choose another.
            let is_bound = proven.envelope.recipient.is_some();
            Command::RequestJob(Box::new(JobRequest {
                meta,
                is_bound,
                id: proven.envelope.id.to_owned(),
                ..ask(context, request, named, uuid)?
            }))
        }
        Payload::Offer(offer) => Command::Offer {
            job: JobRef::Named(about(offer.request_id, named)?),
            by: SIGNER,
            price: offer.cost,
            terms: OfferTerms::Invited {
                name: proven.envelope.id.to_owned(),
                valid_for: offer.ttl,
                eta: offer.eta,
            },
        },
        Payload::Accept(accept) => Command::AcceptOffer(Box::new(AcceptOffer {
            by: SIGNER,
            offer: AcceptedOffer::Named(about(accept.offer_id, named)?),
            payment_proof: accept.payment_proof.map(str::to_owned),
            binding: binding(context, proven),
        })),
        Payload::Result(output) => Command::ReportResult(Box::new(ReportResult {
            job: JobRef::Named(about(output.request_id, named)?),
            by: SIGNER,
            epoch: None,
            ok: true,
            is_final: output.status.is_final(),
            // It reads its inbox, one message after the other.
            knows_work: false,
            no_response: false,
            output: Some(output.data.to_owned()),
            // The agreed price is paid.
            cost: Credits::MAX,
            took: None,
            cause: None,
            text: None,
            meta: None,
            content: content(context, proven),
        })),
        Payload::Error(failed) => match failed.request_id {
            Some(id) => Command::AbandonJob(Box::new(give_up(about(id, named)?, failed))),
            None => write(named, "an ERROR without request_id")?,
        },
        Payload::Unspecified => match (proven.envelope.message_type, named) {
            (_, Some(Destination::Agent(to))) => Command::Forward { to },
            (MessageType::Hello, _) => introduce(Hello::read(proven.envelope.payload)?),
            (MessageType::Status, _) => report(StatusUpdate::read(proven.envelope.payload)?),
            (_, named) => write(named, "a WELCOME")?,
        },
    })
}

fn ask(
    context: &AgoraContext,
    request: &Request<'_>,
    named: Option<Destination>,
    uuid: Uuid,
) -> Result<JobRequest, Failure> {
    let settings = &context.state.settings;
    let max = if request.budget.is_some() { settings.fanout } else { 1 };
    let to = match named {
        Some(Destination::Agent(agent)) => RequestTarget::Agent(agent),
        Some(Destination::HubByPath) => {
            return Err(Failure::new(Code::NotFound, "the hub itself supports no resource"));
        }
        Some(Destination::Hub) | None => RequestTarget::Best { max },
    };
    let currency = request.budget.and_then(|budget| budget.currency);
    Ok(JobRequest {
        by: SIGNER,
        id: String::new(),
        uuid,
        skill: skill(context, request.resource, to),
        input: request.params.to_owned(),
        to,
        budget: request.budget.and_then(|budget| budget.max),
        price_step: PriceStep::FINEST,
        unfit_agents: Vec::new(),
        other_currency: currency.is_some_and(|currency| currency != CURRENCY),
        timeout: request.timeout.unwrap_or(settings.default_timeout),
        meta: "{}".to_owned(),
        is_bound: false,
    })
}

/// The skill name of a resource for the agent that is asked. Agents of other protocols are listed
/// under resources made from their skills.
fn skill(context: &AgoraContext, resource: &str, to: RequestTarget) -> String {
    let native = |world: &World| {
        let RequestTarget::Agent(id) = to else { return None };
        let agent = world.agent(id)?;
        let is_meant = |skill: &&Skill| {
            skill.native_name.is_none()
                && directory::resource_of_skill(agent.home, skill) == resource
        };
        agent.skills.iter().find(is_meant).map(|skill| skill.name.clone())
    };
    context.engine.with_world(native).unwrap_or_else(|| directory::skill_name(resource).to_owned())
}

/// The thing that an id names, and the other party if the envelope is addressed to one.
fn about(id: &str, named: Option<Destination>) -> Result<ExternalRef, Failure> {
    let with = match named {
        // Signed for this hub; the id is enough.
        None | Some(Destination::Hub) => None,
        Some(Destination::Agent(agent)) => Some(agent),
        Some(Destination::HubByPath) => {
            let text = "is missing, and the URL names the hub, which is not a party of any request";
            return Err(Failure::bad_field("/recipient", text));
        }
    };
    Ok(ExternalRef { id: id.to_owned(), counterparty: with })
}

/// A message that can only go to the agent it is addressed to (R29).
fn write(named: Option<Destination>, what: &str) -> Result<Command, Failure> {
    match named {
        Some(Destination::Agent(to)) => Ok(Command::Forward { to }),
        Some(Destination::Hub | Destination::HubByPath) => Ok(Command::RecordOnly),
        None => {
            let message = format!("is required for {what}");
            Err(Failure::bad_field("/recipient", &message))
        }
    }
}

fn profile_update(profile: ProfileUpdate) -> Command {
    Command::UpdateProfile { agent: SIGNER, profile: Box::new(profile) }
}

fn introduce(hello: Hello<'_>) -> Command {
    profile_update(ProfileUpdate {
        name: hello.name.map(str::to_owned),
        skills: hello.capabilities.map(skills),
        endpoint: hello.endpoint.map(str::to_owned),
        // An agent that sends a HELLO is available.
        availability: Some(Availability::Idle),
    })
}

fn report(heard: StatusUpdate<'_>) -> Command {
    profile_update(ProfileUpdate {
        name: None,
        skills: heard.capabilities.map(skills),
        endpoint: None,
        availability: heard.status.map(availability),
    })
}

fn skills(capabilities: Vec<Capability<'_>>) -> Vec<Skill> {
    let skill = |capability: Capability<'_>| Skill {
        name: capability.resource.to_owned(),
        price: capability.price.unwrap_or(Credits::ZERO),
        by_offer: capability.price.is_none(),
        expected_duration: None,
        needs_approval: false,
        category: None,
        native_name: None,
        description: capability.description.unwrap_or_default().to_owned(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    directory::normalize_skills(capabilities.into_iter().map(skill).collect())
}

fn availability(status: AgentStatus) -> Availability {
    match status {
        AgentStatus::Idle => Availability::Idle,
        AgentStatus::Busy => Availability::Busy,
        AgentStatus::Error => Availability::Error,
        AgentStatus::Maintenance => Availability::Maintenance,
        AgentStatus::Offline => Availability::Offline,
    }
}

/// Which codes mean that the work was never started (R66), and the cause for the others.
fn give_up(request: ExternalRef, failed: &ErrorPayload<'_>) -> AbandonJob {
    let (cause, refused) = match failed.code() {
        Code::BadRequest | Code::Unauthorized => (Cause::Policy, true),
        Code::PaymentRequired => (Cause::BudgetTooLow, true),
        Code::NotFound => (Cause::NoSuchSkill, true),
        Code::TooManyRequests | Code::Unavailable => (Cause::Offline, true),
        Code::Timeout => (Cause::TimedOut, false),
        Code::Internal => (Cause::Execution, false),
    };
    AbandonJob { by: SIGNER, request, cause, refused, text: failed.message.to_owned() }
}

/// The agent of a key, registered or not.
pub fn agent_of_key(context: &AgoraContext, key: PublicKey) -> Option<AgentId> {
    context.engine.with_world(|world| world.agent_by_alias(ID, &key.did()))
}

/// The id of a request for its parties in this protocol.
pub fn foreign_id(job: &Job) -> Cow<'_, str> {
    if job.request.origin != ID {
        return job.uuid.to_string().into();
    }
    job.request.foreign_id.split_once('/').map_or(&*job.request.foreign_id, |(_, id)| id).into()
}

/// The state of a request in this protocol's terms.
pub fn request_state(state: State) -> RequestState {
    match state {
        State::Open | State::Queued | State::Deferred { .. } => RequestState::Pending,
        State::Negotiating => RequestState::Negotiating,
        State::Assigned | State::Running | State::InputRequired { .. } => RequestState::Processing,
        State::Completed => RequestState::Completed,
        State::Failed | State::Expired | State::Cancelled | State::Withdrawn => {
            RequestState::Failed
        }
    }
}
