//! `send_credits`: gives credits away, once the user has agreed.
//!
//! The first call moves nothing. A client that can ask its user is told what to ask; any other gets a
//! code that its model passes on when the user has agreed.

use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, Pay};
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::idempotency::{Idempotency, Principal};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::{Engine, Failure, key_use};
use rialto_protocols::adapter::{api_protocol, naming};
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;
use uuid::Uuid;

use super::confirmation::{Agreement, CodeError, StateError, TransferOrder};
use super::error::INVALID_PARAMS;
use super::names::{address_of, find_agent};
use super::stranger_text::in_a_sentence;
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::mcp::wire::result::{ResultObject, ResultType, as_text};
use crate::mcp::wire::version::Era;
use crate::v1::agent_names;

/// Decimals that an amount has at least.
const DECIMALS: usize = 2;
/// The name of the question to the user.
const QUESTION: &str = "confirm";
/// The answer that means yes.
const YES: &str = "send";

pub async fn call(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent()?;
    let amount = arguments.credits("amount").unwrap_or_default();
    let order = read_order(&call, by, arguments.text("to").unwrap_or_default(), amount)?;
    let params = ijson::read(call.params.as_bytes()).ok();
    let state = params.as_ref().and_then(|params| params.get("requestState"));
    if let Some(state) = state.filter(|_| call.era == Era::New) {
        let state = as_text(Some(state)).ok_or(StateError::Forged)?;
        let answers = params.as_ref().and_then(|params| params.get("inputResponses"));
        return answer(&call, order, state, UserAnswer::read(answers)).await;
    }
    if call.client.elicitation {
        check_funds(&call, &order)?;
        let id = call.context.engine.random().new_uuid();
        let engine = &call.context.engine;
        return Ok(ask(&order, &order.new_state(engine.hub_secret(), engine.now(), id)));
    }
    let Some(code) = arguments.text("confirm") else {
        check_funds(&call, &order)?;
        return Ok(give_code(&call, &order, ""));
    };
    let engine = &call.context.engine;
    match order.check_code(engine.hub_secret(), code, engine.now()) {
        Ok(agreement) => match pay(&call, &order, agreement, None).await? {
            Some(moved) => Ok(moved),
            None => Ok(give_code(&call, &order, "That code was used already. ")),
        },
        Err(CodeError::Wrong) => {
            let why = "That code was not given for this receiver and amount. ";
            Ok(give_code(&call, &order, why))
        }
        Err(CodeError::Expired) => {
            Ok(give_code(&call, &order, "That code is older than 10 minutes. "))
        }
    }
}

/// The transfer that is meant.
fn read_order(
    call: &ToolCall,
    by: AgentId,
    to: &str,
    amount: Credits,
) -> Result<TransferOrder, ToolError> {
    let engine = &call.context.engine;
    if amount <= Credits::ZERO {
        return Err(ToolError::malformed("/amount", "must be more than 0"));
    }
    let named = engine.with_world(|world| find_receiver(world, to))?;
    let (to, receiver) = match named {
        Some(found) => found,
        None => {
            // Only a name that is nobody's id can be a display name.
            let agent = find_agent(engine, to).map_err(|error| error.with_field("/to"))?;
            let found = engine.with_world(|world| receiver_agent(world, agent));
            found.ok_or_else(ToolError::not_found)?
        }
    };
    engine.with_world(|world| {
        let payer = world.agent(by).and_then(|agent| world.owner(agent.owner));
        let payer = payer.ok_or_else(ToolError::no_key)?;
        match payer.id == to {
            true => Err(Refusal::SelfPayment.into()),
            false => Ok(TransferOrder { by, to, receiver, amount }),
        }
    })
}

/// Nobody is asked about what cannot be paid.
fn check_funds(call: &ToolCall, order: &TransferOrder) -> Result<(), ToolError> {
    let now = call.context.engine.now();
    call.context.engine.with_world(|world| {
        if let Some(used) = key_use::current() {
            world.check_transfer(used, order.amount, now)?;
        }
        let payer = world.agent(order.by).and_then(|agent| world.owner(agent.owner));
        match payer.is_none_or(|payer| payer.available < order.amount) {
            true => Err(Refusal::TooFewCredits.into()),
            false => Ok(()),
        }
    })
}

/// An owner by its name, or an agent by one of its ids. Ids that two owners could mean are refused.
fn find_receiver(world: &World, text: &str) -> Result<Option<(OwnerId, String)>, ToolError> {
    let name = naming::canonical_owner_name(world, text.to_owned());
    let owner = world.owner_by_name(&name).filter(|owner| *owner != Owner::ISSUANCE);
    let agent = agent_names::find_agent(world, text, "/to").ok();
    let agent = agent.and_then(|agent| receiver_agent(world, agent));
    match (owner, agent) {
        (Some(owner), Some((other, _))) if owner != other => {
            let fix = "name the agent as protocol:id, or ask the user which one is meant";
            let what = "an owner and an agent of another owner have this name";
            Err(ToolError::new("ambiguous", what, fix).with_field("/to"))
        }
        (Some(owner), _) => Ok(Some((owner, name))),
        (None, agent) => Ok(agent),
    }
}

/// The owner that is paid for an agent, and how the agent is shown.
fn receiver_agent(world: &World, id: AgentId) -> Option<(OwnerId, String)> {
    world.agent(id).map(|agent| (agent.owner, address_of(world, id)))
}

/// A code, and what to do with it. `why` says why an earlier one did not do.
fn give_code(call: &ToolCall, order: &TransferOrder, why: &str) -> ToolOutput {
    let engine = &call.context.engine;
    let number = engine.random().new_uuid().as_u128() as u16;
    let code = order.new_code(engine.hub_secret(), engine.now(), number);
    let TransferOrder { receiver, amount, .. } = order;
    let amount = amount.to_text(DECIMALS);
    let named = in_a_sentence(receiver);
    let next = format!(
        "{why}Nothing was moved. Ask the user: send {amount} credits to {named}? If they agree, call \
         send_credits again with this confirm code; it is good for 10 minutes."
    );
    let output = ObjectWriter::new()
        .flag("moved", false)
        .text("to", receiver)
        .text("amount", &amount)
        .text("confirm", &code)
        .text("next", &next);
    ToolOutput::new(output.finish())
}

/// Tells the client to ask its user.
fn ask(order: &TransferOrder, state: &str) -> ToolOutput {
    let (amount, receiver) = (order.amount.to_text(DECIMALS), in_a_sentence(&order.receiver));
    let message = format!("Send {amount} credits to {receiver}? This cannot be undone.");
    let schema = format!(
        r#"{{"type":"object","properties":{{"{YES}":{{"type":"boolean","title":"Send the credits"}}}},"required":["{YES}"]}}"#
    );
    let params = ObjectWriter::new()
        .text("mode", "form")
        .text("message", &message)
        .raw("requestedSchema", &schema)
        .finish();
    let question =
        ObjectWriter::new().text("method", "elicitation/create").raw("params", &params).finish();
    let questions = ObjectWriter::new().raw(QUESTION, &question).finish();
    let result = ResultObject::new(ResultType::InputRequired)
        .raw("inputRequests", questions)
        .text("requestState", state);
    ToolOutput::result(result)
}

/// What the user answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserAnswer {
    Yes,
    No,
    /// There is no answer to the question.
    Missing,
}

impl UserAnswer {
    /// Answers to other questions are ignored.
    fn read(answers: Option<&Json<'_>>) -> Self {
        let Some(answer) = answers.and_then(|answers| answers.get(QUESTION)) else {
            return Self::Missing;
        };
        let says = answer.get("content").and_then(|content| content.get(YES));
        match (as_text(answer.get("action")), says.map(Json::value)) {
            (Some("accept"), Some(JsonValue::Bool(true))) => Self::Yes,
            (Some("accept"), Some(JsonValue::Bool(false))) => Self::No,
            (Some("decline" | "cancel"), _) => Self::No,
            _ => Self::Missing,
        }
    }
}

/// Does what the user answered, once.
async fn answer(
    call: &ToolCall,
    order: TransferOrder,
    state: &str,
    answer: UserAnswer,
) -> ToolResult {
    let engine = &call.context.engine;
    let agreement = order.check_state(engine.hub_secret(), state, engine.now())?;
    let spent = || StateError::Spent.into();
    let once = |answer| only_answer(order.by, agreement.transfer, answer);
    match answer {
        UserAnswer::Missing => match engine.has_idempotency_record(once("").scope) {
            true => Err(spent()),
            false => Ok(ask(&order, state)),
        },
        UserAnswer::Yes => pay(call, &order, agreement, Some(once("yes"))).await?.ok_or_else(spent),
        UserAnswer::No => {
            // It changes nothing but that the question is answered, also after a restart.
            let answered = Command::RecordActivity { agent: order.by };
            run_first(engine, answered, Some(once("no"))).await?.ok_or_else(spent)?;
            let amount = order.amount.to_text(DECIMALS);
            let what =
                format!("the user did not agree to send {amount} credits; nothing was moved");
            Err(ToolError::of("declined_by_user", what))
        }
    }
}

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        Self::new(INVALID_PARAMS, error.to_string(), "call the tool again without requestState")
    }
}

/// What all answers to one question have in common, so that only the first of them counts.
fn only_answer(by: AgentId, transfer: Uuid, answer: &str) -> Idempotency {
    let scope = Digest::of(&[b"mcp answered", transfer.as_bytes()]);
    let request = Digest::of(&[answer.as_bytes()]);
    Idempotency { scope, request, principal: Principal::Agent(by) }
}

/// Runs a command even if the caller hangs up; `None` if another one was run as the only one.
async fn run_first(
    engine: &Engine,
    command: Command,
    once: Option<Idempotency>,
) -> Result<Option<Answer>, ToolError> {
    let engine = engine.clone();
    detached(async move {
        match engine.run_once(command, once).await {
            Ok(ran) => Ok((!ran.replayed).then_some(ran.answer)),
            Err(Failure::Refused(Refusal::SameIdOtherContent)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    })
    .await
}

/// Moves the credits; `None` if the agreement was used before, or the question answered.
async fn pay(
    call: &ToolCall,
    order: &TransferOrder,
    agreement: Agreement,
    once: Option<Idempotency>,
) -> Result<Option<ToolOutput>, ToolError> {
    let engine = &call.context.engine;
    let names = engine.with_world(|world| {
        let payer = world.agent(order.by).and_then(|agent| world.owner(agent.owner))?;
        Some((payer.name.clone(), world.owner(order.to)?.name.clone()))
    });
    let (from, to) = names.ok_or_else(ToolError::not_found)?;
    let content = Digest::of(&[b"mcp send_credits", &order.amount.micros().to_be_bytes()]);
    let command = Command::Pay(Box::new(Pay {
        origin: api_protocol().id(),
        foreign_id: agreement.transfer.to_string(),
        id_given: true,
        from,
        to,
        amount: order.amount,
        job: None,
        open_payee: false,
        content,
    }));
    match run_first(engine, command, once).await? {
        Some(Answer::Transfer { transfer, repeated: false }) => {
            let output = ObjectWriter::new()
                .flag("moved", true)
                .text("to", &order.receiver)
                .text("amount", &order.amount.to_text(DECIMALS))
                .text("transfer_id", &transfer.foreign_id)
                .text("available", &transfer.payer_balance.to_text(DECIMALS));
            Ok(Some(ToolOutput::new(output.finish())))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one_and_other_answers_are_ignored() {
        let read = |text: &str| {
            let json = ijson::read(text.as_bytes()).expect(text);
            UserAnswer::read(Some(&json))
        };
        let yes = r#"{"x":1,"confirm":{"action":"accept","content":{"send":true,"more":1}}}"#;
        assert_eq!(read(yes), UserAnswer::Yes);
        for no in [
            r#"{"confirm":{"action":"accept","content":{"send":false}}}"#,
            r#"{"confirm":{"action":"decline"}}"#,
            r#"{"confirm":{"action":"cancel","content":{"send":true}}}"#,
        ] {
            assert_eq!(read(no), UserAnswer::No, "{no}");
        }
        for missing in [
            "{}",
            r#"{"other":{"action":"accept","content":{"send":true}}}"#,
            r#"{"confirm":{"action":"accept"}}"#,
            r#"{"confirm":{"action":"accept","content":{"send":"true"}}}"#,
            r#"{"confirm":true}"#,
            r#"{"confirm":{"action":"ACCEPT","content":{"send":true}}}"#,
            "[]",
        ] {
            assert_eq!(read(missing), UserAnswer::Missing, "{missing}");
        }
        assert_eq!(UserAnswer::read(None), UserAnswer::Missing);
    }
}
