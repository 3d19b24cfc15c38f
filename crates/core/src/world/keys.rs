//! Credentials by their hashes, and the keys of each agent.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::World;
use crate::agent::key::{Holder, Key, KeyHash};
use crate::id::{AgentId, KeyId};
use crate::time::Timestamp;

/// A key in a set of keys that is searched by hash, so that no hash is kept twice.
#[derive(Clone)]
pub(super) struct KeyByHash(pub Arc<Key>);

impl Borrow<KeyHash> for KeyByHash {
    fn borrow(&self) -> &KeyHash {
        &self.0.hash
    }
}

impl Hash for KeyByHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

impl PartialEq for KeyByHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash
    }
}

impl Eq for KeyByHash {}

impl World {
    pub fn key(&self, hash: &KeyHash) -> Option<&Arc<Key>> {
        self.keys.get(hash).map(|key| &key.0)
    }

    /// All keys of operators, in no order. An expired one is removed soon after.
    pub fn operator_keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.all_keys().filter(|key| key.holder == Holder::Operator)
    }

    /// All keys of an agent. An expired one is removed soon after.
    pub fn keys_of(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Key>> {
        let first = self.agents.entry(agent).and_then(|entry| entry.key.as_ref());
        let more = self.further_keys.get(&agent).into_iter().flatten();
        first.map(|key| &key.hash).into_iter().chain(more).filter_map(|hash| self.key(hash))
    }

    /// All keys, in no order.
    pub(super) fn all_keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.iter().map(|key| &key.0)
    }

    pub(super) fn set_key(&mut self, key: Arc<Key>) {
        if let Holder::Agent(agent) = key.holder {
            let first = &mut self.agents.entry_mut(agent).key;
            if first.as_ref().is_none_or(|first| first.hash == key.hash) {
                *first = Some(key.clone());
            } else {
                let more = self.further_keys.entry(agent).or_default();
                if !more.contains(&key.hash) {
                    more.push(key.hash);
                }
            }
        }
        if let Some(until) = key.valid_until {
            self.key_expiries.insert((until, key.id), key.hash);
        }
        let before = self.keys.replace(KeyByHash(key.clone())).map(|before| before.0);
        if let Some(until) = before.filter(|old| old.id == key.id).and_then(|old| old.valid_until)
            && key.valid_until != Some(until)
        {
            self.key_expiries.remove(&(until, key.id));
        }
    }

    pub(super) fn drop_key(&mut self, end: (Timestamp, KeyId)) {
        let Some(hash) = self.key_expiries.remove(&end) else { return };
        // If the same key was issued again, that has a row of its own.
        let Some(key) = self.key(&hash).filter(|key| key.id == end.1).cloned() else { return };
        self.keys.remove(&hash);
        if let Holder::Agent(agent) = key.holder {
            self.drop_key_of(agent, &hash);
        }
    }

    fn drop_key_of(&mut self, agent: AgentId, hash: &KeyHash) {
        let mut more = self.further_keys.remove(&agent).unwrap_or_default();
        more.retain(|one| one != hash);
        let first = self.agents.entry(agent).and_then(|entry| entry.key.as_ref());
        if first.is_some_and(|first| first.hash == *hash) {
            let next = if more.is_empty() { None } else { Some(more.remove(0)) };
            let next = next.and_then(|next| self.key(&next).cloned());
            self.agents.entry_mut(agent).key = next;
        }
        if !more.is_empty() {
            self.further_keys.insert(agent, more);
        }
    }
}
