//! Inboxes: positions without gaps, each notice after the previous one, and inbox rows that match.

use std::collections::HashMap;

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::message::inbox::Mailbox;
use rialto_core::notice::{Arrival, News, Notice, Push};

use super::Check;
use super::registrations::People;
use super::tables::{Ids, Rows};
use crate::store::StoreError;
use crate::store::sqlite::{inboxes, notices};

/// Scans all notices in order.
pub fn recount(rows: &mut Rows<'_>, people: &People) -> Result<Check, StoreError> {
    let mut walk = Walk::default();
    match inboxes::written_to(rows.db) {
        Ok(notice) => walk.written_to = notice,
        Err(StoreError::Corrupt(why)) => walk.check.breach(|| why),
        Err(error) => return Err(error),
    }
    rows.each(
        "mailboxes",
        Some(Ids::Below(rows.next.agent.0)),
        |one: &Mailbox| one.agent.0,
        |_, one| {
            walk.mailboxes.insert(one.agent, one);
            Ok(())
        },
    )?;
    rows.notices(|notice| walk.step(&notice))?;
    let Walk { mut check, heads, mailboxes, .. } = walk;
    for mailbox in mailboxes.values() {
        let agent = mailbox.agent;
        let head = heads.get(&agent).map_or(0, |(head, _)| *head);
        check.holds(mailbox.head <= head, || {
            format!(
                "the inbox of agent {agent} ends at position {head}, but its row says {}",
                mailbox.head
            )
        });
        check.holds(mailbox.read() <= mailbox.head, || {
            format!("agent {agent} has read {} of {} notices", mailbox.read(), mailbox.head)
        });
        check.holds(mailbox.waiting() <= mailbox.head.saturating_sub(mailbox.read()), || {
            format!("{} notices wait for agent {agent}, more than exist", mailbox.waiting())
        });
    }
    for agent in heads.keys().chain(mailboxes.keys()) {
        let known = people.agents.contains_key(agent);
        check.holds(known, || format!("agent {agent} does not exist, but has an inbox"));
    }
    pushed(rows, &mut check)?;
    Ok(check)
}

/// What is known while scanning the notices.
struct Walk {
    check: Check,
    heads: HashMap<AgentId, (u64, NoticeId)>,
    sent: HashMap<AgentId, NoticeId>,
    mailboxes: HashMap<AgentId, Mailbox>,
    /// Up to this notice the inbox rows must match the notices.
    written_to: NoticeId,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            check: Check::new("inbox"),
            heads: HashMap::new(),
            sent: HashMap::new(),
            mailboxes: HashMap::new(),
            written_to: NoticeId(0),
        }
    }
}

impl Walk {
    fn step(&mut self, notice: &Notice) {
        self.check.rows += 1;
        let Notice { id, position, before, .. } = *notice;
        if let News::Message { from: Some(from), follows, .. } = notice.news {
            let last = self.sent.insert(from, id);
            self.check.holds(follows == last, || {
                format!("message {id} of agent {from} follows {follows:?}, not {last:?}")
            });
        }
        let Some(agent) = notice.to else {
            let outside = position == 0 && before.is_none();
            self.check
                .holds(outside, || format!("notice {id} belongs to no inbox, but has a position"));
            return;
        };
        let known = self.heads.get(&agent).copied();
        let (head, last) = known.map_or((0, None), |(head, last)| (head, Some(last)));
        self.check.holds(position == head + 1, || {
            format!("notice {id} of agent {agent} has position {position}, expected {}", head + 1)
        });
        self.check.holds(before == last, || {
            format!("notice {id} of agent {agent} follows {before:?}, not {last:?}")
        });
        self.heads.insert(agent, (position, id));
        let mailbox = self.mailboxes.get(&agent);
        let said = mailbox.map_or(0, |mailbox| mailbox.head);
        self.check.holds(id > self.written_to || position <= said, || {
            format!("notice {id} of agent {agent} is written, but its inbox ends at {said}")
        });
        let same = mailbox.is_none_or(|one| one.head != position || one.newest == Some(id));
        self.check.holds(same, || {
            format!("the inbox row of agent {agent} names a newest notice other than {id}")
        });
    }
}

/// Pending and completed deliveries match their notices.
fn pushed(rows: &mut Rows<'_>, check: &mut Check) -> Result<(), StoreError> {
    let below = Some(Ids::Below(rows.next.notice.0));
    rows.each(
        "pushes",
        below,
        |one: &Push| one.notice.0,
        |db, push| {
            check.rows += 1;
            let id = push.notice;
            let same = notices::get(db, id)?.is_some_and(|notice| {
                // Deliveries of older versions also have the text of a message.
                let told = if push.has_text() { notice.news } else { notice.news.without_text() };
                (notice.to, notice.position) == (push.to, push.position) && told == push.news
            });
            check.holds(same, || format!("delivery {id} does not match its notice"));
            Ok(())
        },
    )?;
    rows.each(
        "arrivals",
        below,
        |one: &Arrival| one.notice.0,
        |db, arrival| {
            check.rows += 1;
            let id = arrival.notice;
            let told = notices::get(db, id)?.is_some_and(|notice| notice.to.is_some());
            check.holds(told, || {
                format!("notice {id} is marked as delivered, but belongs to no inbox")
            });
            Ok(())
        },
    )
}
