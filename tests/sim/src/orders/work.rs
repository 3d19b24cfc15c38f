//! Commands about existing jobs: by their workers, their requesters and the operator, in time and
//! too late, true and false.

use rialto_core::command::{
    AnswerQuestion, Approver, AskQuestion, Canceller, Command, HandoverStage, JobRef, OfferRef,
    OfferTerms, OriginalReport, RecordHandover, RemoveJobWebhook, ReportOriginal, ReportProgress,
    ReportResult, SendToWorker, SetJobWebhook, Timer, WorkerReport, WorkerResponse,
};
use rialto_core::id::AgentId;
use rialto_core::job::progress::{Fraction, ProgressUpdate, ResultPart};
use rialto_core::job::{Cause, Job, JobWebhook, Requester, Selection, State};
use rialto_core::money::Credits;
use rialto_core::notice::{Delivery, NoticeKind};
use rialto_core::testkit::TestHub;
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use crate::cast::{amount, digest, price, requester, some_job, somebody};
use crate::dice::Dice;

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let command = by_anyone(dice, scene, now)?;
    Some(if dice.chance(15) { in_own_words(command) } else { command })
}

fn by_anyone(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    match dice.roll(60) {
        0..=3 => dialogue(dice, scene),
        4..=17 => Some(Command::ReportResult(Box::new(word(dice, scene, in_hand)?))),
        18..=23 => answer(dice, scene, now),
        24..=38 => by_worker(dice, scene, now),
        39..=47 => by_requester(dice, scene),
        48..=50 => approve(dice, scene),
        _ => by_hub(dice, scene),
    }
}

/// A result by the worker, or by another agent.
pub fn word(dice: &mut Dice, scene: &TestHub, kind: impl Fn(&Job) -> bool) -> Option<ReportResult> {
    let job = some_job(dice, scene, kind)?;
    let by = worker(dice, scene, &job)?;
    let ok = dice.chance(70);
    let causes = [None, Some(Cause::Execution), Some(Cause::NoSuchSkill), Some(Cause::Unusable)];
    let cost = match dice.roll(20) {
        0 => Credits::from_micros(-1),
        1 | 2 => Credits::MAX,
        _ => amount(dice),
    };
    let cause = dice.of(causes).filter(|_| !ok);
    // Half of the unusable results are an endpoint that refused the request.
    let silent = cause == Some(Cause::Unusable) && dice.chance(50);
    Some(ReportResult {
        epoch: epoch(dice, &job),
        job: name(dice, &job),
        by,
        ok,
        is_final: true,
        knows_work: true,
        no_response: silent,
        output: Some("{}".to_owned()),
        cost,
        took: Some(Millis(dice.within_seconds(5))),
        cause,
        text: None,
        meta: dice.chance(30).then(|| "{}".to_owned()),
        // The same result twice, or a different one.
        content: digest(job.id.0 << 8 | dice.roll(2)),
    })
}

fn in_hand(job: &Job) -> bool {
    job.state.is_assigned()
}

/// In most cases the worker, and sometimes another agent.
fn worker(dice: &mut Dice, scene: &TestHub, job: &Job) -> Option<AgentId> {
    match dice.chance(10) {
        true => Some(somebody(dice, scene)),
        false => job.worker(),
    }
}

/// The assignment it is about, if the sender knows it; sometimes an old one.
fn epoch(dice: &mut Dice, job: &Job) -> Option<u32> {
    match dice.roll(10) {
        0 => Some(job.epoch.saturating_sub(1)),
        1..=4 => Some(job.epoch),
        _ => None,
    }
}

/// A job by one of its ids: the hub's two, its requester's, and its worker's if there is one.
fn name(dice: &mut Dice, job: &Job) -> JobRef {
    match dice.roll(3) {
        0 => job.acceptance.worker_job_id.map_or(JobRef::Id(job.id), JobRef::Uuid),
        1 => JobRef::Uuid(job.uuid),
        _ => JobRef::Foreign { origin: job.request.origin, id: job.request.foreign_id.clone() },
    }
}

/// A webhook for the log of a job.
pub fn webhook(dice: &mut Dice) -> JobWebhook {
    let (url, meta) = ("https://webhook.example/log".to_owned(), "{}".to_owned());
    JobWebhook { id: dice.roll(9).to_string(), url, meta }
}

/// Messages of the requester to its worker, and webhooks of its job.
fn requester_order(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    let job = some_job(dice, scene, |_| true)?;
    let by = match dice.chance(85) {
        true => requester(&job)?,
        false => somebody(dice, scene),
    };
    let (job, id) = (name(dice, &job), dice.roll(9).to_string());
    let input = "{\"n\":3}".to_owned();
    Some(match dice.roll(4) {
        0 => {
            let webhook = JobWebhook { id, ..webhook(dice) };
            Command::SetJobWebhook(Box::new(SetJobWebhook { job, by, webhook }))
        }
        1 => Command::RemoveJobWebhook(Box::new(RemoveJobWebhook { job, by, id })),
        _ => {
            let body = input.clone();
            Command::SendToWorker(Box::new(SendToWorker { job, by, body, input }))
        }
    })
}

/// What the protocol of a worker records while it hands a job over.
fn handover(dice: &mut Dice, scene: &TestHub, job: &Job) -> Option<Command> {
    let by = worker(dice, scene, job)?;
    let stages = [HandoverStage::Sending, HandoverStage::Received, HandoverStage::Working];
    Some(Command::RecordHandover(Box::new(RecordHandover {
        job: name(dice, job),
        by,
        epoch: epoch(dice, job).unwrap_or(job.epoch),
        state: dice.chance(80).then(|| format!("{{\"n\":{}}}", dice.roll(9))),
        stage: dice.of(stages),
        conversation: dice.chance(30).then(|| digest(dice.roll(6))),
    })))
}

/// A report in the words of the worker's own protocol as well.
fn in_own_words(command: Command) -> Command {
    let report = match command {
        Command::ReportProgress(order) => OriginalReport::Progress(*order),
        Command::AskQuestion(order) => OriginalReport::Question(*order),
        Command::AskToSignIn(order) => OriginalReport::SignIn(*order),
        Command::ReportResult(order) => OriginalReport::Result(*order),
        Command::Decline { job, by, epoch, reason } => {
            OriginalReport::Decline { job, by, epoch, reason }
        }
        other => return other,
    };
    let original = "{\"own\":1}".to_owned();
    Command::ReportOriginal(Box::new(ReportOriginal { report, original }))
}

/// Progress and questions of the worker, and answers of the requester.
fn dialogue(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    let asks = |job: &Job| job.open_question().is_some();
    if dice.chance(20) {
        return requester_order(dice, scene);
    }
    if dice.chance(35) {
        let job = some_job(dice, scene, asks)?;
        let by = match dice.chance(85) {
            true => requester(&job)?,
            false => somebody(dice, scene),
        };
        let question = dice.chance(30).then(|| 1 + dice.roll(2) as u32);
        let (job, input) = (name(dice, &job), format!("{{\"n\":{}}}", dice.roll(2)));
        return Some(Command::AnswerQuestion(Box::new(AnswerQuestion {
            job,
            by,
            question,
            input,
        })));
    }
    let job = some_job(dice, scene, in_hand)?;
    if dice.chance(25) {
        return handover(dice, scene, &job);
    }
    let (by, epoch) = (worker(dice, scene, &job)?, epoch(dice, &job));
    let job = name(dice, &job);
    if dice.chance(50) {
        let schema = dice.chance(20).then(|| "{}".to_owned());
        let text = "which one?".to_owned();
        let order = Box::new(AskQuestion { job, by, epoch, text, schema });
        return Some(match dice.chance(20) {
            true => Command::AskToSignIn(order),
            false => Command::AskQuestion(order),
        });
    }
    let part = ResultPart { content: "{\"part\":1}".to_owned(), append: dice.chance(50) };
    let update = ProgressUpdate {
        // Without any of these it is only a sign of life.
        fraction: Fraction::from_millionths(dice.roll(2_000_000) as u32),
        text: dice.chance(30).then(|| "going on".to_owned()),
        part: dice.chance(50).then_some(part),
    };
    Some(Command::ReportProgress(Box::new(ReportProgress { job, by, epoch, update })))
}

/// Whether an agent that answers for itself accepts its assignment.
fn answer(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let unanswered =
        |job: &Job| job.state == State::Assigned && job.acceptance.accepted_at.is_none();
    let job = some_job(dice, scene, unanswered)?;
    let by = worker(dice, scene, &job)?;
    let at = now.plus(Millis(dice.within_seconds(90)));
    let said = match dice.roll(5) {
        0..=2 => WorkerResponse::Accept {
            ready_at: dice.chance(40).then_some(at),
            worker_job_id: dice.chance(40).then(|| called(dice, scene)),
        },
        3 => WorkerResponse::Refuse {
            cause: dice.of([Cause::Policy, Cause::Execution]),
            text: "no".to_owned(),
            words: dice.chance(50).then(|| "{}".to_owned()),
        },
        _ => WorkerResponse::Defer { until: at },
    };
    Some(Command::Respond { job: name(dice, &job), by, response: said })
}

/// An id from a small pool, or that of another job.
fn called(dice: &mut Dice, scene: &TestHub) -> Uuid {
    let own = Uuid::from_u128(0xCA11_ED00 + u128::from(dice.roll(64)));
    match dice.chance(15) {
        true => some_job(dice, scene, |_| true).map_or(own, |job| job.uuid),
        false => own,
    }
}

fn by_worker(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let kind = dice.roll(15);
    if kind < 4 {
        let offers = |job: &Job| job.state == State::Negotiating && job.selection.is_by_offers();
        let job = some_job(dice, scene, offers)?;
        let by = match dice.chance(80) {
            true => dice.pick(&job.candidates.invited).copied()?,
            false => somebody(dice, scene),
        };
        let valid_for = if dice.chance(15) { Millis(0) } else { Millis::minutes(10) };
        let (job, price) = (name(dice, &job), price(dice));
        return Some(Command::Offer { job, by, price, terms: OfferTerms::Open { valid_for } });
    }
    let job = some_job(dice, scene, in_hand)?;
    let by = worker(dice, scene, &job)?;
    Some(match kind {
        4..=6 => Command::Start { job: name(dice, &job), by },
        7..=9 => {
            let (epoch, reason) = (epoch(dice, &job), dice.chance(30).then(|| "busy".to_owned()));
            Command::Decline { job: name(dice, &job), by, epoch, reason }
        }
        10 | 11 => {
            let until = now.plus(Millis(dice.within_seconds(120)));
            Command::Defer { job: name(dice, &job), by, until }
        }
        _ => {
            let mut jobs: Vec<_> = scene.world.assigned_jobs(by).map(|job| job.id).collect();
            jobs.push(job.id);
            match dice.chance(30) {
                true => Command::MarkShown { agent: by, jobs },
                false => Command::HandOver { agent: by, jobs },
            }
        }
    })
}

fn by_requester(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    if dice.chance(50) {
        let offered =
            |job: &Job| job.selection == Selection::Offers && !job.candidates.offers.is_empty();
        let job = some_job(dice, scene, offered)?;
        let by = match dice.chance(85) {
            true => requester(&job)?,
            false => somebody(dice, scene),
        };
        let (maker, price) = match dice.pick(&job.candidates.offers) {
            Some(offer) if dice.chance(90) => (offer.by, offer.price),
            _ => (somebody(dice, scene), amount(dice)),
        };
        let offer = match dice.roll(3) {
            0 => OfferRef::Index(dice.roll(4) as u32),
            1 => OfferRef::Price { by: maker, price },
            _ => OfferRef::Only { by: maker },
        };
        return Some(Command::accept_offer(name(dice, &job), by, offer));
    }
    let job = some_job(dice, scene, |_| true)?;
    let by = match (dice.roll(6), &job.request.requester, job.intended_worker()) {
        (0, ..) => Canceller::Agent(somebody(dice, scene)),
        (1, _, Some(worker)) => Canceller::Agent(worker),
        (2, ..) => Canceller::Operator,
        (3, ..) | (_, Requester::Guest(_), _) => Canceller::Guest,
        (_, Requester::Agent(agent), _) => Canceller::Agent(*agent),
    };
    let reason = dice.chance(30).then(|| "because".to_owned());
    Some(Command::Cancel { job: name(dice, &job), by, reason })
}

fn approve(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    let job = some_job(dice, scene, |job| job.candidates.pending_assignment.is_some())?;
    let by = match dice.roll(6) {
        0 => Approver::Agent(somebody(dice, scene)),
        1 | 2 => Approver::Operator,
        _ => Approver::Agent(job.intended_worker()?),
    };
    Some(Command::Approve { job: name(dice, &job), by, approved: dice.chance(75) })
}

/// What the hub itself detects, at the right time and too late.
fn by_hub(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    let job = some_job(dice, scene, in_hand)?;
    Some(match dice.roll(10) {
        0..=3 => {
            let epoch = job.epoch.saturating_sub(u32::from(dice.chance(15)));
            Command::MarkUnreachable { job: job.id, epoch }
        }
        4..=6 => Command::MarkPending { job: job.id },
        7 | 8 => Command::Requeue { job: name(dice, &job) },
        _ => Command::FireTimer(Timer::Job(job.id)),
    })
}

/// What an endpoint says about the job that was delivered to it.
pub fn reported(dice: &mut Dice, scene: &TestHub, push: &Delivery) -> Option<WorkerReport> {
    let (NoticeKind::Assigned { job, epoch }, Some(by)) = (&push.kind, push.to) else {
        return None;
    };
    let (job, epoch) = (*job, *epoch);
    Some(match dice.roll(6) {
        0 => WorkerReport::Started { job: JobRef::Id(job), by },
        1 => WorkerReport::Declined { job: JobRef::Id(job), by },
        2 => WorkerReport::Unreachable { job, epoch },
        _ => {
            let report = scene.job_report(job, dice.chance(70), "0.10");
            let content = digest(dice.any());
            WorkerReport::Result(Box::new(ReportResult { by, content, ..report }))
        }
    })
}
