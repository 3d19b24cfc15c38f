//! What worker and requester exchange before the result: progress, parts, questions and answers.

use super::*;
use crate::agent::key::Holder;
use crate::answer::Answer;
use crate::command::{
    AnswerQuestion, AskQuestion, Canceller, DeliveryResult, JobRef, RemoveJobWebhook,
    ReportProgress, SendToWorker, SetJobWebhook,
};
use crate::id::JobId;
use crate::job::log::{LogContent, Phase, Step};
use crate::job::progress::{Fraction, ProgressLimits, ProgressReport, ProgressUpdate, ResultPart};
use crate::job::{Cause, JobWebhook, Requester, Selection, State};
use crate::notice::NoticeKind;
use crate::testkit::{JOB_LIFETIME, LEASE, job_in};
use crate::world::Rules;

const HOUR: Millis = Millis::hours(1);

/// A client with a key and credits, and its job at a worker.
fn at_work() -> (TestHub, AgentId, AgentId, JobId) {
    at_work_by(Rules::default())
}

fn at_work_by(rules: Rules) -> (TestHub, AgentId, AgentId, JobId) {
    let mut scene = TestHub::new(rules);
    let client = scene.register_client("client", "rich", "100.00");
    give_key(&mut scene, client);
    let worker = keeps(&mut scene, "worker", Terms::default());
    let job = hire(&mut scene, client, worker).unwrap().id;
    (scene, client, worker, job)
}

fn give_key(scene: &mut TestHub, agent: AgentId) {
    let (holder, hash) = (Holder::Agent(agent), [7; 32]);
    let issue = Command::IssueKey { holder, hash, retire_others: false, by_operator: false };
    scene.run(issue).unwrap();
}

fn part(content: &str) -> ProgressUpdate {
    let part = Some(ResultPart { content: content.to_owned(), append: false });
    ProgressUpdate { part, ..ProgressUpdate::default() }
}

fn progress(
    scene: &mut TestHub,
    job: JobId,
    by: AgentId,
    update: ProgressUpdate,
) -> Result<std::sync::Arc<Job>, Refusal> {
    let order = ReportProgress { job: JobRef::Id(job), by, epoch: None, update };
    scene.run(Command::ReportProgress(Box::new(order))).map(job_in)
}

fn ask(
    scene: &mut TestHub,
    job: JobId,
    by: AgentId,
    epoch: Option<u32>,
) -> Result<std::sync::Arc<Job>, Refusal> {
    let (job, text) = (JobRef::Id(job), "which city?".to_owned());
    let order = AskQuestion { job, by, epoch, text, schema: None };
    scene.run(Command::AskQuestion(Box::new(order))).map(job_in)
}

fn answer(
    scene: &mut TestHub,
    job: JobId,
    by: AgentId,
    question: Option<u32>,
    input: &str,
) -> Result<Answer, Refusal> {
    let (job, input) = (JobRef::Id(job), input.to_owned());
    scene.run(Command::AnswerQuestion(Box::new(AnswerQuestion { job, by, question, input })))
}

fn reports(scene: &TestHub, to: AgentId) -> Vec<ProgressReport> {
    let notices = scene.notices_to(to).into_iter();
    let reports = notices.filter_map(|notice| match notice {
        NoticeKind::Progress { report, .. } => Some(*report),
        _ => None,
    });
    reports.collect()
}

#[test]
fn the_requester_gets_every_report_in_order_and_the_job_shows_the_newest() {
    let (mut scene, client, worker, job) = at_work();
    let half = ProgressUpdate {
        fraction: Fraction::from_millionths(500_000),
        text: Some("half".to_owned()),
        part: None,
    };
    progress(&mut scene, job, worker, half.clone()).unwrap();
    let shown = progress(&mut scene, job, worker, part(r#"{"n":1}"#)).unwrap();
    assert_eq!(shown.state, State::Running);
    assert_eq!((shown.progress.fraction, &shown.progress.text), (half.fraction, &half.text));
    assert_eq!((shown.progress.reports, shown.progress.bytes), (2, 11));
    let log = reports(&scene, client);
    assert_eq!(log.iter().map(|report| report.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(log[1].update, part(r#"{"n":1}"#));
    assert!(log[1].previous.is_some() && log[1].previous != shown.progress.newest);
    let ended = scene.succeed(job, "0.10");
    assert_eq!((ended.state, ended.progress.reports), (State::Completed, 2));
}

#[test]
fn a_fraction_is_at_most_the_whole() {
    assert_eq!(Fraction::from_millionths(1_000_000), Some(Fraction::WHOLE));
    assert_eq!(Fraction::from_millionths(1_000_001), None);
}

#[test]
fn only_the_current_worker_reports_and_asks() {
    let (mut scene, client, worker, job) = at_work();
    let other = keeps(&mut scene, "other", Terms::default());
    for by in [client, other] {
        assert_eq!(progress(&mut scene, job, by, part("{}")), Err(Refusal::NotFound));
        assert_eq!(ask(&mut scene, job, by, None), Err(Refusal::NotFound));
    }
    let another = Err(Refusal::OtherAssignment { epoch: 1 });
    assert_eq!(ask(&mut scene, job, worker, Some(2)), another);
    scene.succeed(job, "0.10");
    let over = Err(Refusal::WrongState { state: State::Completed });
    assert_eq!(progress(&mut scene, job, worker, part("{}")), over);
    assert_eq!(ask(&mut scene, job, worker, Some(1)), over);
}

#[test]
fn a_report_is_a_sign_of_life_and_begins_the_lease_anew() {
    let (mut scene, _, worker, job) = at_work();
    for _ in 0..3 {
        scene.advance(Millis(LEASE.0 - 1));
        progress(&mut scene, job, worker, part("{}")).unwrap();
    }
    assert_eq!(scene.state(job), State::Running);
    scene.advance(LEASE);
    assert_eq!(scene.state(job), State::Expired);
}

#[test]
fn a_sign_of_life_starts_the_work_and_renews_the_lease_without_an_entry_of_the_log() {
    let (mut scene, client, worker, job) = at_work();
    for _ in 0..3 {
        scene.advance(Millis(LEASE.0 - 1));
        let shown = progress(&mut scene, job, worker, ProgressUpdate::default()).unwrap();
        assert_eq!((shown.state, shown.progress.reports), (State::Running, 0));
        assert_eq!(shown.assignment.unwrap().until, scene.now.plus(LEASE));
    }
    assert!(reports(&scene, client).is_empty());
    ask(&mut scene, job, worker, None).unwrap();
    let waiting = Err(Refusal::WrongState { state: scene.state(job) });
    assert_eq!(progress(&mut scene, job, worker, ProgressUpdate::default()), waiting);
}

#[test]
fn a_log_is_limited_in_number_and_in_bytes_and_a_full_inbox_refuses_reports() {
    let progress_limits =
        ProgressLimits { reports: 2, report_bytes: 10, ..ProgressLimits::default() };
    let rules = Rules { progress: progress_limits, ..Rules::default() };
    let (mut scene, client, worker, job) = at_work_by(rules);
    let too_many = Err(Refusal::TooManyReports { max: 2 });
    assert_eq!(progress(&mut scene, job, worker, part("12345678901")), too_many);
    progress(&mut scene, job, worker, part("1234567890")).unwrap();
    assert_eq!(progress(&mut scene, job, worker, part("1")), too_many);
    scene.world.rules.inbox_messages_max = 1;
    let update = part("");
    assert_eq!(progress(&mut scene, job, worker, update.clone()), Err(Refusal::InboxFull));
    scene.read_inbox(client);
    progress(&mut scene, job, worker, update.clone()).unwrap();
    scene.read_inbox(client);
    assert_eq!(progress(&mut scene, job, worker, update), too_many);
}

#[test]
fn another_worker_begins_without_the_progress_of_the_one_before() {
    let (mut scene, client) = market();
    let first = keeps(&mut scene, "first", Terms::default());
    let order = scene.job_order(client, "sum", "0.50");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    let text = Some("nearly done".to_owned());
    progress(&mut scene, job, first, ProgressUpdate { text, ..ProgressUpdate::default() }).unwrap();
    let second = keeps(&mut scene, "second", Terms::default());
    let again = scene.decline(job);
    assert_eq!((again.worker(), &again.progress.text), (Some(second), &None));
    progress(&mut scene, job, second, part("{}")).unwrap();
    let epochs: Vec<u32> = reports(&scene, client).iter().map(|report| report.epoch).collect();
    assert_eq!(epochs, [1, 2]);
}

#[test]
fn the_reports_for_a_guest_are_kept_though_it_has_no_inbox() {
    let (mut scene, _) = market();
    let worker = scene.register_worker("worker", "acme", &[("sum", "0")]);
    let order = scene.job_order(worker, "sum", "0");
    let requester = Requester::Guest("guest".to_owned());
    let job = scene.open_job(OpenJob { requester, ..order }).id;
    let shown = progress(&mut scene, job, worker, part("{}")).unwrap();
    let newest = shown.progress.newest.unwrap();
    let kept = scene.store.rows.notices.iter().find(|notice| notice.id == newest).unwrap();
    assert_eq!((kept.to, kept.position), (None, 0));
    // It has no key, so it cannot answer either.
    assert_eq!(ask(&mut scene, job, worker, None).unwrap().state, State::Failed);
}

#[test]
fn a_worker_asks_the_requester_answers_and_the_work_goes_on() {
    let (mut scene, client, worker, job) = at_work();
    let asked = ask(&mut scene, job, worker, Some(1)).unwrap();
    let until = scene.now.plus(HOUR);
    assert_eq!(asked.state, State::InputRequired { until });
    assert_eq!(asked.payment.held.to_text(2), "0.50");
    let (number, question) = asked.open_question().unwrap();
    assert_eq!((number, question.text.as_str()), (1, "which city?"));
    assert!(scene.notices_to(client).contains(&NoticeKind::InputRequested {
        job,
        question: 1,
        until
    }));
    // The lease rests.
    scene.advance(Millis(HOUR.0 - 1));
    answer(&mut scene, job, client, None, r#"{"text":"Lugano"}"#).unwrap();
    let going_on = scene.job(job);
    assert_eq!(going_on.state, State::Running);
    assert_eq!(going_on.assignment.unwrap().until, scene.now.plus(LEASE));
    let answered = going_on.current_questions().next().unwrap().1;
    assert_eq!(answered.answer.as_deref(), Some(r#"{"text":"Lugano"}"#));
    let told = NoticeKind::InputProvided { job, epoch: 1, question: 1 };
    assert!(scene.notices_to(worker).contains(&told));
    assert_eq!(scene.succeed(job, "0.10").state, State::Completed);
}

#[test]
fn a_question_without_an_answer_expires_the_job_without_blame() {
    let (mut scene, client, worker, job) = at_work();
    let score = scene.score(worker);
    ask(&mut scene, job, worker, None).unwrap();
    scene.advance(HOUR);
    let ended = scene.job(job);
    assert_eq!(ended.state, State::Expired);
    let result = ended.result.as_ref().unwrap();
    assert_eq!(result.cause, Some(Cause::NoAnswer));
    assert!(result.text.as_ref().unwrap().contains("which city?"));
    assert_eq!(scene.score(worker), score);
    assert!(scene.store.rows.outcomes.iter().all(|outcome| !outcome.counted));
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    let news = scene.notices_to(worker);
    assert!(news.contains(&NoticeKind::Unassigned { job, epoch: 1 }));
    let late = answer(&mut scene, job, client, None, "{}");
    assert_eq!(late.unwrap_err(), Refusal::WrongState { state: State::Expired });
}

#[test]
fn the_deadline_of_the_job_runs_while_a_question_is_open() {
    let (mut scene, _, worker, job) = at_work();
    scene.world.rules.answer_timeout = Millis(JOB_LIFETIME.0 * 2);
    let asked = ask(&mut scene, job, worker, None).unwrap();
    assert_eq!(asked.state, State::InputRequired { until: asked.request.deadline });
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.state(job), State::Expired);
}

#[test]
fn the_requester_may_cancel_instead_of_answering() {
    let (mut scene, client, worker, job) = at_work();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    let cancel =
        Command::Cancel { job: JobRef::Id(job), by: Canceller::Agent(client), reason: None };
    let running = Err(Refusal::WrongState { state: State::Running });
    assert_eq!(scene.run(cancel.clone()).map(|_| ()), running);
    ask(&mut scene, job, worker, None).unwrap();
    scene.run(cancel).unwrap();
    assert_eq!(scene.state(job), State::Cancelled);
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert!(scene.notices_to(worker).contains(&NoticeKind::Unassigned { job, epoch: 1 }));
}

#[test]
fn a_worker_may_finish_or_decline_without_waiting_for_the_answer() {
    let (mut scene, _, worker, job) = at_work();
    ask(&mut scene, job, worker, None).unwrap();
    let waiting = Err(Refusal::WrongState { state: scene.state(job) });
    assert_eq!(ask(&mut scene, job, worker, None), waiting);
    assert_eq!(progress(&mut scene, job, worker, part("{}")), waiting);
    assert_eq!(scene.succeed(job, "0.10").result.as_ref().unwrap().paid.to_text(2), "0.10");
    let (mut scene, _, worker, job) = at_work();
    ask(&mut scene, job, worker, None).unwrap();
    assert_eq!(scene.decline(job).state, State::Failed);
}

#[test]
fn a_question_that_the_requester_cannot_answer_ends_the_job_at_once_and_without_blame() {
    for signs_in in [false, true] {
        let (mut scene, client) = market();
        let worker = keeps(&mut scene, "worker", Terms::default());
        let score = scene.score(worker);
        let job = hire(&mut scene, client, worker).unwrap().id;
        let (wanted, text) = (JobRef::Id(job), "which city?".to_owned());
        let order =
            Box::new(AskQuestion { job: wanted, by: worker, epoch: None, text, schema: None });
        let order =
            if signs_in { Command::AskToSignIn(order) } else { Command::AskQuestion(order) };
        let ended = scene.run(order).map(job_in).unwrap();
        assert_eq!(ended.state, State::Failed);
        let result = ended.result.as_ref().unwrap();
        assert_eq!(
            (result.cause, result.text.as_deref()),
            (Some(Cause::NoAnswer), Some("which city?"))
        );
        assert!(ended.questions.is_empty());
        assert_eq!(scene.score(worker), score);
        assert!(scene.store.rows.outcomes.iter().all(|outcome| !outcome.counted));
        assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
        let told = NoticeKind::Unassigned { job, epoch: 1 };
        assert!(scene.notices_to(worker).contains(&told), "the worker may stop");
        assert!(scene.notices_to(client).contains(&NoticeKind::Ended { job }));
    }
}

#[test]
fn a_job_that_may_go_to_another_worker_goes_there_with_the_question_unanswered() {
    let (mut scene, client) = market();
    let first = keeps(&mut scene, "first", Terms::default());
    let order = scene.job_order(client, "sum", "0.50");
    let policy = Policy { reassignment: PATIENT.reassignment, ..Policy::default() };
    let job = scene.open_job(OpenJob { policy, ..order }).id;
    let second = keeps(&mut scene, "second", Terms::default());
    let again = ask(&mut scene, job, first, Some(1)).unwrap();
    assert_eq!((again.state, again.worker(), again.epoch), (State::Assigned, Some(second), 2));
    assert!(scene.notices_to(first).contains(&NoticeKind::Unassigned { job, epoch: 1 }));
    let ended = ask(&mut scene, job, second, Some(2)).unwrap();
    assert_eq!(ended.state, State::Failed);
    let result = ended.result.as_ref().unwrap();
    assert_eq!(result.cause, Some(Cause::NoWorkerLeft));
    let text = "no other worker is available; the last worker asked: which city?";
    assert_eq!(result.text.as_deref(), Some(text));
    assert!(scene.store.rows.outcomes.iter().all(|outcome| !outcome.counted));
}

#[test]
fn an_answer_counts_once_and_only_for_its_own_question() {
    let (mut scene, client, worker, job) = at_work();
    let open = Err(Refusal::WrongState { state: State::Assigned });
    assert_eq!(answer(&mut scene, job, client, None, "{}").map(|_| ()), open);
    ask(&mut scene, job, worker, None).unwrap();
    assert_eq!(answer(&mut scene, job, worker, None, "{}").unwrap_err(), Refusal::NotFound);
    answer(&mut scene, job, client, Some(1), "1").unwrap();
    let repeated = answer(&mut scene, job, client, Some(1), "1").unwrap();
    assert!(matches!(repeated, Answer::Job { repeated: true, .. }));
    ask(&mut scene, job, worker, None).unwrap();
    let waiting = Refusal::WrongState { state: scene.state(job) };
    // A late repeat of the first answer, changed in between, does not answer the second question.
    assert_eq!(answer(&mut scene, job, client, Some(1), "2").unwrap_err(), waiting);
    assert_eq!(answer(&mut scene, job, client, Some(3), "2").unwrap_err(), waiting);
    answer(&mut scene, job, client, Some(2), "2").unwrap();
    assert_eq!(scene.job(job).questions.len(), 2);
}

#[test]
fn questions_are_limited_in_number_and_in_bytes() {
    let questions =
        ProgressLimits { questions: 1, question_bytes: 13, ..ProgressLimits::default() };
    let rules = Rules { progress: questions, ..Rules::default() };
    let (mut scene, client, worker, job) = at_work_by(rules);
    ask(&mut scene, job, worker, None).unwrap();
    let too_many = Refusal::TooManyReports { max: 1 };
    assert_eq!(answer(&mut scene, job, client, None, "123").unwrap_err(), too_many);
    answer(&mut scene, job, client, None, "12").unwrap();
    assert_eq!(ask(&mut scene, job, worker, None), Err(too_many));
}

#[test]
fn a_job_that_waits_for_an_answer_is_in_its_row_and_its_memory_is_counted() {
    let (mut scene, _, worker, job) = at_work();
    let before = scene.world.footprint().total();
    ask(&mut scene, job, worker, None).unwrap();
    assert!(scene.world.footprint().total() >= before + "which city?".len() as u64);
    let row = serde_json::to_string(&*scene.job(job)).unwrap();
    assert_eq!(serde_json::from_str::<Job>(&row).unwrap(), *scene.job(job));
    let rebuilt = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(rebuilt.next_timer_at(), scene.world.next_timer_at());
}

const WEBHOOK: &str = "https://client.example/hook";

fn set_webhook(scene: &mut TestHub, job: JobId, by: AgentId, id: &str) -> Result<Answer, Refusal> {
    let (url, meta) = (WEBHOOK.to_owned(), "{}".to_owned());
    let webhook = JobWebhook { id: id.to_owned(), url, meta };
    let order = SetJobWebhook { job: JobRef::Id(job), by, webhook };
    scene.run(Command::SetJobWebhook(Box::new(order)))
}

fn send(scene: &mut TestHub, job: JobId, by: AgentId, input: &str) -> Result<Answer, Refusal> {
    let (body, input) = (format!("[{input}]"), input.to_owned());
    let order = SendToWorker { job: JobRef::Id(job), by, body, input };
    scene.run(Command::SendToWorker(Box::new(order)))
}

/// The entries that wait for delivery to the webhooks of a job, by their numbers.
fn sent_entries(scene: &TestHub) -> Vec<(String, u32, LogContent)> {
    let mut entries: Vec<_> = scene
        .world
        .deliveries_due(scene.now)
        .filter_map(|push| match &push.kind {
            NoticeKind::LogEntry { webhook, number, content, .. } => {
                assert_eq!((push.url.as_str(), push.to), (WEBHOOK, None));
                Some((webhook.clone(), *number, (**content).clone()))
            }
            _ => None,
        })
        .collect();
    entries.sort_by_key(|(webhook, number, _)| (webhook.clone(), *number));
    entries
}

#[test]
fn a_question_and_its_answer_are_steps_of_the_log_between_the_reports() {
    let (mut scene, client, worker, job) = at_work();
    set_webhook(&mut scene, job, client, "a").unwrap();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    let asked = ask(&mut scene, job, worker, None).unwrap();
    assert_eq!(asked.progress.phase, Some((Phase::InputRequired, scene.now)));
    answer(&mut scene, job, client, None, r#"{"text":"Lugano"}"#).unwrap();
    let shown = progress(&mut scene, job, worker, part("{}")).unwrap();
    assert_eq!((shown.progress.reports, shown.progress.worker_reports()), (4, 2));
    let log: Vec<(u32, LogContent)> =
        sent_entries(&scene).into_iter().map(|(_, number, content)| (number, content)).collect();
    let report = || LogContent::Report(ProgressUpdate::default());
    let steps = [Step::InputRequired { question: 1 }, Step::Working].map(LogContent::Step);
    let [asked, working] = steps;
    assert_eq!(log, [(1, report()), (2, asked), (3, working), (4, report())]);
}

#[test]
fn webhooks_get_only_what_comes_after_them_and_nothing_once_removed() {
    let (mut scene, client, worker, job) = at_work();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    set_webhook(&mut scene, job, client, "a").unwrap();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    set_webhook(&mut scene, job, client, "b").unwrap();
    let id = "a".to_owned();
    let order = RemoveJobWebhook { job: JobRef::Id(job), by: client, id };
    scene.run(Command::RemoveJobWebhook(Box::new(order))).unwrap();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    let sent: Vec<(String, u32)> =
        sent_entries(&scene).into_iter().map(|(webhook, number, _)| (webhook, number)).collect();
    assert_eq!(sent, [("a".to_owned(), 2), ("b".to_owned(), 3)]);
}

#[test]
fn a_webhook_that_is_gone_is_removed_even_after_the_end() {
    let (mut scene, client, worker, job) = at_work();
    set_webhook(&mut scene, job, client, "a").unwrap();
    set_webhook(&mut scene, job, client, "b").unwrap();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    scene.succeed(job, "0.10");
    let of = |scene: &TestHub, id: &str| {
        let due = scene.world.deliveries_due(scene.now);
        let mut mine = due.filter(|push| match &push.kind {
            NoticeKind::LogEntry { webhook, .. } => webhook == id,
            _ => false,
        });
        mine.next().unwrap().notice
    };
    let notice = of(&scene, "a");
    let result = DeliveryResult::EndpointGone;
    scene.run(Command::RecordDelivery { notice, result, report: None }).unwrap();
    let left: Vec<String> =
        scene.job(job).webhooks.iter().map(|webhook| webhook.id.clone()).collect();
    assert_eq!(left, ["b"]);
    assert_eq!(scene.world.delivery(notice).unwrap().next_try, None);
}

#[test]
fn the_first_piece_of_a_result_begins_a_part() {
    let (mut scene, client, worker, job) = at_work();
    let piece = || {
        let part = Some(ResultPart { content: "{}".to_owned(), append: true });
        ProgressUpdate { part, ..ProgressUpdate::default() }
    };
    assert_eq!(progress(&mut scene, job, worker, piece()).unwrap().progress.parts, 1);
    assert_eq!(progress(&mut scene, job, worker, piece()).unwrap().progress.parts, 1);
    let log = reports(&scene, client);
    let appends = log.iter().map(|report| report.update.part.as_ref().unwrap().append);
    assert_eq!(appends.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_job_that_is_followed_has_a_limited_number_of_parts() {
    let progress_limits = ProgressLimits { followed_parts: 2, ..ProgressLimits::default() };
    let mut scene = TestHub::new(Rules { progress: progress_limits, ..Rules::default() });
    let client = scene.register_client("client", "rich", "100.00");
    let worker = keeps(&mut scene, "worker", Terms::default());
    for (is_followed, third) in [(true, Err(Refusal::TooManyReports { max: 2 })), (false, Ok(3))] {
        let mut order = scene.job_order(client, "sum", "1.00");
        order.policy.requester.follows_log = is_followed;
        order.selection = Selection::Direct(worker);
        let job = scene.open_job(order).id;
        progress(&mut scene, job, worker, part("{}")).unwrap();
        progress(&mut scene, job, worker, part("{}")).unwrap();
        let shown = progress(&mut scene, job, worker, part("{}"));
        assert_eq!(shown.map(|job| job.progress.parts), third);
    }
}

#[test]
fn only_the_requester_sets_webhooks_and_only_eight() {
    let (mut scene, client, worker, job) = at_work();
    assert_eq!(set_webhook(&mut scene, job, worker, "x"), Err(Refusal::NotFound));
    for id in 0..8 {
        set_webhook(&mut scene, job, client, &id.to_string()).unwrap();
    }
    set_webhook(&mut scene, job, client, "7").unwrap();
    let ninth = set_webhook(&mut scene, job, client, "8");
    assert_eq!(ninth, Err(Refusal::TooManyReports { max: 8 }));
    // A job that has ended keeps its webhooks, and may get another one in place of an old one.
    scene.succeed(job, "0.10");
    set_webhook(&mut scene, job, client, "0").unwrap();
}

#[test]
fn a_message_of_the_requester_reaches_the_worker_and_answers_its_question() {
    let (mut scene, client, worker, job) = at_work();
    progress(&mut scene, job, worker, part("{}")).unwrap();
    assert_eq!(send(&mut scene, job, worker, "1"), Err(Refusal::NotFound));
    let told = job_in(send(&mut scene, job, client, "1").unwrap());
    let notice = NoticeKind::RequesterMessage { job, epoch: told.epoch, number: 1 };
    assert!(scene.notices_to(worker).contains(&notice));
    ask(&mut scene, job, worker, None).unwrap();
    let answered = job_in(send(&mut scene, job, client, "2").unwrap());
    assert_eq!(answered.state, State::Running);
    assert_eq!(answered.questions[0].answer.as_deref(), Some("2"));
    let bodies: Vec<(&str, u32)> =
        answered.messages.iter().map(|sent| (sent.body.as_str(), sent.after)).collect();
    assert_eq!(bodies, [("[1]", 1), ("[2]", 2)]);
    assert_eq!(answered.plain_messages().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    let answering = answered.message_that_answers(1).map(|sent| sent.body.as_str());
    assert_eq!(answering, Some("[2]"));
    scene.succeed(job, "0.10");
    let late = send(&mut scene, job, client, "3");
    assert_eq!(late, Err(Refusal::WrongState { state: State::Completed }));
}

#[test]
fn a_worker_that_waits_for_a_sign_in_goes_on_by_itself() {
    let (mut scene, client, worker, job) = at_work();
    let (wanted, text) = (JobRef::Id(job), "sign in at example.org".to_owned());
    let order = AskQuestion { job: wanted, by: worker, epoch: None, text, schema: None };
    let waits = scene.run(Command::AskToSignIn(Box::new(order))).map(job_in).unwrap();
    assert!(matches!(waits.state, State::InputRequired { .. }));
    // A message is no answer: the hub carries no credential.
    let told = job_in(send(&mut scene, job, client, "1").unwrap());
    assert!(matches!(told.state, State::InputRequired { .. }));
    let answered = answer(&mut scene, job, client, None, "1").unwrap_err();
    assert_eq!(answered, Refusal::AnsweredElsewhere);
    // No answer is awaited, so only the deadline of the job ends the wait.
    assert_eq!(told.state, State::InputRequired { until: told.request.deadline });
    let on = progress(&mut scene, job, worker, part("{}")).unwrap();
    assert_eq!(on.state, State::Running);
    assert_eq!(on.questions[0].answer, None);
}
