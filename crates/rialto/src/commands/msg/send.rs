//! `rialto msg send`: sends a message.

use std::io::Read;

use rialto_client::CallError;
use rialto_client::relay::{
    DeliveryOutcome, EnvelopeSpec, Rejection, ReplyEvent, ReplyStream, ReplyStreamItem,
    SendRequest, SendResponse, SentMessage, ValidEnvelope,
};
use rialto_core::money::Credits;
use serde_json::{Value, json};

use crate::commands::{CliError, CliResult, Exit, HubOptions, KeyFile, output};

/// The protocol of sender names.
const RELAY: &str = "relay";
/// The maximum length of a text; no hub accepts more.
const TEXT_BYTES_MAX: u64 = 64 << 10;
/// Decimals of a budget.
const DECIMALS: usize = 2;

#[derive(clap::Args)]
pub struct Args {
    /// Receiver: NAME@HOST, or NAME for an agent at the hub's own host
    #[arg(long, value_name = "ID")]
    to: String,
    /// Sender, NAME@HOST [default: the agent of the key]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Culture of the sender, a BCP 47 tag
    #[arg(long, value_name = "TAG", default_value = "en")]
    culture: String,
    /// Context for readers of another culture, 10 to 500 characters
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// Conversation of the message
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Turn number in the conversation, from 1; the hub accepts each once
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// Maximum price, like 0.05, if the receiver works for credits
    #[arg(long, value_name = "CREDITS", value_parser = budget)]
    budget: Option<Credits>,
    /// Ask the requester of the conversation's job; without it the message is the result
    #[arg(long, requires = "conversation")]
    question: bool,
    /// Print the receiver's reply while it is being written
    #[arg(long)]
    stream: bool,
    /// Idempotency key: sending again with the same key does not send a second message
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Text, or - to read it from standard input (without its last line break)
    text: String,
}

pub async fn run(options: &HubOptions, args: &Args) -> CliResult {
    let keys = options.load_key()?;
    let sender = find_sender(options, args.from.as_deref(), keys.as_ref()).await?;
    let envelope = build_envelope(args, &sender)?;
    let request = SendRequest {
        receiver_id: &args.to,
        envelope: &envelope,
        idempotency_key: args.idempotency_key.as_deref(),
        question: args.question,
    };
    let server = options.relay_server().await?;
    let (sent, reply) = if args.stream {
        match server.send_streaming(&request).await? {
            SendResponse::Complete(sent) => (sent, None),
            SendResponse::Streaming(stream) => read_reply(options, *stream).await?,
        }
    } else {
        (server.send(&request).await?, None)
    };
    print_result(options, args, sent, reply)
}

/// The sender's full address: the given one, or that of the key file, or the key's relay alias at
/// the hub.
async fn find_sender(
    options: &HubOptions,
    given: Option<&str>,
    keys: Option<&KeyFile>,
) -> CliResult<String> {
    // The key file of another protocol's agent holds a name of that protocol.
    let known = keys.and_then(|keys| keys.agent_id.as_deref()).filter(|id| id.contains('@'));
    if let Some(sender) = given.or(known) {
        return Ok(sender.to_owned());
    }
    let alias = match keys {
        // A relay server need not be a hub, and then it has no such endpoint.
        Some(_) => options.client_with_key()?.0.me().await.ok(),
        None => None,
    };
    alias.and_then(|mut me| me.agent.names.remove(RELAY)).ok_or_else(|| {
        let next = "use --from NAME@HOST, or --key-file with a file written by `rialto agent register --key-out`";
        CliError::usage("no sender given", next)
    })
}

fn build_envelope(args: &Args, sender: &str) -> CliResult<ValidEnvelope> {
    let text = if args.text == "-" { read_text()? } else { args.text.clone() };
    let spec = EnvelopeSpec {
        cultural_context: args.context.clone(),
        conversation_id: args.conversation.clone(),
        turn_number: args.turn,
        ..EnvelopeSpec::new(sender, &args.culture, &text)
    };
    let envelope = spec.build()?;
    let (Some(budget), Some(open)) = (args.budget, envelope.as_str().strip_suffix('}')) else {
        return Ok(envelope);
    };
    // Built as text, so that the amount never passes through a float.
    Ok(ValidEnvelope::read(&format!(r#"{open},"budget":{}}}"#, budget.to_text(DECIMALS)))?)
}

fn budget(text: &str) -> Result<Credits, String> {
    Credits::parse(text, DECIMALS).map_err(|why| format!("the budget {why}: write it like 0.05"))
}

fn read_text() -> CliResult<String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
    let wrong = |why: String| CliError::usage(why, "send a shorter text in UTF-8");
    read.map_err(|error| wrong(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(wrong(format!("the text has more than {TEXT_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("the text is not UTF-8".to_owned()))?;
    let text = text
        .strip_suffix('\n')
        .map(|text| text.strip_suffix('\r').unwrap_or(text))
        .unwrap_or(&text);
    Ok(text.to_owned())
}

/// Reads the streamed reply and prints it as it arrives.
async fn read_reply(
    options: &HubOptions,
    mut stream: ReplyStream,
) -> CliResult<(SentMessage, Option<ReplyEvent>)> {
    let (mut last, mut sent, mut has_printed) = (None, None, false);
    while let Some(item) = stream.next().await {
        let text = match item? {
            ReplyStreamItem::Delivery(delivery) => {
                sent = Some(delivery);
                continue;
            }
            ReplyStreamItem::Event(ReplyEvent::Chunk { text }) => text,
            ReplyStreamItem::Event(event) => {
                // Some receivers send the whole reply at the end.
                let text = match &event {
                    ReplyEvent::Done { full_text, .. } if !has_printed => full_text.clone(),
                    _ => String::new(),
                };
                last = Some(event);
                text
            }
        };
        if !options.json && !text.is_empty() {
            has_printed = true;
            let _ = output::print_text(&output::escape_lines(&text));
        }
    }
    if has_printed {
        output::print_data("");
    }
    let cut = || CallError::Unreadable("the server did not report the delivery".to_owned());
    Ok((sent.ok_or_else(cut)?, last))
}

fn print_result(
    options: &HubOptions,
    args: &Args,
    sent: SentMessage,
    reply: Option<ReplyEvent>,
) -> CliResult {
    let exit = match &sent.outcome {
        DeliveryOutcome::Rejected(why) => return Err(rejection_error(&args.to, why.clone())),
        DeliveryOutcome::Failed { code, .. } => match code.as_str() {
            "ERR_AGENT_UNREACHABLE" => Exit::Unreachable,
            "ERR_TIMEOUT" => Exit::TimedOut,
            _ => Exit::Failed,
        },
        DeliveryOutcome::DeliveredToInbox
        | DeliveryOutcome::Delivered { .. }
        | DeliveryOutcome::Queued => Exit::Ok,
    };
    let line = describe(&args.to, &sent);
    // Standard output is only for the reply.
    if options.json {
        output::print_data(document(&sent, reply));
    } else if exit == Exit::Ok && reply.is_none() {
        output::print_data(&line);
    } else {
        output::print_stderr(&format!("rialto: {line}"));
    }
    Ok(exit)
}

fn rejection_error(to: &str, why: Rejection) -> CliError {
    let Rejection { status, code, message, hint, retry_after } = why;
    if status != 200 {
        let refused =
            CallError::Refused { status, code, message, retryable: false, hint, retry_after };
        return refused.into();
    }
    // The receiver's own refusal. It names the `budget` field in the words of the protocol.
    let next = if message.contains("\"budget\"") {
        "set the maximum price with --budget".to_owned()
    } else {
        format!("`rialto agent show {to}` shows its skills and prices")
    };
    let suffix = if code.is_empty() { String::new() } else { format!(" ({code})") };
    let code = Some(code).filter(|code| !code.is_empty());
    CliError { code, ..CliError::failed(format!("{to} refused: {message}{suffix}"), next) }
}

/// The result of the delivery, on one line.
fn describe(to: &str, sent: &SentMessage) -> String {
    let what = match &sent.outcome {
        DeliveryOutcome::DeliveredToInbox => format!("delivered to the open inbox of {to}"),
        DeliveryOutcome::Delivered { reply: None } => format!("delivered to {to}"),
        DeliveryOutcome::Delivered { reply: Some(reply) } => {
            format!("delivered to {to}, which replied {}", reply.get())
        }
        DeliveryOutcome::Queued => format!("queued until {to} connects"),
        DeliveryOutcome::Failed { code, detail } => {
            format!("not delivered to {to}: {detail} ({code})")
        }
        DeliveryOutcome::Rejected(why) => why.message.clone(),
    };
    let trace = sent.trace_id.as_ref().map(|id| format!(", trace {id}")).unwrap_or_default();
    output::escape_line(&format!("{what}{trace}"))
}

fn document(sent: &SentMessage, reply: Option<ReplyEvent>) -> Value {
    let mut document = json!({"delivery": sent.delivery_status(), "tries": sent.tries});
    let mut put = |name: &str, value: Value| document[name] = value;
    if let Some(trace_id) = &sent.trace_id {
        put("trace_id", json!(trace_id));
    }
    match &sent.outcome {
        DeliveryOutcome::Delivered { reply: Some(reply) } => put("receiver_response", json!(reply)),
        DeliveryOutcome::Failed { code, detail } => {
            put("error_code", json!(code));
            put("detail", json!(detail));
        }
        _ => {}
    }
    if sent.loop_guard {
        put("loop_guard", json!(true));
    }
    if let Some(ReplyEvent::Done { full_text, envelope }) = reply {
        put("full_text", json!(full_text));
        let envelope: Option<Value> = envelope.and_then(|text| serde_json::from_str(&text).ok());
        put("envelope", json!(envelope));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        Line::parse_from(["send"].into_iter().chain(line.split(' '))).args
    }

    #[test]
    fn a_letter_says_what_was_typed_to_the_digit() {
        let typed = args("--to bob --conversation c --turn 3 --budget 0.1 Hello!");
        let envelope = build_envelope(&typed, "alice@chorus").expect("a letter");
        let expected = r#""original_text":"Hello!","sender_culture":"en","conversation_id":"c","turn_number":3,"budget":0.10}"#;
        assert!(envelope.as_str().ends_with(expected), "{}", envelope.as_str());
        assert!(budget("0.001").is_err() && budget("much").is_err());
    }

    #[test]
    fn a_receivers_no_is_told_with_what_to_type() {
        let no = |status, message: &str| {
            let (code, message) = ("ERR_X".to_owned(), message.to_owned());
            rejection_error(
                "bob",
                Rejection { status, code, message, hint: None, retry_after: None },
            )
        };
        let dear = no(200, "costs 0.05 credits: add \"budget\": 0.05 to the envelope");
        assert_eq!((dear.exit, dear.code.as_deref()), (Exit::Failed, Some("ERR_X")));
        assert!(dear.next.is_some_and(|next| next.contains("--budget")));
        assert!(no(200, "no such skill").next.is_some_and(|next| next.contains("agent show bob")));
        assert_eq!(no(404, "not found").exit, Exit::NotFound);
    }

    #[test]
    fn a_failure_is_told_with_its_code() {
        let outcome =
            DeliveryOutcome::Failed { code: "ERR_TIMEOUT".into(), detail: "si\nlent".into() };
        let trace_id = Some("t".to_owned());
        let sent = SentMessage { outcome, trace_id, loop_guard: false, replayed: false, tries: 2 };
        assert_eq!(
            describe("bob", &sent),
            "not delivered to bob: si\\nlent (ERR_TIMEOUT), trace t"
        );
        let expected = json!({"delivery": "failed", "tries": 2, "trace_id": "t",
            "error_code": "ERR_TIMEOUT", "detail": "si\nlent"});
        assert_eq!(document(&sent, None), expected);
    }
}
