//! Workers that their own protocol calls: what it records, what they say in their own words, and
//! what happens while they cannot be reached.

use super::*;
use crate::agent::Liveness;
use crate::agent::key::Holder;
use crate::alias::{ClaimTarget, Digest, Protocol};
use crate::command::{
    AskQuestion, Canceller, HandoverStage, JobRef, OriginalReport, RecordHandover, ReportOriginal,
    ReportProgress, ReportResult, SendToWorker, UpdateCard,
};
use crate::id::JobId;
use crate::job::log::{LogContent, Step};
use crate::job::open::HOPS_MAX;
use crate::job::progress::{ProgressUpdate, ResultPart};
use crate::job::{Cause, Handover, Original, RequesterMessage, State};
use crate::notice::NoticeKind;
use crate::testkit::{AWAY, HOME, JOB_LIFETIME, LEASE, agent_in, credits, job_in};

/// An agent of the other protocol, which calls it.
fn called(scene: &mut TestHub, native: &str) -> AgentId {
    let order = registration(native, "acme", &[("sum", "0.10")]);
    scene.register(Registration { home: AWAY, liveness: Liveness::ByEndpoint, ..order }).unwrap()
}

/// A client that can answer, and a called agent.
fn pair() -> (TestHub, AgentId, AgentId) {
    let (mut scene, client) = market();
    let holder = Holder::Agent(client);
    let key = Command::IssueKey { holder, hash: [7; 32], retire_others: false, by_operator: false };
    scene.run(key).unwrap();
    let worker = called(&mut scene, "worker");
    (scene, client, worker)
}

/// A job for one agent, from this protocol.
fn ask_for(scene: &mut TestHub, client: AgentId, worker: AgentId, origin: Protocol) -> JobId {
    let order = order_for(scene, client, worker);
    let policy = Policy {
        requester: RequesterOptions { follows_log: true, waits: true, ..Default::default() },
        named_worker: NamedWorker { may_be_offline: true, not_before: None },
        ..Policy::default()
    };
    scene.try_open_job(OpenJob { origin, policy, ..order }).unwrap().id
}

fn handover(job: JobId, by: AgentId, stage: HandoverStage) -> RecordHandover {
    let state = Some(r#"{"n":1}"#.to_owned());
    RecordHandover { job: JobRef::Id(job), by, epoch: 1, state, stage, conversation: None }
}

fn record(scene: &mut TestHub, order: RecordHandover) -> Result<std::sync::Arc<Job>, Refusal> {
    scene.run(Command::RecordHandover(Box::new(order))).map(job_in)
}

fn own(scene: &mut TestHub, report: OriginalReport) -> Result<std::sync::Arc<Job>, Refusal> {
    let original = r#"{"own":true}"#.to_owned();
    scene.run(Command::ReportOriginal(Box::new(ReportOriginal { report, original }))).map(job_in)
}

fn original(protocol: Protocol) -> Option<Original> {
    Some(Original { protocol, text: r#"{"own":true}"#.to_owned() })
}

fn part(job: JobId, by: AgentId) -> ReportProgress {
    let part = Some(ResultPart { content: "{}".to_owned(), append: false });
    let update = ProgressUpdate { part, ..ProgressUpdate::default() };
    ReportProgress { job: JobRef::Id(job), by, epoch: Some(1), update }
}

#[test]
fn a_job_that_is_being_sent_is_handed_over_and_not_yet_received() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    let turn = scene.job(job).assignment.unwrap();
    assert!(!turn.handed_over, "its protocol has not begun yet");
    let sent = record(&mut scene, handover(job, worker, HandoverStage::Sending)).unwrap();
    let turn = sent.assignment.unwrap();
    assert_eq!((turn.handed_over, turn.received_at), (true, None));
    assert_eq!(sent.handover, Some(Handover { state: r#"{"n":1}"#.to_owned(), news: 0 }));
    let wrong = Err(Refusal::WrongState { state: State::Assigned });
    let cancel =
        Command::Cancel { job: JobRef::Id(job), by: Canceller::Agent(client), reason: None };
    assert_eq!(scene.run(cancel), wrong, "it may be there already");
    scene.advance(Millis::seconds(5));
    let there = record(&mut scene, handover(job, worker, HandoverStage::Received)).unwrap();
    assert_eq!(there.assignment.unwrap().received_at, Some(scene.now));
    assert_eq!(there.state, State::Assigned);
    let works = record(&mut scene, handover(job, worker, HandoverStage::Working)).unwrap();
    assert_eq!(works.state, State::Running);
    assert!(!works.pending, "its requester goes on waiting");
}

#[test]
fn what_the_worker_shows_is_a_sign_of_life_and_what_is_sent_to_it_is_not() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    let ends = |scene: &TestHub| scene.job(job).assignment.unwrap().until;
    let first = ends(&scene);
    scene.advance(Millis::minutes(1));
    record(&mut scene, handover(job, worker, HandoverStage::Sending)).unwrap();
    assert_eq!(ends(&scene), first);
    let received = handover(job, worker, HandoverStage::Received);
    record(&mut scene, RecordHandover { state: None, ..received }).unwrap();
    assert_eq!(ends(&scene), scene.now.plus(LEASE));
    let kept = scene.job(job).handover.clone().unwrap();
    assert_eq!((kept.state.as_str(), kept.news), (r#"{"n":1}"#, 1), "the state stays");
}

#[test]
fn only_the_protocol_of_the_current_worker_records_it() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    let order = handover(job, worker, HandoverStage::Received);
    let strange = RecordHandover { by: client, ..order.clone() };
    assert_eq!(record(&mut scene, strange), Err(Refusal::NotFound));
    let old = RecordHandover { epoch: 2, ..order.clone() };
    assert_eq!(record(&mut scene, old), Err(Refusal::OtherAssignment { epoch: 1 }));
    scene.succeed(job, "0.10");
    let over = Err(Refusal::WrongState { state: State::Completed });
    assert_eq!(record(&mut scene, order), over);
}

#[test]
fn the_record_ends_with_the_assignment_and_stays_with_an_ended_job() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    record(&mut scene, handover(job, worker, HandoverStage::Sending)).unwrap();
    scene.unreachable(job);
    assert_eq!((scene.state(job), &scene.job(job).handover), (State::Queued, &None));
    reach(&mut scene, worker);
    assert_eq!((scene.state(job), scene.job(job).epoch), (State::Assigned, 2));
    let again = RecordHandover { epoch: 2, ..handover(job, worker, HandoverStage::Working) };
    record(&mut scene, again).unwrap();
    assert!(scene.succeed(job, "0.10").handover.is_some());
}

#[test]
fn a_conversation_leads_to_its_first_job() {
    let (mut scene, client, worker) = pair();
    let name = Digest::of(&[b"talk"]);
    let [first, second] = [(); 2].map(|()| ask_for(&mut scene, client, worker, HOME));
    for job in [first, second] {
        let order = handover(job, worker, HandoverStage::Received);
        record(&mut scene, RecordHandover { conversation: Some(name), ..order }).unwrap();
    }
    let known = scene.store.rows.claims.iter().filter(|claim| claim.digest == name);
    let targets: Vec<ClaimTarget> = known.map(|claim| claim.target).collect();
    assert_eq!(targets, [ClaimTarget::Job(first)]);
}

/// The worker's protocol fetches its card, which is as it was.
fn reach(scene: &mut TestHub, worker: AgentId) {
    scene.run(Command::UpdateCard(Box::new(same_card(scene, worker)))).unwrap();
}

fn same_card(scene: &TestHub, worker: AgentId) -> UpdateCard {
    let agent = scene.agent(worker).clone();
    UpdateCard {
        agent: worker,
        known: Digest::of(&[agent.card.as_bytes()]),
        name: agent.name,
        skills: agent.skills,
        card: agent.card,
        is_changed: false,
        is_reached: true,
    }
}

#[test]
fn an_agent_that_its_protocol_calls_is_back_only_when_it_is_reached() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    let other = ask_for(&mut scene, client, worker, HOME);
    scene.unreachable(job);
    scene.run(Command::RecordActivity { agent: worker }).unwrap();
    let now = scene.now.plus(Millis(1));
    scene.world.record_activity(worker, now);
    let failed = UpdateCard { is_reached: false, ..same_card(&scene, worker) };
    scene.run(Command::UpdateCard(Box::new(failed))).unwrap();
    assert!(!scene.is_online(worker), "its own calls and a failed fetch do not count");
    assert_eq!(scene.state(job), State::Queued);
    record(&mut scene, handover(other, worker, HandoverStage::Sending)).unwrap();
    assert!(!scene.is_online(worker), "nothing was answered yet");
    record(&mut scene, handover(other, worker, HandoverStage::Received)).unwrap();
    assert!(scene.is_online(worker));
    assert_eq!(scene.state(job), State::Assigned);
}

#[test]
fn a_job_for_a_named_agent_waits_until_its_protocol_reaches_it_again() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    scene.unreachable(job);
    assert_eq!(scene.state(job), State::Queued);
    let other = ask_for(&mut scene, client, worker, HOME);
    assert_eq!(scene.state(other), State::Queued, "and so does the next one");
    assert_eq!(scene.balance_text("rich").1, "1.00", "both are held for");
    scene.register_worker("bystander", "other", &[("sum", "0.10")]);
    assert_eq!(scene.state(job), State::Queued, "another agent does not take it");
    reach(&mut scene, worker);
    assert_eq!([scene.state(job), scene.state(other)], [State::Assigned; 2]);
}

#[test]
fn an_agent_that_stays_away_costs_its_requester_nothing_and_itself_no_score() {
    let (mut scene, client, worker) = pair();
    let score = scene.score(worker);
    let job = ask_for(&mut scene, client, worker, HOME);
    scene.unreachable(job);
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(scene.score(worker), score);
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn a_job_that_its_requester_follows_never_vanishes() {
    let (mut scene, client, worker) = pair();
    let order = scene.job_order(client, "sum", "1.00");
    let requester = RequesterOptions { follows_log: true, waits: true, ..Default::default() };
    let policy = Policy { requester, ..Policy::default() };
    let job = scene.try_open_job(OpenJob { policy, ..order }).unwrap();
    assert_eq!(job.worker(), Some(worker));
    scene.unreachable(job.id);
    let ended = scene.job(job.id);
    let cause = ended.result.as_ref().and_then(|result| result.cause);
    assert_eq!((ended.state, cause), (State::Failed, Some(Cause::NoWorkerLeft)));
}

#[test]
fn a_requester_that_waits_is_not_answered_that_it_takes_longer() {
    let (mut scene, client, worker) = pair();
    let job = hire(&mut scene, client, worker).unwrap();
    assert!(!job.pending);
    let polls = registration("polls", "acme", &[("sum", "0.10")]);
    let polls = scene.register(Registration { liveness: Liveness::ByPolling, ..polls }).unwrap();
    assert!(hire(&mut scene, client, polls).unwrap().pending);
}

#[test]
fn calling_an_agent_is_one_more_bridge() {
    let (mut scene, client, worker) = pair();
    let order = order_for(&mut scene, client, worker);
    let last = OpenJob { hops: HOPS_MAX - 1, ..order };
    assert!(scene.try_open_job(last).is_ok());
    let order = order_for(&mut scene, client, worker);
    let refused = scene.try_open_job(OpenJob { hops: HOPS_MAX, ..order });
    assert_eq!(refused, Err(Refusal::BridgeLoop { max: HOPS_MAX }));
    let order = scene.job_order(client, "sum", "1.00");
    let any = scene.try_open_job(OpenJob { hops: HOPS_MAX, ..order });
    assert_eq!(any, Err(Refusal::Offline), "nor is it chosen");
}

#[test]
fn the_log_of_a_job_keeps_the_words_of_its_worker() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, AWAY);
    own(&mut scene, OriginalReport::Progress(part(job, worker))).unwrap();
    let (wanted, text) = (JobRef::Id(job), "which city?".to_owned());
    let asked = AskQuestion { job: wanted, by: worker, epoch: Some(1), text, schema: None };
    let shown = own(&mut scene, OriginalReport::Question(asked)).unwrap();
    assert_eq!(shown.questions[0].original, original(AWAY));
    let input = "{}".to_owned();
    let answer = SendToWorker { job: JobRef::Id(job), by: client, body: input.clone(), input };
    let answered = job_in(scene.run(Command::SendToWorker(Box::new(answer))).unwrap());
    assert!(matches!(&answered.messages[..], [RequesterMessage { .. }]));
    let report = ReportResult { epoch: Some(1), ..scene.job_report(job, true, "0.10") };
    let ended = own(&mut scene, OriginalReport::Result(report)).unwrap();
    assert_eq!(ended.result.as_ref().unwrap().original, original(AWAY));
    let log = scene.store.rows.notices.iter().filter_map(|notice| match &notice.news {
        NoticeKind::OriginalProgress { report, original: own, .. } => {
            assert_eq!(Some(own.clone()), original(AWAY));
            Some(LogContent::Report(report.update.clone()))
        }
        NoticeKind::Step { step, .. } => Some(LogContent::Step(step.step)),
        _ => None,
    });
    let steps = [
        LogContent::Step(Step::Working),
        LogContent::Report(part(job, worker).update),
        LogContent::Step(Step::InputRequired { question: 1 }),
        LogContent::Step(Step::Working),
        LogContent::Step(Step::Ended),
    ];
    assert_eq!(log.collect::<Vec<_>>(), steps, "no result: it is in the words of the worker");
}

#[test]
fn a_requester_of_another_protocol_gets_the_result_in_the_log() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, HOME);
    let report = ReportResult {
        output: Some("{}".to_owned()),
        epoch: Some(1),
        ..scene.job_report(job, true, "0.10")
    };
    own(&mut scene, OriginalReport::Result(report)).unwrap();
    let is_result = |notice: &&std::sync::Arc<crate::notice::Notice>| matches!(&notice.news, NoticeKind::Step { step, .. } if step.step == Step::Result);
    assert_eq!(scene.store.rows.notices.iter().filter(is_result).count(), 1);
}

#[test]
fn a_decline_that_ends_the_job_keeps_the_words_of_its_worker() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, AWAY);
    let (wanted, reason) = (JobRef::Id(job), Some("no".to_owned()));
    let decline = OriginalReport::Decline { job: wanted, by: worker, epoch: Some(1), reason };
    let ended = own(&mut scene, decline).unwrap();
    let result = ended.result.as_ref().unwrap();
    assert_eq!((result.cause, &result.original), (Some(Cause::Policy), &original(AWAY)));
}

#[test]
fn words_that_were_refused_appear_nowhere() {
    let (mut scene, client, worker) = pair();
    let job = ask_for(&mut scene, client, worker, AWAY);
    let late = ReportProgress { epoch: Some(2), ..part(job, worker) };
    let refused = own(&mut scene, OriginalReport::Progress(late));
    assert_eq!(refused, Err(Refusal::OtherAssignment { epoch: 1 }));
    assert_eq!(scene.succeed(job, "0.10").result.as_ref().unwrap().original, None);
}

#[test]
fn a_worker_that_cannot_use_the_input_or_may_not_have_the_job_is_not_to_blame() {
    for cause in [Cause::InputMisfit, Cause::UnknownFate] {
        let (mut scene, client, worker) = pair();
        let score = scene.score(worker);
        let job = ask_for(&mut scene, client, worker, HOME);
        let report = ReportResult { cause: Some(cause), ..scene.job_report(job, false, "0.10") };
        let ended = job_in(scene.run(Command::ReportResult(Box::new(report))).unwrap());
        assert_eq!((ended.state, scene.score(worker)), (State::Failed, score));
        assert_eq!(scene.balance_text("rich").1, "0.00");
    }
}

#[test]
fn a_card_is_replaced_only_if_it_is_the_one_that_was_read() {
    let (mut scene, client, worker) = pair();
    let update = |known: &str, price: &str| UpdateCard {
        agent: worker,
        known: Digest::of(&[known.as_bytes()]),
        name: "worker".to_owned(),
        skills: vec![skill("sum", price)],
        card: r#"{"n":1}"#.to_owned(),
        is_changed: true,
        is_reached: false,
    };
    let run = |scene: &mut TestHub, order: UpdateCard| {
        scene.run(Command::UpdateCard(Box::new(order))).map(agent_in)
    };
    let stale = run(&mut scene, update(r#"{"other":1}"#, "0.20"));
    assert_eq!(stale, Err(Refusal::SameIdOtherContent));
    assert_eq!(run(&mut scene, update("{}", "0.20")), Ok(worker));
    assert_eq!(scene.agent(worker).card, r#"{"n":1}"#);
    let order = order_for(&mut scene, client, worker);
    let job = scene.try_open_job(OpenJob { budget: credits("0.20"), ..order }).unwrap();
    assert_eq!(job.assignment.unwrap().price, credits("0.20"), "the new price counts");
    scene.remove(worker);
    assert_eq!(run(&mut scene, update(r#"{"n":1}"#, "0.20")), Err(Refusal::NoSuchAgent));
}
