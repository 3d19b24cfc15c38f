//! Inboxes: positions without gaps, each notice after the previous one, and inbox rows that match;
//! and the logs of reports about jobs, which are notices too.

use std::collections::HashMap;

use rialto_core::id::{AgentId, JobId, NoticeId};
use rialto_core::job::log::Step;
use rialto_core::job::progress::ProgressUpdate;
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::{CompletedDelivery, Delivery, Notice, NoticeKind};

use super::Check;
use super::jobs::LogEnd;
use super::registrations::Registrations;
use super::tables::{IdRule, TableReader};
use crate::store::StoreError;
use crate::store::sqlite::{inboxes, notices};

/// Scans all notices in order.
/// `logs` are the ends of all logs as the jobs name them.
pub fn check(
    rows: &mut TableReader<'_>,
    people: &Registrations,
    logs: HashMap<JobId, LogEnd>,
) -> Result<Check, StoreError> {
    let mut walk = InboxScan::default();
    match inboxes::last_written_notice(rows.db) {
        Ok(notice) => walk.written_to = notice,
        Err(StoreError::Corrupt(why)) => walk.check.add_breach(|| why),
        Err(error) => return Err(error),
    }
    rows.for_each(
        "mailboxes",
        Some(IdRule::Below(rows.next.agent.0)),
        |one: &Inbox| one.agent.0,
        |_, one| {
            walk.inboxes.insert(one.agent, one);
            Ok(())
        },
    )?;
    rows.for_each_notice(|notice| walk.check_notice(&notice))?;
    walk.check_logs(logs);
    let InboxScan { mut check, heads, inboxes: mailboxes, .. } = walk;
    for mailbox in mailboxes.values() {
        let agent = mailbox.agent;
        let head = heads.get(&agent).map_or(0, |(head, _)| *head);
        check.require(mailbox.head <= head, || {
            format!(
                "the inbox of agent {agent} ends at position {head}, but its row says {}",
                mailbox.head
            )
        });
        check.require(mailbox.read_position() <= mailbox.head, || {
            format!(
                "agent {agent} has read {} of {} notices",
                mailbox.read_position(),
                mailbox.head
            )
        });
        check.require(
            mailbox.waiting_count() <= mailbox.head.saturating_sub(mailbox.read_position()),
            || {
                format!(
                    "{} notices wait for agent {agent}, more than exist",
                    mailbox.waiting_count()
                )
            },
        );
    }
    for agent in heads.keys().chain(mailboxes.keys()) {
        let known = people.agents.contains_key(agent);
        check.require(known, || format!("agent {agent} does not exist, but has an inbox"));
    }
    check_deliveries(rows, &mut check)?;
    Ok(check)
}

/// What is known while scanning the notices.
struct InboxScan {
    check: Check,
    heads: HashMap<AgentId, (u64, NoticeId)>,
    sent: HashMap<AgentId, NoticeId>,
    logs: HashMap<JobId, LogEnd>,
    inboxes: HashMap<AgentId, Inbox>,
    /// Up to this notice the inbox rows must match the notices.
    written_to: NoticeId,
}

/// One entry of a job's log.
struct LogEntryCheck<'n> {
    job: JobId,
    number: u32,
    previous: Option<NoticeId>,
    content: EntryContent<'n>,
}

/// What an entry says.
enum EntryContent<'n> {
    Report { update: &'n ProgressUpdate, bytes: usize },
    Step(Step),
}

impl Default for InboxScan {
    fn default() -> Self {
        Self {
            check: Check::new("inbox"),
            heads: HashMap::new(),
            sent: HashMap::new(),
            logs: HashMap::new(),
            inboxes: HashMap::new(),
            written_to: NoticeId(0),
        }
    }
}

impl InboxScan {
    /// Reports and steps are numbered without gaps, each names the one before, and so are the
    /// questions.
    fn check_log_entry(&mut self, id: NoticeId, entry: LogEntryCheck<'_>) {
        let LogEntryCheck { job, number, previous, content } = entry;
        let mut log = self.logs.get(&job).copied().unwrap_or_default();
        self.check.require((number, previous) == (log.entries + 1, log.newest), || {
            format!(
                "entry {id} of the log of job {job} is number {number} after {previous:?}, not {} \
                 after {:?}",
                log.entries + 1,
                log.newest
            )
        });
        match content {
            EntryContent::Report { update, bytes } => {
                log.bytes += bytes as u64;
                log.parts += u32::from(update.part.as_ref().is_some_and(|part| !part.append));
            }
            EntryContent::Step(step) => {
                log.steps += 1;
                log.phase = step.phase().or(log.phase);
                if let Step::InputRequired { question } = step {
                    self.check.require(question == log.questions + 1, || {
                        format!("entry {id} asks question {question} of job {job} out of order")
                    });
                    log.questions = question;
                }
            }
        }
        (log.entries, log.newest) = (number, Some(id));
        self.logs.insert(job, log);
    }

    /// Every job names the end of its log.
    fn check_logs(&mut self, mut named: HashMap<JobId, LogEnd>) {
        for (job, log) in std::mem::take(&mut self.logs) {
            let end = named.remove(&job).unwrap_or_default();
            self.check.require(end == log, || {
                format!("the log of job {job} ends with {log:?}, but its row says {end:?}")
            });
        }
        for (job, end) in named {
            self.check.require(end == LogEnd::default(), || {
                format!("job {job} has no log, but its row says {end:?}")
            });
        }
    }

    fn check_notice(&mut self, notice: &Notice) {
        self.check.rows += 1;
        let Notice { id, position, before, .. } = *notice;
        if let NoticeKind::Message { from: Some(from), previous: follows, .. } = notice.news {
            let last = self.sent.insert(from, id);
            self.check.require(follows == last, || {
                format!("message {id} of agent {from} follows {follows:?}, not {last:?}")
            });
        }
        if let (Some(report), Some(job)) = (notice.news.progress_report(), notice.news.job()) {
            let (number, previous) = (report.number, report.previous);
            let bytes = notice.news.content_bytes();
            let content = EntryContent::Report { update: &report.update, bytes };
            self.check_log_entry(id, LogEntryCheck { job, number, previous, content });
        }
        if let NoticeKind::Step { job, step } = &notice.news {
            let (number, previous) = (step.number, step.previous);
            let content = EntryContent::Step(step.step);
            self.check_log_entry(id, LogEntryCheck { job: *job, number, previous, content });
        }
        let Some(agent) = notice.to else {
            let outside = position == 0 && before.is_none();
            self.check.require(outside, || {
                format!("notice {id} belongs to no inbox, but has a position")
            });
            return;
        };
        let known = self.heads.get(&agent).copied();
        let (head, last) = known.map_or((0, None), |(head, last)| (head, Some(last)));
        self.check.require(position == head + 1, || {
            format!("notice {id} of agent {agent} has position {position}, expected {}", head + 1)
        });
        self.check.require(before == last, || {
            format!("notice {id} of agent {agent} follows {before:?}, not {last:?}")
        });
        self.heads.insert(agent, (position, id));
        let mailbox = self.inboxes.get(&agent);
        let said = mailbox.map_or(0, |mailbox| mailbox.head);
        self.check.require(id > self.written_to || position <= said, || {
            format!("notice {id} of agent {agent} is written, but its inbox ends at {said}")
        });
        let same = mailbox.is_none_or(|one| one.head != position || one.newest == Some(id));
        self.check.require(same, || {
            format!("the inbox row of agent {agent} names a newest notice other than {id}")
        });
    }
}

/// Pending and completed deliveries match their notices.
fn check_deliveries(rows: &mut TableReader<'_>, check: &mut Check) -> Result<(), StoreError> {
    let below = Some(IdRule::Below(rows.next.notice.0));
    rows.for_each(
        "pushes",
        below,
        |one: &Delivery| one.notice.0,
        |db, push| {
            check.rows += 1;
            let id = push.notice;
            let same = notices::load_notice(db, id)?.is_some_and(|notice| {
                // Deliveries of older versions also have the text of a message.
                let told = if push.has_text() { notice.news } else { notice.news.without_text() };
                (notice.to, notice.position) == (push.to, push.position) && told == push.kind
            });
            check.require(same, || format!("delivery {id} does not match its notice"));
            Ok(())
        },
    )?;
    rows.for_each(
        "arrivals",
        below,
        |one: &CompletedDelivery| one.notice.0,
        |db, arrival| {
            check.rows += 1;
            let id = arrival.notice;
            let told = notices::load_notice(db, id)?.is_some_and(|notice| notice.to.is_some());
            check.require(told, || {
                format!("notice {id} is marked as delivered, but belongs to no inbox")
            });
            Ok(())
        },
    )
}
