//! Webhook secrets: which of an agent's secrets are valid now. They are derived from their number
//! elsewhere; here they are only counted.

use serde::{Deserialize, Serialize};

use super::Agent;
use crate::answer::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// How long deliveries are also signed with a replaced secret: a day, in which the receiver
/// switches to the new one.
pub const SECRET_OVERLAP: Millis = Millis::hours(24);
/// Replaced secrets that stay valid. A caller that lost the answer to a renewal has to renew again
/// while its receiver still has the earlier secret. The limit keeps the signature header short,
/// however often a caller renews.
const OLD_SECRETS_MAX: usize = 3;

/// A secret that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldSecret {
    pub generation: u32,
    pub until: Timestamp,
}

impl Agent {
    /// The secrets that are valid now, newest first.
    pub fn valid_secrets(&self, now: Timestamp) -> impl Iterator<Item = u32> {
        let old = self.old_secrets.iter().rev().filter(move |old| now < old.until);
        std::iter::once(self.secret_generation).chain(old.map(|old| old.generation))
    }
}

/// Adds a new secret; the others expire.
pub fn renew(draft: &mut Draft<'_>, id: AgentId) -> Result<Answer, Refusal> {
    let agent = draft.agent(id).filter(|agent| agent.active).cloned();
    let mut agent = agent.ok_or(Refusal::NoSuchAgent)?;
    let now = draft.now;
    agent.old_secrets.retain(|old| now < old.until);
    let generation = agent.secret_generation;
    agent.old_secrets.push(OldSecret { generation, until: now.plus(SECRET_OVERLAP) });
    let surplus = agent.old_secrets.len().saturating_sub(OLD_SECRETS_MAX);
    agent.old_secrets.drain(..surplus);
    agent.secret_generation = generation.saturating_add(1);
    draft.put_agent(agent);
    draft.add_event(Event::SecretRenewed { agent: id });
    Ok(super::registration::agent_answer(draft, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Actor, Command, Registration};
    use crate::testkit::{TestHub, registration_with_endpoint};

    fn good(scene: &TestHub, agent: AgentId) -> Vec<u32> {
        scene.world.agent(agent).expect("it is there").valid_secrets(scene.now).collect()
    }

    #[test]
    fn a_replaced_secret_is_good_for_a_day_and_no_longer() {
        let mut scene = TestHub::default();
        let ada = scene.register(registration_with_endpoint("ada", "acme", &[])).unwrap();
        assert_eq!(good(&scene, ada), [1]);
        scene.run(Command::RenewSecret { agent: ada }).unwrap();
        assert_eq!(good(&scene, ada), [2, 1]);
        scene.now = scene.now.plus(Millis(SECRET_OVERLAP.0 - 1));
        assert_eq!(good(&scene, ada), [2, 1]);
        // Registering again keeps all of them.
        scene
            .register(Registration {
                actor: Actor::Agent(ada),
                ..registration_with_endpoint("ada", "acme", &[])
            })
            .unwrap();
        assert_eq!(good(&scene, ada), [2, 1]);
        scene.now = scene.now.plus(Millis(1));
        assert_eq!(good(&scene, ada), [2]);
    }

    #[test]
    fn asking_on_and_on_keeps_the_newest_ones_good() {
        let mut scene = TestHub::default();
        let ada = scene.register(registration_with_endpoint("ada", "acme", &[])).unwrap();
        for _ in 0..5 {
            scene.run(Command::RenewSecret { agent: ada }).unwrap();
        }
        assert_eq!(good(&scene, ada), [6, 5, 4, 3]);
    }

    #[test]
    fn who_has_left_gets_no_secret() {
        let mut scene = TestHub::default();
        let ada = scene.register(registration_with_endpoint("ada", "acme", &[])).unwrap();
        scene.run(Command::Remove { agent: ada, by_operator: false }).unwrap();
        let refused = scene.run(Command::RenewSecret { agent: ada });
        assert_eq!(refused.err(), Some(Refusal::NoSuchAgent));
    }
}
