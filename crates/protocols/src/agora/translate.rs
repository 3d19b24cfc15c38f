//! Translates a proven envelope into a signed order for the core.

use rialto_core::agent::presence::Stance;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::alias::Digest;
use rialto_core::command::{Actor, Enrol};
use rialto_core::price_step::Grain;
use rialto_core::id::AgentId;
use rialto_core::job::Cause;
use rialto_core::money::Credits;
use rialto_core::signed_order::{
    Ask, Binding, Deed, GiveResult, GiveUp, MakeOffer, Named, Profile, Signed, TakeOffer, Whom,
};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use uuid::Uuid;

use super::address::Address;
use super::codes::Code;
use super::envelope::Envelope;
use super::failure::Failure;
use super::intake::Way;
use super::payload::{Capability, Failed, Heard, Hello, Mood, Payload, Request};
use super::proof::Proof;
use super::{CURRENCY, ID, Kind, evidence, record, stored};
use crate::adapter::{Floor, Newcomer, aliases};
use crate::kit::ed25519::PublicKey;

/// The name of an agent that gave none.
const NAMELESS: &str = "key";

/// Everything known about an envelope before it is executed.
pub struct Proven<'a> {
    pub envelope: &'a Envelope<'a>,
    pub proof: Proof,
    /// When it arrived, by the clock that its timestamp was checked against.
    pub received_at: Timestamp,
    pub payload: Payload<'a>,
    pub way: Way,
}

impl Proven<'_> {
    /// The key it is addressed to, whether or not an agent has it.
    pub fn to(&self) -> Option<PublicKey> {
        self.way.to.or(self.envelope.recipient)
    }
}

/// The core's signed envelope, still without its order.
pub fn order(floor: &Floor, proven: &Proven<'_>) -> Signed {
    let Proven { envelope, proof, received_at, .. } = proven;
    let native = proof.key.did();
    let known = floor.engine.look(|world| world.agent_named(ID, &native).is_some());
    let newcomer = (!known).then(|| Box::new(newcomer(floor, &native, name(proven))));
    Signed {
        home: ID,
        newcomer,
        id: envelope.id.to_owned(),
        content: content(floor, proven),
        body: stored::write(envelope, proof, *received_at),
        deed: Deed::Nothing,
        native,
    }
}

/// The digest of content and recipient. A recipient that follows from the content does not count.
fn content(floor: &Floor, proven: &Proven<'_>) -> Digest {
    let (url, signed) = (proven.way.to, proven.envelope.recipient);
    let contradicts = url.is_some() && signed.is_some() && url != signed;
    let counts = match &proven.payload {
        Payload::Request(_) | Payload::Error(Failed { request_id: None, .. }) => true,
        Payload::Open => proven.to() != Some(floor.agora.hub.key()),
        _ => contradicts,
    };
    let bound = proven.to().filter(|_| counts);
    let bound = bound.as_ref().map_or(&[][..], |key| key.as_bytes());
    Digest::of(&[b"agora", &proven.proof.content, bound])
}

/// The name that a new agent gives in its first message.
fn name<'p>(proven: &'p Proven<'_>) -> &'p str {
    let hello = proven.envelope.kind == Kind::Hello;
    let said = hello.then(|| Hello::read(proven.envelope.payload).ok()).flatten();
    said.and_then(|hello| hello.name).unwrap_or(NAMELESS)
}

fn newcomer(floor: &Floor, native: &str, name: &str) -> Enrol {
    Enrol {
        // The key proves the ownership of the id that is derived from it.
        actor: Actor::Open,
        home: ID,
        native: native.to_owned(),
        aliases: aliases(&floor.engine, Newcomer { home: ID, native, name }),
        owner: format!("{ID}:{native}"),
        name: name.to_owned(),
        endpoint: None,
        liveness: Liveness::Polls,
        skills: Vec::new(),
        terms: Default::default(),
        condition: None,
        card: "{}".to_owned(),
        key: None,
        rotate: false,
    }
}

/// What shows that an order to pay was signed for this hub.
fn binding(floor: &Floor, proven: &Proven<'_>) -> Binding {
    match (proven.envelope.recipient, agent_of(floor, proven.proof.key)) {
        (Some(_), _) => Binding::Named,
        (None, Some(signer)) => Binding::ReadTo(floor.engine.read_to(signer)),
        (None, None) => Binding::ReadTo(0),
    }
}

/// The order of an envelope to its destination. `uuid` is the id of the job that it may open.
pub fn deed(
    floor: &Floor,
    proven: &Proven<'_>,
    named: Option<Address>,
    uuid: Uuid,
) -> Result<Deed, Failure> {
    Ok(match &proven.payload {
        Payload::Request(request) => {
            let meta = evidence::keep(proven.envelope.raw(), request);
            // The path is not signed: a replay could choose another.
            let is_bound = proven.envelope.recipient.is_some();
            Deed::Ask(Box::new(Ask { meta, is_bound, ..ask(floor, request, named, uuid)? }))
        }
        Payload::Offer(offer) => Deed::Offer(MakeOffer {
            request: about(offer.request_id, named)?,
            price: offer.cost,
            valid_for: offer.ttl,
            eta: offer.eta,
        }),
        Payload::Accept(accept) => Deed::Accept(TakeOffer {
            offer: about(accept.offer_id, named)?,
            payment_proof: accept.payment_proof.map(str::to_owned),
            binding: binding(floor, proven),
        }),
        Payload::Result(output) => Deed::Result(GiveResult {
            request: about(output.request_id, named)?,
            output: output.data.to_owned(),
            last: output.status.completes(),
        }),
        Payload::Error(failed) => match failed.request_id {
            Some(id) => Deed::Fail(give_up(about(id, named)?, failed)),
            None => write(named, "an ERROR without request_id")?,
        },
        Payload::Open => match (proven.envelope.kind, named) {
            (_, Some(Address::Agent(to))) => Deed::Write { to },
            (Kind::Hello, _) => introduce(Hello::read(proven.envelope.payload)?),
            (Kind::Status, _) => report(Heard::read(proven.envelope.payload)?),
            (_, named) => write(named, "a WELCOME")?,
        },
    })
}

fn ask(
    floor: &Floor,
    request: &Request<'_>,
    named: Option<Address>,
    uuid: Uuid,
) -> Result<Ask, Failure> {
    let settings = &floor.agora.settings;
    let max = if request.budget.is_some() { settings.fanout } else { 1 };
    let to = match named {
        Some(Address::Agent(agent)) => Whom::Agent(agent),
        Some(Address::HubPath) => {
            return Err(Failure::new(Code::NotFound, "the hub itself supports no resource"));
        }
        Some(Address::Hub) | None => Whom::Best { max },
    };
    let currency = request.budget.and_then(|budget| budget.currency);
    Ok(Ask {
        uuid,
        skill: skill(floor, request.resource, to),
        input: request.params.to_owned(),
        to,
        budget: request.budget.and_then(|budget| budget.max),
        grain: Grain::FINE,
        unfit: Vec::new(),
        other_currency: currency.is_some_and(|currency| currency != CURRENCY),
        timeout: request.timeout.unwrap_or(settings.default_timeout),
        meta: "{}".to_owned(),
        is_bound: false,
    })
}

/// The skill name of a resource for the agent that is asked. Agents of other protocols are listed
/// under resources made from their skills.
fn skill(floor: &Floor, resource: &str, to: Whom) -> String {
    let native = |world: &World| {
        let Whom::Agent(id) = to else { return None };
        let agent = world.agent(id)?;
        let is_meant = |skill: &&Skill| {
            skill.stands_for.is_none() && record::resource(agent.home, skill) == resource
        };
        agent.skills.iter().find(is_meant).map(|skill| skill.name.clone())
    };
    floor.engine.look(native).unwrap_or_else(|| record::skill_name(resource).to_owned())
}

/// The thing that an id names, and the other party if the envelope is addressed to one.
fn about(id: &str, named: Option<Address>) -> Result<Named, Failure> {
    let with = match named {
        // Signed for this hub; the id is enough.
        None | Some(Address::Hub) => None,
        Some(Address::Agent(agent)) => Some(agent),
        Some(Address::HubPath) => {
            let text = "is missing, and the URL names the hub, which is not a party of any request";
            return Err(Failure::bad_field("/recipient", text));
        }
    };
    Ok(Named { id: id.to_owned(), with })
}

/// A message that can only go to the agent it is addressed to (R29).
fn write(named: Option<Address>, what: &str) -> Result<Deed, Failure> {
    match named {
        Some(Address::Agent(to)) => Ok(Deed::Write { to }),
        Some(Address::Hub | Address::HubPath) => Ok(Deed::Nothing),
        None => {
            let message = format!("is required for {what}");
            Err(Failure::bad_field("/recipient", &message))
        }
    }
}

fn introduce(hello: Hello<'_>) -> Deed {
    Deed::Introduce(Box::new(Profile {
        name: hello.name.map(str::to_owned),
        skills: hello.capabilities.map(skills),
        endpoint: hello.endpoint.map(str::to_owned),
        // An agent that sends a HELLO is available.
        stance: Some(Stance::Idle),
    }))
}

fn report(heard: Heard<'_>) -> Deed {
    Deed::Introduce(Box::new(Profile {
        name: None,
        skills: heard.capabilities.map(skills),
        endpoint: None,
        stance: heard.status.map(stance),
    }))
}

fn skills(capabilities: Vec<Capability<'_>>) -> Vec<Skill> {
    let skill = |capability: Capability<'_>| Skill {
        name: capability.resource.to_owned(),
        price: capability.price.unwrap_or(Credits::ZERO),
        by_offer: capability.price.is_none(),
        takes: None,
        approval: false,
        sort: None,
        stands_for: None,
        about: capability.description.unwrap_or_default().to_owned(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    record::skills(capabilities.into_iter().map(skill).collect())
}

fn stance(mood: Mood) -> Stance {
    match mood {
        Mood::Idle => Stance::Idle,
        Mood::Busy => Stance::Busy,
        Mood::Error => Stance::Error,
        Mood::Maintenance => Stance::Maintenance,
        Mood::Offline => Stance::Offline,
    }
}

/// Which codes mean that the work was never started (R66), and the cause for the others.
fn give_up(request: Named, failed: &Failed<'_>) -> GiveUp {
    let (cause, refused) = match failed.code() {
        Code::BadRequest | Code::Unauthorized => (Cause::Policy, true),
        Code::PaymentRequired => (Cause::BudgetTooLow, true),
        Code::NotFound => (Cause::NoSuchSkill, true),
        Code::TooManyRequests | Code::Unavailable => (Cause::Offline, true),
        Code::Timeout => (Cause::TimedOut, false),
        Code::Internal => (Cause::Execution, false),
    };
    GiveUp { request, cause, refused, text: failed.message.to_owned() }
}

/// The agent of a key, registered or not.
pub fn agent_of(floor: &Floor, key: PublicKey) -> Option<AgentId> {
    floor.engine.look(|world| world.agent_named(ID, &key.did()))
}
