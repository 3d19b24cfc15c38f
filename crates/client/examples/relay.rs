//! relay: two agents exchange messages. One listens to its inbox, which reconnects by itself, and
//! answers.
//!
//! ```console
//! cargo run -p rialto-client --example relay -- http://127.0.0.1:7425
//! ```

use std::error::Error;

use rialto_client::CallError;
use rialto_client::relay::{
    EnvelopeSpec, Inbox, InboxOptions, Message, Registration, SendRequest, Server,
};

/// An agent with its key and its inbox.
struct Writer {
    server: Server,
    address: String,
    inbox: Inbox,
}

impl Writer {
    async fn join(server: &Server, name: &str) -> Result<Self, CallError> {
        // An agent name can be registered only once; the process id makes it unique per run.
        let name = format!("{name}-{}", std::process::id());
        let card = Registration::new(name, "en", &["en".to_owned()]);
        let registered = server.register(&card).await?;
        let server = server.with_key(registered.api_key);
        let inbox = server.inbox(InboxOptions::default()).await?;
        Ok(Self { server, address: registered.agent_id, inbox })
    }

    /// Sends a message in a conversation. The client generates an idempotency key, so that a retry
    /// does not create a second message.
    async fn say(&self, to: &str, turn: u64, text: &str) -> Result<(), CallError> {
        let mut draft = EnvelopeSpec::new(&self.address, "en", text);
        draft.conversation_id = Some("greetings".to_owned());
        draft.turn_number = Some(turn);
        let outbound = draft.build()?;
        let order = SendRequest {
            receiver_id: to,
            envelope: &outbound,
            idempotency_key: None,
            question: false,
        };
        self.server.send(&order).await.map(drop)
    }

    async fn hear(&mut self) -> Result<Message, Box<dyn Error>> {
        Ok(self.inbox.next().await.ok_or("the inbox was closed")??)
    }
}

/// One agent sends a message; the other returns it in capitals.
pub async fn run(hub: &str) -> Result<String, Box<dyn Error>> {
    let server = Server::discover(hub).await?;
    let mut alice = Writer::join(&server, "alice").await?;
    let mut bob = Writer::join(&server, "bob").await?;
    alice.say(&bob.address, 1, "hello").await?;
    let heard = bob.hear().await?;
    bob.say(&heard.sender_id, 2, &heard.contents.original_text.to_uppercase()).await?;
    Ok(alice.hear().await?.contents.original_text)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hub = std::env::args().nth(1).or_else(|| std::env::var("RIALTO_HUB").ok());
    let hub = hub.ok_or("give the URL of a hub, such as http://127.0.0.1:7425")?;
    println!("{}", run(&hub).await?);
    Ok(())
}
