//! Agents with an A2A server of their own: registered, hired, followed and paid.

mod access;
mod cards;
mod cli;
mod crash;
mod failures;
mod faults;
mod flow;
mod follow;
mod refresh;
mod sends;
pub mod server;
mod signed;
mod work;

use serde_json::{Value, json};

use super::kit::Client;
use crate::kit::{Reply, TestHub};
use server::Puppet;

/// An agent with a server of its own.
struct Remote {
    name: String,
    key: String,
    /// Where the hub serves it.
    base: String,
}

impl TestHub {
    /// Registers an agent by its card.
    async fn register_card(&self, key: Option<&str>, body: &Value) -> Reply {
        self.post("/a2a/agents", key, body).await
    }

    /// An agent with the server of this test.
    async fn remote(&self, puppet: &Puppet, name: &str) -> Remote {
        let body = json!({"card_url": puppet.card_url(), "name": name});
        let reply = self.register_card(None, &body).await.expect(201);
        Remote {
            name: name.to_owned(),
            key: reply.str("/api_key"),
            base: format!("/a2a/agents/{name}"),
        }
    }

    /// The same, whose card shows whose it is, with a price.
    async fn paid_remote(&self, puppet: &Puppet, name: &str, price: &str) -> Remote {
        let body = json!({"card_url": puppet.card_url(), "name": name, "prices": {"route": price}});
        let reply = self.register_card(None, &body).await.expect(201);
        puppet.change_card(|card| {
            card["capabilities"]["extensions"] = json!([reply.at("/proof")]);
        });
        let key = reply.str("/api_key");
        let refreshed = self.refresh(name, &key).await.expect(200);
        assert_eq!(refreshed.at("/proven"), true, "{}", refreshed.text);
        Remote { name: name.to_owned(), key, base: format!("/a2a/agents/{name}") }
    }

    async fn refresh(&self, name: &str, key: &str) -> Reply {
        self.call("POST", &format!("/a2a/agents/{name}/refresh"), Some(key), None).await
    }

    /// The newest task of a client at an agent, until it has a state.
    async fn until(&self, client: &Client, base: &str, task: &str, state: &str) -> Value {
        let mut last = Value::Null;
        crate::kit::eventually(async || {
            last = self.get_task(base, &client.key, task).await;
            last["status"]["state"] == state
        })
        .await;
        last
    }
}
