//! Worker instances: only one program at a time gets the work of an agent, because two programs
//! with one key would do the same jobs.
//!
//! A program sends its instance name with every request for work. During that request, and for a
//! while after, no other instance of the agent gets work. This state is not stored: after a restart
//! the first instance that asks gets the work. Of several nodes, the one that writes has this state,
//! and the others ask it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rialto_core::id::AgentId;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::run::CallHandler;
use rialto_engine::{Engine, Failure};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;
use serde::{Deserialize, Serialize};

use crate::v1::errors;
use crate::v1::problem::Problem;

/// How long work is reserved for an instance after its last request.
const INSTANCE_LEASE: Millis = Millis::seconds(10);
/// How long a request can take. The end of one that takes longer was lost with its node.
const REQUEST_MAX: Millis = Millis::seconds(40);
/// The longest instance name.
const NAME_MAX: usize = 64;
/// At this many entries the expired ones are removed.
const SWEEP_THRESHOLD: usize = 4_096;

/// The active instance of each agent.
#[derive(Clone, Debug, Default)]
pub struct Instances(Arc<Mutex<HashMap<AgentId, ActiveInstance>>>);

#[derive(Debug)]
struct ActiveInstance {
    name: String,
    /// Its open requests for work.
    open_requests: u32,
    /// When the last of them must have ended.
    open_until: Timestamp,
    /// When it last got a response.
    last_answer: Timestamp,
}

/// What happens to a request for work, as a node tells it to the writer. Clocks of nodes differ by
/// less than anything here takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct InstanceEvent {
    agent: AgentId,
    name: String,
    at: Timestamp,
    kind: EventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum EventKind {
    Begin,
    End,
}

/// Whether a request for work may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Admission {
    Granted,
    /// Another instance is waiting for work now.
    OtherIsActive,
    /// Another instance asked a moment ago.
    OtherWasActive {
        seconds: u64,
    },
}

/// An open request for work.
pub struct WorkRequest {
    instances: Instances,
    engine: Engine,
    begin: InstanceEvent,
    /// Whether this node keeps the instances, and not another one.
    is_local: bool,
}

/// `?instance=`: the name of the program.
pub fn parse_instance(query: &Query) -> Result<Option<&str>, Malformed> {
    let name = query.text("instance");
    let is_fine = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain)
    };
    match name.filter(|name| !is_fine(name)) {
        None => Ok(name),
        Some(_) => {
            let message = format!("instance must be 1 to {NAME_MAX} letters, digits and dashes");
            Err(Malformed { field: "?instance".to_owned(), message })
        }
    }
}

impl Instances {
    /// Answers the questions of other nodes while this one writes.
    pub fn call_handler(&self) -> CallHandler {
        let instances = self.clone();
        Arc::new(move |body| {
            let event = serde_json::from_slice::<InstanceEvent>(&body).ok();
            let answer = event.and_then(|event| serde_json::to_vec(&instances.apply(&event)).ok());
            Box::pin(std::future::ready(answer))
        })
    }

    /// Begins a request, unless another instance of the agent is active.
    pub async fn begin_request(
        &self,
        engine: &Engine,
        agent: AgentId,
        name: &str,
    ) -> Result<WorkRequest, Problem> {
        let at = engine.now();
        let begin = InstanceEvent { agent, name: name.to_owned(), at, kind: EventKind::Begin };
        let is_local = engine.is_writer();
        let admission = if is_local {
            self.apply(&begin)
        } else {
            call_writer(engine, &begin).await.ok_or(Failure::Unavailable)?
        };
        admission.check()?;
        let (instances, engine) = (self.clone(), engine.clone());
        Ok(WorkRequest { instances, engine, begin, is_local })
    }

    fn apply(&self, event: &InstanceEvent) -> Admission {
        match event.kind {
            EventKind::Begin => self.begin(event),
            EventKind::End => {
                self.end(event);
                Admission::Granted
            }
        }
    }

    fn begin(&self, InstanceEvent { agent, name, at: now, .. }: &InstanceEvent) -> Admission {
        let mut all = self.lock();
        if let Some(other) = all.get(agent).filter(|working| working.name != *name) {
            if other.is_waiting(*now) {
                return Admission::OtherIsActive;
            }
            let reserved = other.last_answer.plus(INSTANCE_LEASE).since(*now);
            if let Ok(reserved_ms @ 1..) = u64::try_from(reserved.0) {
                return Admission::OtherWasActive { seconds: reserved_ms.div_ceil(1_000) };
            }
        }
        if all.len() >= SWEEP_THRESHOLD {
            all.retain(|_, one| {
                one.is_waiting(*now) || one.last_answer.plus(INSTANCE_LEASE) > *now
            });
        }
        let working = ActiveInstance {
            name: name.clone(),
            open_requests: 0,
            open_until: *now,
            last_answer: *now,
        };
        let working = match all.entry(*agent) {
            Entry::Occupied(entry) if entry.get().name == *name => entry.into_mut(),
            entry => entry.insert_entry(working).into_mut(),
        };
        working.open_requests += 1;
        working.open_until = now.plus(REQUEST_MAX);
        Admission::Granted
    }

    fn end(&self, InstanceEvent { agent, name, at, .. }: &InstanceEvent) {
        let mut all = self.lock();
        if let Some(working) = all.get_mut(agent).filter(|working| working.name == *name) {
            working.open_requests = working.open_requests.saturating_sub(1);
            working.last_answer = *at;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, ActiveInstance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveInstance {
    fn is_waiting(&self, now: Timestamp) -> bool {
        self.open_requests > 0 && now < self.open_until
    }
}

impl Admission {
    fn check(self) -> Result<(), Problem> {
        match self {
            Self::Granted => Ok(()),
            Self::OtherIsActive => {
                let text = "another program is already working as this agent; register a separate agent for each program";
                Err(Problem::new(&errors::OTHER_INSTANCE, text))
            }
            Self::OtherWasActive { seconds } => {
                let text = format!(
                    "another program worked as this agent a moment ago; its work is reserved for that program for {seconds} s more"
                );
                Err(Problem::new(&errors::OTHER_INSTANCE, text).with_retry_after(seconds))
            }
        }
    }
}

async fn call_writer(engine: &Engine, event: &InstanceEvent) -> Option<Admission> {
    let answer = engine.call_writer(serde_json::to_vec(event).ok()?).await?;
    serde_json::from_slice(&answer).ok()
}

impl Drop for WorkRequest {
    fn drop(&mut self) {
        let end =
            InstanceEvent { at: self.engine.now(), kind: EventKind::End, ..self.begin.clone() };
        if self.is_local {
            return self.instances.end(&end);
        }
        // Without a runtime this node is stopping; then the writer notices that the request is over.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let engine = self.engine.clone();
            runtime.spawn(async move { call_writer(&engine, &end).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, at: i64, kind: EventKind) -> InstanceEvent {
        InstanceEvent { agent: AgentId(1), name: name.to_owned(), at: Timestamp(at), kind }
    }

    #[test]
    fn a_request_whose_end_was_lost_with_its_node_does_not_count_forever() {
        let instances = Instances::default();
        let begin = |name, at| instances.apply(&event(name, at, EventKind::Begin));
        assert_eq!(begin("one", 0), Admission::Granted);
        assert_eq!(begin("two", 39_999), Admission::OtherIsActive);
        assert_eq!(begin("two", 40_000), Admission::Granted);
        // The end of the first comes late and is not taken for that of the second.
        instances.apply(&event("one", 41_000, EventKind::End));
        assert_eq!(begin("one", 42_000), Admission::OtherIsActive);
        instances.apply(&event("two", 43_000, EventKind::End));
        assert_eq!(begin("one", 44_000), Admission::OtherWasActive { seconds: 9 });
    }
}
