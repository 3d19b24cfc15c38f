//! The state of a hub, to be compared before and after something that must change nothing.

use std::collections::BTreeMap;

use super::{TestHub, eventually};

/// What callers can see, and the rows behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Answers by path, as the operator gets them.
    pub shown: BTreeMap<String, String>,
    /// Owners, agents with their self-reported status, scores and live jobs. Activity and the time
    /// of the last read are left out, since every call changes them.
    pub kept: Vec<String>,
    /// How many rows of each kind there ever were.
    pub counted: String,
}

impl Snapshot {
    /// The same without what changes by itself as agents go offline.
    pub fn lasting(&self) -> (Vec<&String>, &[String], &str) {
        let money =
            ["/registry/economy", "/registry/audit?limit=500"].map(|path| &self.shown[path]);
        (money.to_vec(), &self.kept, &self.counted)
    }
}

/// Everything a refused request could have changed. Due deliveries are awaited first, since their
/// results are written, too.
pub async fn snapshot(hub: &TestHub) -> Snapshot {
    eventually(async || {
        hub.engine.with_world(|world| world.deliveries_due(hub.engine.now()).next().is_none())
    })
    .await;
    let mut paths = vec!["/registry/economy".to_owned(), "/registry/audit?limit=500".to_owned()];
    let skills = hub.get("/registry/skills", None).await.expect(200);
    for skill in skills.at("/skills").as_array().expect("a list") {
        paths.push(format!("/registry/discover?skill={}", skill.as_str().expect("a name")));
    }
    let mut shown = BTreeMap::from([("/registry/skills".to_owned(), skills.text)]);
    for path in paths {
        let reply = hub.get(&path, Some(&hub.operator)).await.expect(200);
        shown.insert(path, reply.text);
    }
    Snapshot { shown, kept: kept(hub), counted: counted(hub) }
}

/// How many rows of each kind there ever were: the cheap half of a snapshot.
pub fn counted(hub: &TestHub) -> String {
    hub.engine.with_world(|world| {
        // The time of the last write does not matter.
        let next = rialto_core::changes::Counters { at: Default::default(), ..world.next };
        format!("{next:?}")
    })
}

fn kept(hub: &TestHub) -> Vec<String> {
    hub.engine.with_world(|world| {
        let owners = world.owners().map(|owner| format!("{owner:?}"));
        let agents = world.agents().map(|agent| {
            let fixture = world.agent_state(agent.id);
            let standing = fixture.map(|fixture| fixture.standing);
            let said = fixture.map(|fixture| {
                (fixture.presence.availability, &fixture.status, &fixture.claimed_reputation)
            });
            format!("{agent:?} {standing:?} {said:?} {}", world.keys_of(agent.id).count())
        });
        let jobs = world.live_jobs().map(|job| {
            let mut job = rialto_core::job::Job::clone(job);
            job.candidates.read_at = None;
            if let Some(turn) = &mut job.assignment {
                turn.received_at = None;
            }
            format!("{job:?}")
        });
        let mut all: Vec<String> = owners.chain(agents).chain(jobs).collect();
        all.sort_unstable();
        all
    })
}

/// The newest line of the hub's history, which grows with every write.
pub fn newest_event(hub: &TestHub) -> u64 {
    hub.engine.with_world(|world| world.next.event.0 - 1)
}
