//! The JSON lines between an agent and a program that stays for more than its input and output.
//!
//! The program gets a job as one line. It may write `{"progress":…}`, `{"part":{…}}` and `{"ask":"…"}`
//! before it writes `output`, `error`, `decline` or `refuse`. It gets the answer to a question as
//! `{"answer":{…}}`; a program that reads more than jobs and answers also gets `{"message":{…}}` and
//! `{"cancelled":true}`. Every line has the `job_id`, which a program that has only one job may leave
//! out.

use rialto_protocols::kit::object::ObjectWriter;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{OUTPUT_MAX, REASON_MAX, too_long};
use crate::agent::dialogue::{NewQuestion, RequesterInput};
use crate::agent::job::Outcome;

/// What a program says about a job.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramLine {
    /// Something before the result.
    Report(ProgramReport),
    /// The result. Nothing counts after it.
    Outcome(Outcome),
}

/// What a program says before its result.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramReport {
    /// How far it is, and what it does.
    Progress {
        /// Between 0 and 1.
        fraction: Option<f64>,
        /// For people.
        text: Option<String>,
    },
    /// A part of the result.
    Part {
        /// JSON text.
        content: String,
        /// It continues the part before.
        append: bool,
    },
    /// A question to the requester.
    Ask(NewQuestion),
    /// The requester has to sign in elsewhere, as the text says.
    SignIn(String),
}

/// One line of the program.
#[derive(Deserialize)]
struct OutputLine<'a> {
    job_id: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    output: Option<&'a RawValue>,
    error: Option<Value>,
    decline: Option<Value>,
    refuse: Option<Value>,
    progress: Option<Value>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(default)]
    append: bool,
    ask: Option<Value>,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
    #[serde(default)]
    auth: bool,
}

/// Accepts an output that is present, even if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// What a line says, and about which job. `None` for a line that is about none; `only` is the job of
/// a program that has no other.
pub fn parse_line(line: &[u8], only: Option<&str>) -> Option<(String, ProgramLine)> {
    let (text, is_text) = match std::str::from_utf8(line) {
        Ok(text) => (text.into(), true),
        Err(_) => (String::from_utf8_lossy(line), false),
    };
    let mut line: OutputLine<'_> = serde_json::from_str(&text).ok()?;
    let named = line.job_id.take();
    let outcome = line.outcome(is_text).map(ProgramLine::Outcome);
    let said = outcome.or_else(|| line.report().map(ProgramLine::Report)).or_else(|| {
        // A line that names a job and says nothing else is a result that is missing.
        let why = "the program gave no output".to_owned();
        named.as_ref().map(|_| ProgramLine::Outcome(Outcome::Failed(why)))
    })?;
    Some((named.or_else(|| only.map(str::to_owned))?, said))
}

impl OutputLine<'_> {
    fn outcome(&self, is_text: bool) -> Option<Outcome> {
        Some(match (self.output, &self.error, &self.decline, &self.refuse) {
            (_, Some(why), ..) => Outcome::Failed(reason(why)),
            (_, None, Some(why), _) => Outcome::Declined(reason(why)),
            (_, None, None, Some(why)) => Outcome::Refused(reason(why)),
            (Some(_), ..) if !is_text => {
                Outcome::Failed("the output is not valid UTF-8".to_owned())
            }
            (Some(output), ..) if output.get().len() > OUTPUT_MAX => {
                Outcome::Failed(too_long("output", OUTPUT_MAX as u64))
            }
            (Some(output), ..) => Outcome::from_json_text(output.get()),
            (None, None, None, None) => return None,
        })
    }

    fn report(&self) -> Option<ProgramReport> {
        if let Some(part) = self.part {
            return Some(ProgramReport::Part {
                content: part.get().to_owned(),
                append: self.append,
            });
        }
        if let Some(question) = &self.ask {
            let text = text_of(question);
            return Some(match self.auth {
                true => ProgramReport::SignIn(text),
                false => {
                    let schema = self.schema.map(|schema| schema.get().to_owned());
                    ProgramReport::Ask(NewQuestion { text, schema })
                }
            });
        }
        let progress = self.progress.as_ref()?;
        let text = progress.as_str().or_else(|| progress.get("text")?.as_str());
        let fraction = progress.as_f64().or_else(|| progress.get("fraction")?.as_f64());
        let text = text.map(|text| text.chars().take(TEXT_MAX).collect());
        Some(ProgramReport::Progress { fraction, text })
    }
}

/// The longest text of a progress report that a hub accepts, in characters.
const TEXT_MAX: usize = 4_096;

/// The reason as text: a string, an object's `message`, or the JSON itself.
fn reason(why: &Value) -> String {
    text_of(why).chars().take(REASON_MAX).collect()
}

fn text_of(value: &Value) -> String {
    let text = value.as_str().or_else(|| value.get("message")?.as_str()).map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

/// The answer to the program's question.
pub(super) fn answer_line(job: &str, answer: &RequesterInput) -> String {
    input_line(job, "answer", answer)
}

/// What the program gets instead of an answer.
pub(super) fn no_answer_line(job: &str, why: &str) -> String {
    let line = ObjectWriter::new().text("job_id", job).raw("answer", "null").text("error", why);
    one_line(line)
}

/// A message of the requester that answers no question.
pub(super) fn message_line(job: &str, message: &RequesterInput) -> String {
    input_line(job, "message", message)
}

/// The result of the job is no longer wanted.
pub(super) fn cancelled_line(job: &str) -> String {
    one_line(ObjectWriter::new().text("job_id", job).raw("cancelled", "true"))
}

fn input_line(job: &str, name: &str, input: &RequesterInput) -> String {
    let line = ObjectWriter::new().text("job_id", job).raw(name, &input.input);
    one_line(line.maybe_raw("meta", input.meta.as_deref()))
}

/// The input may contain line breaks; a line must not.
fn one_line(line: ObjectWriter) -> String {
    let mut line = line.finish().replace(['\n', '\r'], " ");
    line.push('\n');
    line
}
