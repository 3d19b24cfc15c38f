//! `rialto msg send`.

use std::io::Read;

use rialto_client::CallError;
use rialto_client::relay::{Answered, Draft, Order, Outcome, Rejection, Said, Sent, Word, Words};
use serde_json::{Value, json};

use super::super::access::Access;
use super::super::key_file::KeyFile;
use super::super::say;
use super::super::trouble::Trouble;
use crate::exit::Exit;

/// The longest text that is read: no hub takes a longer message.
const TEXT_BYTES_MAX: u64 = 64 << 10;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto msg send --key-file alice.key --to bob 'Hello!'\n  date | rialto msg send --key-file alice.key --to bob@chorus -\n  RIALTO_KEY=ca_… rialto msg send --from alice@chorus --to bob --conversation c-1 --turn 1 'Hello!'\n  rialto msg send --key-file alice.key --to writer --stream 'A poem, please'\n\nThe sender is --from, or the agent of the key file. A message that could not be delivered ends with\nexit code 7 (receiver unreachable) or 8 (receiver silent)."
)]
pub struct Args {
    /// The receiver: NAME@HOST, or NAME for one at the hub's own host
    #[arg(long, value_name = "ID")]
    to: String,
    /// The sender, NAME@HOST; needed unless the key file names the agent
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// The sender's culture, a BCP 47 tag
    #[arg(long, value_name = "TAG", default_value = "en")]
    culture: String,
    /// What a reader of another culture should know, 10 to 500 characters
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// The conversation it belongs to
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Its place in the conversation, from 1; the hub takes each place once
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// Print the receiver's answer while it is being written
    #[arg(long)]
    stream: bool,
    /// Name this message, so that sending it again with the same name does not send a second one
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The text, or - to read it from standard input (without its last line break)
    text: String,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let keys = access.keys()?;
    let letter = draft(args, keys.as_ref())?.seal()?;
    let order = Order {
        receiver_id: &args.to,
        letter: &letter,
        idempotency_key: args.idempotency_key.as_deref(),
    };
    let server = access.server(keys.as_ref()).await?;
    let (sent, heard) = match args.stream {
        false => (server.send(&order).await?, None),
        true => match server.send_live(&order).await? {
            Answered::Whole(sent) => (sent, None),
            Answered::Live(words) => listen(access, *words).await?,
        },
    };
    report(access, args, sent, heard)
}

fn draft(args: &Args, keys: Option<&KeyFile>) -> Result<Draft, Trouble> {
    let remembered = keys.and_then(|keys| keys.agent_id.as_deref());
    let Some(sender) = args.from.as_deref().or(remembered) else {
        return Err(Trouble::usage(
            "there is no sender",
            "give --from NAME@HOST, or --key-file with a file that `rialto agent register --key-out` wrote",
        ));
    };
    let text = if args.text == "-" { read_text()? } else { args.text.clone() };
    Ok(Draft {
        cultural_context: args.context.clone(),
        conversation_id: args.conversation.clone(),
        turn_number: args.turn,
        ..Draft::new(sender, &args.culture, &text)
    })
}

fn read_text() -> Result<String, Trouble> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
    let wrong = |why: String| Trouble::usage(why, "give a shorter text in UTF-8");
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

/// Listens to the receiver; people hear it as it speaks.
async fn listen(access: &Access, mut words: Words) -> Result<(Sent, Option<Word>), Trouble> {
    let (mut last, mut sent, mut spoke) = (None, None, false);
    while let Some(said) = words.next().await {
        let text = match said? {
            Said::Delivery(delivery) => {
                sent = Some(delivery);
                continue;
            }
            Said::Word(Word::Chunk { text }) => text,
            Said::Word(word) => {
                // Some receivers say everything at once, at the end.
                let text = match &word {
                    Word::Done { full_text, .. } if !spoke => full_text.clone(),
                    _ => String::new(),
                };
                last = Some(word);
                text
            }
        };
        if !access.json && !text.is_empty() {
            spoke = true;
            let _ = say::piece(&say::lines(&text));
        }
    }
    if spoke {
        let _ = say::line("");
    }
    let cut = || CallError::Unreadable("it did not say what became of the message".to_owned());
    Ok((sent.ok_or_else(cut)?, last))
}

fn report(access: &Access, args: &Args, sent: Sent, heard: Option<Word>) -> Result<Exit, Trouble> {
    let exit = match &sent.outcome {
        Outcome::Rejected(why) => return Err(refusal(why.clone()).into()),
        Outcome::Failed { code, .. } => match code.as_str() {
            "ERR_AGENT_UNREACHABLE" => Exit::Unreachable,
            "ERR_TIMEOUT" => Exit::TimedOut,
            _ => Exit::Failed,
        },
        Outcome::Presented | Outcome::Delivered { .. } | Outcome::Queued => Exit::Ok,
    };
    if access.json {
        let _ = say::line(&document(&sent, heard).to_string());
        return Ok(exit);
    }
    let line = told(&args.to, &sent);
    // What the receiver said has standard output for itself.
    match exit == Exit::Ok && heard.is_none() {
        true => {
            let _ = say::line(&line);
        }
        false => eprintln!("rialto: {line}"),
    }
    Ok(exit)
}

fn refusal(why: Rejection) -> CallError {
    let Rejection { status, code, message, hint, retry_after } = why;
    CallError::Refused { status, code, message, retryable: false, hint, retry_after }
}

/// What became of the message, on one line.
fn told(to: &str, sent: &Sent) -> String {
    let what = match &sent.outcome {
        Outcome::Presented => format!("delivered to the open inbox of {to}"),
        Outcome::Delivered { reply: None } => format!("delivered to {to}"),
        Outcome::Delivered { reply: Some(reply) } => {
            format!("delivered to {to}, who replied {}", reply.get())
        }
        Outcome::Queued => format!("queued until {to} listens"),
        Outcome::Failed { code, detail } => format!("not delivered to {to}: {detail} ({code})"),
        Outcome::Rejected(why) => why.message.clone(),
    };
    let trace = sent.trace_id.as_ref().map(|id| format!(", trace {id}")).unwrap_or_default();
    say::one_line(&format!("{what}{trace}"))
}

fn document(sent: &Sent, heard: Option<Word>) -> Value {
    let mut document = json!({"delivery": sent.word(), "tries": sent.tries});
    let mut put = |name: &str, value: Value| document[name] = value;
    if let Some(trace_id) = &sent.trace_id {
        put("trace_id", json!(trace_id));
    }
    match &sent.outcome {
        Outcome::Delivered { reply: Some(reply) } => put("receiver_response", json!(reply)),
        Outcome::Failed { code, detail } => {
            put("error_code", json!(code));
            put("detail", json!(detail));
        }
        _ => {}
    }
    if sent.loop_guard {
        put("loop_guard", json!(true));
    }
    if let Some(Word::Done { full_text, envelope }) = heard {
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
    fn the_sender_is_the_one_given_or_the_one_of_the_key_file() {
        let mut keys = KeyFile::of("ca_1");
        let plain = args("--to bob Hello!");
        assert_eq!(draft(&plain, Some(&keys)).expect_err("nobody").exit, Exit::Usage);
        keys.agent_id = Some("alice@chorus".to_owned());
        let draft_of = |args: &Args| draft(args, Some(&keys)).expect("a draft");
        assert_eq!(draft_of(&plain).sender_id, "alice@chorus");
        let other = args("--to bob --from carol@chorus --conversation c --turn 3 Hello!");
        let draft = draft_of(&other);
        assert_eq!((draft.sender_id.as_str(), draft.turn_number), ("carol@chorus", Some(3)));
        assert_eq!((draft.sender_culture.as_str(), draft.original_text.as_str()), ("en", "Hello!"));
    }

    #[test]
    fn a_failure_is_told_with_its_code() {
        let outcome = Outcome::Failed { code: "ERR_TIMEOUT".into(), detail: "si\nlent".into() };
        let trace_id = Some("t".to_owned());
        let sent = Sent { outcome, trace_id, loop_guard: false, replayed: false, tries: 2 };
        assert_eq!(told("bob", &sent), "not delivered to bob: si\\nlent (ERR_TIMEOUT), trace t");
        let wanted = json!({"delivery": "failed", "tries": 2, "trace_id": "t",
            "error_code": "ERR_TIMEOUT", "detail": "si\nlent"});
        assert_eq!(document(&sent, None), wanted);
    }
}
