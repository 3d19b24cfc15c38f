//! The dialogue about one assignment, over the hub's API.
//!
//! The hub is the record: it lists the questions of the assignment and their answers with the job,
//! so a program that was restarted finds what it had asked. Reports and parts have idempotency keys
//! that are the same for the same call of the same assignment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use reqwest::Method;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::{raw_json, rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::calls::{QuestionItem, until_answered};
use super::event::{AgentEvent, EventCallback};
use crate::agent::dialogue::{DialogueError, NewQuestion, RequesterInput, WorkClock};
use crate::agent::handlers::JobPermit;
use crate::agent::record::AssignmentRef;
use crate::call::{CallError, Hub};
use crate::worker::lock_ignoring_poison;

/// How long the start of a job waits until the hub knows of it.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(5);
/// The hub's code for a caller with too many idempotency records.
const TOO_MANY_KEPT: &str = "too_many_kept";

/// The dialogue about one assignment.
pub(in crate::agent) struct HubDialogue {
    hub: Hub,
    assignment: AssignmentRef,
    on_event: EventCallback,
    /// The requester follows the job step by step.
    is_followed: bool,
    /// One call at a time, so that the requester gets them in order; the number of the next one.
    calls: tokio::sync::Mutex<u64>,
    state: Mutex<DialogueState>,
    changed: Notify,
    /// Given back while the job waits for its requester.
    permit: OnceLock<Weak<JobPermit>>,
}

#[derive(Debug, Default)]
struct DialogueState {
    questions: Vec<KnownQuestion>,
    /// The answers by the numbers of their questions. One may arrive before the hub's response to the
    /// question.
    answers: BTreeMap<u32, RequesterInput>,
    /// How many of the questions were asked again since the program started.
    matched: usize,
    messages: VecDeque<RequesterInput>,
    /// The number of the newest message.
    last_message: u32,
    waiting_since: Option<Instant>,
    waited: Duration,
    /// The end of the lease when the job was listed, and now, by the hub's clock.
    lease: Option<(Timestamp, Timestamp)>,
    is_over: bool,
}

/// A question of this assignment.
#[derive(Clone, Debug)]
struct KnownQuestion {
    number: u32,
    question: NewQuestion,
    signs_in: bool,
}

impl std::fmt::Debug for HubDialogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubDialogue").field("assignment", &self.assignment).finish_non_exhaustive()
    }
}

/// What the worker has of the dialogue, for the next request for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownDialogue {
    /// The number of the last question whose answer it has.
    pub(super) answer: u32,
    /// The number of the last message that it has.
    pub(super) message: u32,
}

#[derive(Serialize)]
struct ReportBody<'a> {
    epoch: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Serialize)]
struct PartBody<'a> {
    epoch: u32,
    artifact: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    append: bool,
}

#[derive(Serialize)]
struct AskBody<'a> {
    epoch: u32,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auth: bool,
}

#[derive(Deserialize)]
struct ReportResponse {
    lease_until: Option<String>,
}

#[derive(Deserialize)]
struct AskResponse {
    question: Option<AskedQuestion>,
}

#[derive(Deserialize)]
struct AskedQuestion {
    number: u32,
}

impl HubDialogue {
    pub(super) fn new(
        hub: Hub,
        assignment: AssignmentRef,
        on_event: EventCallback,
        start: DialogueStart,
    ) -> Self {
        let DialogueStart { questions, messages, lease_until, is_followed } = start;
        let mut answers = BTreeMap::new();
        let known = |item: QuestionItem| {
            if let Some(answer) = item.answer {
                let meta = item.answer_meta.map(|meta| meta.get().to_owned());
                let answer = RequesterInput { input: answer.get().to_owned(), meta };
                answers.insert(item.number, answer);
            }
            let schema = item.schema.map(|schema| schema.get().to_owned());
            let question = NewQuestion { text: item.text, schema };
            KnownQuestion { number: item.number, question, signs_in: item.auth }
        };
        let questions = questions.into_iter().map(known).collect();
        let state = DialogueState {
            questions,
            answers,
            last_message: messages.last().map_or(0, |(number, _)| *number),
            messages: messages.into_iter().map(|(_, message)| message).collect(),
            lease: lease_until.map(|until| (until, until)),
            ..DialogueState::default()
        };
        Self {
            hub,
            assignment,
            on_event,
            is_followed,
            calls: tokio::sync::Mutex::new(0),
            state: Mutex::new(state),
            changed: Notify::new(),
            permit: OnceLock::new(),
        }
    }

    /// What the hub need not send again.
    pub(super) fn known(&self) -> KnownDialogue {
        let state = lock_ignoring_poison(&self.state);
        let answer = state.answers.last_key_value().map_or(0, |(number, _)| *number);
        KnownDialogue { answer, message: state.last_message }
    }

    /// Takes the answer to a question, once.
    pub(in crate::agent) fn take_answer(&self, number: u32, answer: RequesterInput) {
        self.change(|state| {
            state.answers.entry(number).or_insert(answer);
        });
    }

    /// Takes a message of the requester, once.
    pub(in crate::agent) fn take_message(&self, number: u32, message: RequesterInput) {
        self.change(|state| {
            if number > state.last_message {
                state.last_message = number;
                state.messages.push_back(message);
            }
        });
    }

    /// The assignment has ended for this worker.
    pub(in crate::agent) fn end(&self) {
        self.change(|state| state.is_over = true);
    }

    fn change<T>(&self, change: impl FnOnce(&mut DialogueState) -> T) -> T {
        let changed = change(&mut lock_ignoring_poison(&self.state));
        self.changed.notify_waiters();
        changed
    }

    /// Waits until `look` finds something.
    async fn until<T>(&self, mut look: impl FnMut(&mut DialogueState) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Register first and look afterwards, so that no change is missed.
            changed.as_mut().enable();
            if let Some(found) = look(&mut lock_ignoring_poison(&self.state)) {
                return found;
            }
            changed.await;
        }
    }

    pub(in crate::agent) async fn next_message(&self) -> RequesterInput {
        self.until(|state| state.messages.pop_front()).await
    }

    pub(in crate::agent) async fn cancelled(&self) {
        self.until(|state| state.is_over.then_some(())).await;
    }

    pub(in crate::agent) fn clock(&self) -> WorkClock {
        lock_ignoring_poison(&self.state).clock()
    }

    pub(in crate::agent) async fn clock_changed(&self, known: WorkClock) {
        self.until(|state| (state.clock() != known).then_some(())).await;
    }

    /// The hub has moved the end of the lease.
    pub(super) fn set_lease(&self, until: Option<Timestamp>) {
        self.change(|state| {
            if let (Some((_, end)), Some(until)) = (&mut state.lease, until) {
                *end = until;
            }
        });
    }

    /// The work starts. Only a requester that follows the job is told, because the others see the
    /// same whether or not they are.
    pub(in crate::agent) async fn begin(&self, permit: &Arc<JobPermit>) {
        let _ = self.permit.set(Arc::downgrade(permit));
        let _calls = self.calls.lock().await;
        let has_asked = !lock_ignoring_poison(&self.state).questions.is_empty();
        // A job that waits for an answer has begun.
        if self.is_followed && !has_asked {
            // The job itself is more important than the news of it.
            let _ = timeout(BEGIN_TIME_MAX, self.send_sign_of_life()).await;
        }
    }

    pub(in crate::agent) async fn go_on(&self) -> Result<(), DialogueError> {
        let _calls = self.ready().await?;
        self.send_sign_of_life().await?;
        self.end_wait().await;
        Ok(())
    }

    /// The job waits for its requester from now on.
    fn begin_wait(&self) {
        self.change(DialogueState::begin_wait);
        if let Some(permit) = self.permit() {
            permit.pause();
        }
    }

    /// The job goes on, as soon as it has a permit again.
    async fn end_wait(&self) {
        if let Some(permit) = self.permit() {
            permit.resume().await;
        }
        self.change(DialogueState::end_wait);
    }

    fn permit(&self) -> Option<Arc<JobPermit>> {
        self.permit.get().and_then(Weak::upgrade)
    }

    async fn send_sign_of_life(&self) -> Result<(), DialogueError> {
        let body = ReportBody { epoch: self.assignment.epoch, fraction: None, text: None };
        let text = self.post("progress", &body, None).await?;
        self.read_lease(&text);
        Ok(())
    }

    fn read_lease(&self, response: &str) {
        let response: Option<ReportResponse> = serde_json::from_str(response).ok();
        self.set_lease(response.and_then(|response| parse_time(&response.lease_until?)));
    }

    pub(in crate::agent) async fn report(
        &self,
        fraction: Option<f64>,
        text: Option<&str>,
    ) -> Result<(), DialogueError> {
        let fraction = fraction.map(|fraction| fraction.clamp(0.0, 1.0));
        let fraction = fraction.filter(|fraction| !fraction.is_nan());
        let body = ReportBody { epoch: self.assignment.epoch, fraction, text };
        self.send("progress", &body).await
    }

    pub(in crate::agent) async fn add_part(
        &self,
        part: &str,
        append: bool,
    ) -> Result<(), DialogueError> {
        let artifact: &RawValue = serde_json::from_str(part)?;
        self.send("parts", &PartBody { epoch: self.assignment.epoch, artifact, append }).await
    }

    /// Sends a report, once. It says that the worker goes on, also after a sign-in.
    async fn send(&self, verb: &str, body: &impl Serialize) -> Result<(), DialogueError> {
        let mut calls = self.ready().await?;
        *calls += 1;
        let text = self.post(verb, body, Some(*calls)).await?;
        self.read_lease(&text);
        self.end_wait().await;
        Ok(())
    }

    /// Waits until no question is open: the hub takes no report meanwhile.
    async fn ready(&self) -> Result<tokio::sync::MutexGuard<'_, u64>, DialogueError> {
        let calls = self.calls.lock().await;
        let is_open = |state: &DialogueState| {
            let last = state.questions.last().filter(|last| !last.signs_in);
            last.is_some_and(|last| !state.answers.contains_key(&last.number))
        };
        let is_over =
            self.until(|state| (state.is_over || !is_open(state)).then_some(state.is_over));
        if is_over.await { Err(DialogueError::Over) } else { Ok(calls) }
    }

    pub(in crate::agent) async fn ask(
        &self,
        question: NewQuestion,
    ) -> Result<RequesterInput, DialogueError> {
        let number = match self.find_asked(&question, false) {
            Some(number) => number,
            None => self.post_question(question, false).await?,
        };
        self.begin_wait();
        let answer = self.until(|state| {
            let answer = state.answers.get(&number).cloned();
            let is_over = state.is_over.then_some(Err(DialogueError::Over));
            answer.map(Ok).or(is_over)
        });
        let answer = answer.await;
        self.end_wait().await;
        answer
    }

    pub(in crate::agent) async fn ask_to_sign_in(&self, text: &str) -> Result<(), DialogueError> {
        let question = NewQuestion::new(text);
        if self.find_asked(&question, true).is_none() {
            self.post_question(question, true).await?;
        }
        self.begin_wait();
        Ok(())
    }

    /// The number of a question that this assignment asked before the program was started again.
    fn find_asked(&self, question: &NewQuestion, signs_in: bool) -> Option<u32> {
        self.change(|state| {
            let next = state.questions.get(state.matched)?;
            let is_same = next.question == *question && next.signs_in == signs_in;
            // A program that asks something else now has left the path of the earlier run.
            state.matched = if is_same { state.matched + 1 } else { state.questions.len() };
            is_same.then_some(next.number)
        })
    }

    /// Asks once, and returns the number of the question.
    async fn post_question(
        &self,
        question: NewQuestion,
        signs_in: bool,
    ) -> Result<u32, DialogueError> {
        let mut calls = self.ready().await?;
        *calls += 1;
        let body = AskBody {
            epoch: self.assignment.epoch,
            text: &question.text,
            schema: question.schema.as_deref().map(raw_json::verbatim),
            auth: signs_in,
        };
        let text = self.post("ask", &body, Some(*calls)).await?;
        let response: AskResponse = serde_json::from_str(&text)
            .map_err(|error| DialogueError::Call(CallError::unreadable(error)))?;
        // A question that the requester cannot answer ends the job.
        let number = response.question.ok_or(DialogueError::Over)?.number;
        let job = self.assignment.id.clone();
        (self.on_event)(AgentEvent::QuestionAsked { job, question: question.text.clone() });
        self.change(|state| {
            if state.questions.iter().all(|known| known.number != number) {
                state.questions.push(KnownQuestion { number, question, signs_in });
            }
            state.matched = state.questions.len();
        });
        Ok(number)
    }

    /// Posts to the job until the hub answers, with a key that is the same after a restart.
    async fn post(
        &self,
        verb: &str,
        body: &impl Serialize,
        call: Option<u64>,
    ) -> Result<String, DialogueError> {
        let AssignmentRef { id, epoch } = &self.assignment;
        let (path, body) = (format!("/v1/jobs/{id}/{verb}"), serde_json::to_string(body)?);
        let key = call.map(|call| {
            let parts = [id.as_bytes(), &epoch.to_be_bytes(), &call.to_be_bytes(), body.as_bytes()];
            call_key(verb, &parts)
        });
        let send = |key: Option<String>| {
            let (hub, path, body) = (&self.hub, &path, &body);
            until_answered("cannot tell the requester", &self.on_event, move || {
                hub.call_once(Method::POST, path, Some(body.clone()), key.clone())
            })
        };
        let answer = match send(key).await {
            Err(CallError::Refused { code, .. }) if code == TOO_MANY_KEPT => send(None).await,
            answer => answer,
        };
        match answer {
            Ok((_, text)) => Ok(text),
            Err(CallError::Refused { status: 404 | 409, .. }) => Err(DialogueError::Over),
            Err(error) => Err(DialogueError::Call(error)),
        }
    }
}

/// What is known of a dialogue when its job starts or goes on.
#[derive(Debug, Default)]
pub(super) struct DialogueStart {
    pub(super) questions: Vec<QuestionItem>,
    pub(super) messages: Vec<(u32, RequesterInput)>,
    pub(super) lease_until: Option<Timestamp>,
    pub(super) is_followed: bool,
}

impl DialogueState {
    fn clock(&self) -> WorkClock {
        let moved = self.lease.map_or(0, |(listed, now)| now.since(listed).0);
        WorkClock {
            is_waiting: self.waiting_since.is_some(),
            waited: self.waited,
            lease_moved: Duration::from_millis(u64::try_from(moved).unwrap_or(0)),
        }
    }

    fn begin_wait(&mut self) {
        self.waiting_since.get_or_insert_with(Instant::now);
    }

    fn end_wait(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
    }
}

/// A time of the hub.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    rfc3339::parse(text).ok()
}

/// Identifies one call about a job.
fn call_key(verb: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in [verb.as_bytes()].iter().chain(parts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..16])
}

/// The dialogue about a job `j` at a hub, for tests.
#[cfg(test)]
pub(in crate::agent) fn test_dialogue(url: &str) -> Arc<HubDialogue> {
    let assignment = AssignmentRef { id: "j".to_owned(), epoch: 1 };
    let hub = Hub::new(url).expect("a client");
    let on_event: EventCallback = Arc::new(|_| {});
    Arc::new(HubDialogue::new(hub, assignment, on_event, DialogueStart::default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::agent::dialogue::{Dialogue, WorkLimits};
    use crate::agent::handlers::{Concurrency, Handlers};
    use crate::agent::{Job, Outcome, Skill};
    use crate::testing::{RecordedRequest, TestServer, answer, in_time};

    /// A hub that numbers questions, and repeats an answer to a repeated key.
    async fn hub() -> TestServer {
        let asked = Mutex::new(Vec::<String>::new());
        TestServer::new(move |request, _| {
            let body = match request.target.rsplit('/').next() {
                Some("ask") => {
                    let mut asked = lock_ignoring_poison(&asked);
                    let key = request.header("idempotency-key").expect("a key").to_owned();
                    if !asked.contains(&key) {
                        asked.push(key.clone());
                    }
                    let number = 1 + asked.iter().position(|known| *known == key).unwrap_or(0);
                    format!(r#"{{"state":"asking","question":{{"number":{number}}}}}"#)
                }
                _ => r#"{"state":"running","lease_until":"2026-01-01T00:20:00.000Z"}"#.to_owned(),
            };
            answer(200, "", &body)
        })
        .await
    }

    fn dialogue(server: &TestServer, start: DialogueStart) -> (Arc<HubDialogue>, Dialogue) {
        let assignment = AssignmentRef { id: "j".to_owned(), epoch: 2 };
        let hub = Hub::new(&server.url).expect("a client");
        let hub = HubDialogue::new(hub, assignment, Arc::new(|_| {}), start);
        let hub = Arc::new(hub);
        (Arc::clone(&hub), Dialogue::at_hub(hub))
    }

    fn text(text: &str) -> RequesterInput {
        RequesterInput { input: json!({ "text": text }).to_string(), meta: None }
    }

    fn asked(number: u32, text: &str, answer: Option<&str>) -> QuestionItem {
        let answer = answer.map(|answer| json!({ "text": answer }));
        let item = json!({"number": number, "text": text, "answer": answer});
        serde_json::from_str(&item.to_string()).expect("a question")
    }

    /// What was posted, without the keys.
    fn posted(server: &TestServer) -> Vec<(String, Value)> {
        let body = |request: &RecordedRequest| serde_json::from_str(&request.body).expect("JSON");
        let heard = server.heard();
        heard.iter().map(|request| (request.target.clone(), body(request))).collect()
    }

    #[tokio::test]
    async fn reports_parts_and_questions_reach_the_hub_in_order() {
        let server = hub().await;
        let (hub, dialogue) = dialogue(&server, DialogueStart::default());
        dialogue.report_progress(Some(0.5), Some("half")).await.expect("told");
        dialogue.add_part(&json!({"page": 1})).await.expect("told");
        dialogue.append_to_part(&json!({"page": 2})).await.expect("told");
        let asking = dialogue.clone();
        let answer = tokio::spawn(async move {
            asking.ask(NewQuestion::new("which city?").schema(r#"{"type":"object"}"#)).await
        });
        in_time(async {
            while server.heard().len() < 4 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        hub.take_answer(1, text("Lugano"));
        hub.take_answer(1, text("Bern"));
        let answer = in_time(answer).await.expect("no panic").expect("an answer");
        assert_eq!(answer.text().as_deref(), Some("Lugano"));
        assert_eq!(hub.known(), KnownDialogue { answer: 1, message: 0 });
        let post = |verb: &str, body: Value| (format!("/v1/jobs/j/{verb}"), body);
        let expected = [
            post("progress", json!({"epoch": 2, "fraction": 0.5, "text": "half"})),
            post("parts", json!({"epoch": 2, "artifact": {"page": 1}})),
            post("parts", json!({"epoch": 2, "artifact": {"page": 2}, "append": true})),
            post("ask", json!({"epoch": 2, "text": "which city?", "schema": {"type": "object"}})),
        ];
        assert_eq!(posted(&server), expected);
    }

    #[tokio::test]
    async fn the_same_calls_have_the_same_keys_after_a_restart() {
        let server = hub().await;
        for _ in 0..2 {
            let (_, dialogue) = dialogue(&server, DialogueStart::default());
            dialogue.report("one").await.expect("told");
            dialogue.report("one").await.expect("told");
        }
        let heard = server.heard();
        let keys: Vec<_> = heard.iter().map(|one| one.header("idempotency-key")).collect();
        assert!(keys[0].is_some() && keys[0] != keys[1], "two reports are two: {keys:?}");
        assert_eq!(keys[..2], keys[2..]);
    }

    #[tokio::test]
    async fn a_question_is_not_asked_again_after_a_restart_and_another_one_is_new() {
        let server = hub().await;
        let questions = vec![asked(1, "which city?", Some("Lugano")), asked(2, "when?", None)];
        let start = DialogueStart { questions, ..DialogueStart::default() };
        let (hub, dialogue) = dialogue(&server, start);
        let city = dialogue.ask("which city?").await.expect("an answer");
        assert_eq!(city.text().as_deref(), Some("Lugano"));
        let asking = dialogue.clone();
        let when = tokio::spawn(async move { asking.ask("when?").await });
        hub.until(|state| state.waiting_since.map(drop)).await;
        assert!(server.heard().is_empty(), "both were asked before");
        // What the program asks meanwhile waits, because one question is open at a time.
        let asking = dialogue.clone();
        let more = tokio::spawn(async move { asking.ask("and how?").await });
        hub.take_answer(2, text("on Monday"));
        let when = in_time(when).await.expect("no panic").expect("an answer");
        assert_eq!(when.text().as_deref(), Some("on Monday"));
        in_time(async {
            while server.heard().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(
            posted(&server),
            [("/v1/jobs/j/ask".to_owned(), json!({"epoch": 2, "text": "and how?"}))]
        );
        more.abort();
    }

    #[tokio::test]
    async fn a_program_that_asks_something_else_after_a_restart_is_heard() {
        let server = hub().await;
        let questions = vec![asked(7, "which city?", Some("Lugano"))];
        let start = DialogueStart { questions, ..DialogueStart::default() };
        let (hub, dialogue) = dialogue(&server, start);
        let asking = dialogue.clone();
        let when = tokio::spawn(async move { asking.ask("when?").await });
        hub.until(|state| state.waiting_since.map(drop)).await;
        hub.take_answer(1, text("on Monday"));
        let when = in_time(when).await.expect("no panic").expect("an answer");
        assert_eq!(when.text().as_deref(), Some("on Monday"));
        assert_eq!(server.heard().len(), 1);
    }

    #[tokio::test]
    async fn a_question_that_ends_the_job_and_the_end_of_the_job_are_told() {
        let server = TestServer::new(|_, _| answer(200, "", r#"{"state":"failed"}"#)).await;
        let (hub, dialogue) = dialogue(&server, DialogueStart::default());
        let ended = dialogue.ask("which city?").await;
        assert!(matches!(ended, Err(DialogueError::Over)), "{ended:?}");
        hub.end();
        in_time(dialogue.cancelled()).await;
        let late = dialogue.report("too late").await;
        assert!(matches!(late, Err(DialogueError::Over)), "{late:?}");
        assert_eq!(server.heard().len(), 1);
    }

    #[tokio::test]
    async fn messages_come_once_and_in_order() {
        let server = hub().await;
        let messages = vec![(1, text("a")), (2, text("b"))];
        let start = DialogueStart { messages, ..DialogueStart::default() };
        let (hub, dialogue) = dialogue(&server, start);
        for (number, said) in [(2, "b"), (3, "c"), (3, "c")] {
            hub.take_message(number, text(said));
        }
        for said in ["a", "b", "c"] {
            assert_eq!(dialogue.next_message().await.text().as_deref(), Some(said));
        }
        assert_eq!(hub.known(), KnownDialogue { answer: 0, message: 3 });
        let none = timeout(Duration::from_millis(20), dialogue.next_message()).await;
        assert!(none.is_err());
    }

    #[tokio::test]
    async fn only_a_followed_job_that_was_not_begun_reports_its_start() {
        let (server, permit) = (hub().await, Handlers::builder().build().acquire().await);
        for (is_followed, questions) in
            [(false, vec![]), (true, vec![asked(1, "when?", None)]), (true, vec![])]
        {
            let start = DialogueStart { is_followed, questions, ..DialogueStart::default() };
            let limits = WorkLimits { work: Duration::MAX, until_deadline: Duration::MAX };
            dialogue(&server, start).1.begin(limits, &permit).await;
        }
        assert_eq!(posted(&server), [("/v1/jobs/j/progress".to_owned(), json!({"epoch": 2}))]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_limit_rests_while_the_worker_waits_and_the_deadline_moves_with_the_lease() {
        let hub = Hub::new("http://127.0.0.1:1").expect("a client");
        let lease_until = parse_time("2026-01-01T00:10:00.000Z");
        let start = DialogueStart { lease_until, ..DialogueStart::default() };
        let assignment = AssignmentRef { id: "j".to_owned(), epoch: 1 };
        let hub = Arc::new(HubDialogue::new(hub, assignment, Arc::new(|_| {}), start));
        let seconds = Duration::from_secs;
        let limits = |work, until_deadline| WorkLimits {
            work: seconds(work),
            until_deadline: seconds(until_deadline),
        };
        let permit = Handlers::builder().build().acquire().await;
        let mut dialogue = Dialogue::at_hub(Arc::clone(&hub));
        dialogue.begin(limits(30, 40), &permit).await;
        let began = Instant::now();
        let limited = tokio::spawn(dialogue.limit_reached(Duration::MAX, Duration::ZERO));
        tokio::time::sleep(seconds(20)).await;
        hub.change(|state| state.begin_wait());
        tokio::time::sleep(seconds(3_600)).await;
        assert!(!limited.is_finished());
        hub.set_lease(parse_time("2026-01-01T01:20:00.000Z"));
        hub.change(|state| state.end_wait());
        limited.await.expect("no panic");
        assert_eq!(began.elapsed(), seconds(3_630));
        // A deadline that does not move ends the work before its own limit.
        let (began, mut dialogue) = (Instant::now(), Dialogue::default());
        dialogue.begin(limits(30, 10), &permit).await;
        dialogue.limit_reached(Duration::MAX, seconds(5)).await;
        assert_eq!(began.elapsed(), seconds(15));
    }

    #[tokio::test]
    async fn a_job_that_waits_for_its_requester_keeps_no_other_from_running() {
        let server = hub().await;
        let skill = Skill::new("plan", "0").expect("a skill");
        let handlers = Handlers::builder().concurrency(Concurrency(1)).skill(skill, asks).build();
        let (waits, first) = dialogue(&server, DialogueStart::default());
        let (other, second) = dialogue(&server, DialogueStart::default());
        let run = |dialogue: Dialogue| {
            let (handlers, job) = (handlers.clone(), job(dialogue));
            tokio::spawn(async move { handlers.run_job(job).await })
        };
        let first = run(first);
        in_time(waits.until(|state| state.waiting_since.map(drop))).await;
        assert!(!handlers.is_full());
        let second = run(second);
        in_time(other.until(|state| state.waiting_since.map(drop))).await;
        other.take_answer(1, text("Bern"));
        assert_eq!(
            in_time(second).await.expect("no panic"),
            Outcome::Done(r#"{"text":"Bern"}"#.to_owned())
        );
        // It goes on only with a permit.
        let permit = handlers.acquire().await;
        waits.take_answer(1, text("Lugano"));
        let early = timeout(
            Duration::from_millis(50),
            waits.until(|state| (!state.clock().is_waiting).then_some(())),
        );
        assert!(early.await.is_err() && !first.is_finished());
        drop(permit);
        assert_eq!(
            in_time(first).await.expect("no panic"),
            Outcome::Done(r#"{"text":"Lugano"}"#.to_owned())
        );
    }

    async fn asks(job: Job) -> Outcome {
        match job.dialogue.ask("which city?").await {
            Ok(answer) => Outcome::Done(answer.input),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    fn job(dialogue: Dialogue) -> Job {
        Job {
            id: "j".to_owned(),
            epoch: 2,
            skill: "plan".to_owned(),
            input: "{}".to_owned(),
            requester: "alice".to_owned(),
            budget: rialto_core::money::Credits::ZERO,
            deadline: None,
            time_limit: Duration::MAX,
            meta: None,
            dialogue,
        }
    }
}
