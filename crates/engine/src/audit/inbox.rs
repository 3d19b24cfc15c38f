//! Inboxes: positions without gap, each notice behind the one before it.

use std::collections::HashMap;

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Notice, Push};

use super::Check;
use super::people::People;
use super::rows::{Ids, Rows};
use crate::store::StoreError;
use crate::store::sqlite::row;

/// Walks through all notices in the order they came.
pub fn recount(rows: &mut Rows<'_>, people: &People) -> Result<Check, StoreError> {
    let mut check = Check::new("inbox");
    let mut heads: HashMap<AgentId, (u64, NoticeId)> = HashMap::new();
    let ids = Some(Ids::Whole(rows.next.notice.0));
    rows.each(
        "notices",
        ids,
        |one: &Notice| one.id.0,
        |_, notice| {
            check.rows += 1;
            let Notice { id, position, before, .. } = notice;
            let Some(agent) = notice.to else {
                let outside = position == 0 && before.is_none();
                check.holds(outside, || {
                    format!("notice {id} is in no inbox and has a place in one")
                });
                return Ok(());
            };
            let known = heads.get(&agent).copied();
            let (head, last) = known.map_or((0, None), |(head, last)| (head, Some(last)));
            check.holds(position == head + 1, || {
                format!(
                    "notice {id} of agent {agent} is at {position}, and {} comes next",
                    head + 1
                )
            });
            check.holds(before == last, || {
                format!("notice {id} of agent {agent} follows {before:?}, not {last:?}")
            });
            heads.insert(agent, (position, id));
            Ok(())
        },
    )?;
    for desk in people.desks.values() {
        let (agent, inbox) = (desk.agent, desk.inbox);
        let found = heads.remove(&agent);
        let (head, newest) = found.map_or((0, None), |(head, last)| (head, Some(last)));
        check.holds(inbox.head == head && inbox.newest == newest, || {
            let said = (inbox.head, inbox.newest);
            format!("the inbox of agent {agent} ends at {:?}, and says {said:?}", (head, newest))
        });
        check.holds(inbox.acked <= inbox.head, || {
            format!("agent {agent} acknowledged {} of {}", inbox.acked, inbox.head)
        });
        check.holds(inbox.messages_waiting <= inbox.head.saturating_sub(inbox.acked), || {
            format!("{} messages wait for agent {agent}", inbox.messages_waiting)
        });
    }
    for agent in heads.keys() {
        check.breach(|| format!("agent {agent} has an inbox and does not exist"));
    }
    let below = Some(Ids::Below(rows.next.notice.0));
    rows.each(
        "pushes",
        below,
        |one: &Push| one.notice.0,
        |db, push| {
            check.rows += 1;
            let id = push.notice;
            let notice: Option<Notice> = row::get(db, "notices", id.0)?;
            let same =
                notice.is_some_and(|notice| notice.to == push.to && notice.news == push.news);
            check.holds(same, || format!("push {id} is not what its notice says"));
            Ok(())
        },
    )?;
    Ok(check)
}
