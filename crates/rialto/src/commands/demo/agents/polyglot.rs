//! The Polyglot: an agent of relay. It knows nothing of jobs and credits; it replies to messages.

use rialto_client::CallError;
use rialto_client::relay::{
    EnvelopeSpec, InboxOptions, Message, Registration, SendRequest, Server,
};
use tokio::time::sleep;

use super::{AgentRunner, WORK_TIME};
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::Role;

const CULTURE: &str = "fr";
/// Its French vocabulary.
const WORDS: [(&str, &str); 4] =
    [("the", "le"), ("bridge", "pont"), ("is", "est"), ("open", "ouvert")];

struct Polyglot {
    server: Server,
    address: String,
    tell: Reporter,
}

pub async fn start(wings: &mut AgentRunner) -> Result<String, CallError> {
    let server = Server::discover(&wings.url).await?;
    let languages = ["fr".to_owned(), "en".to_owned()];
    let card = Registration::new(Role::Polyglot.slug(), CULTURE, &languages);
    let registered = server.register(&card).await?;
    let server = server.with_key(registered.api_key);
    let id = format!("relay:{}", registered.agent_id);
    let mut inbox = server.inbox(InboxOptions::default()).await?;
    let polyglot = Polyglot { server, address: registered.agent_id, tell: wings.reporter.clone() };
    wings.spawn(Role::Polyglot, async move {
        while let Some(message) = inbox.next().await {
            polyglot.reply(&message?).await?;
        }
        Ok(())
    });
    Ok(id)
}

impl Polyglot {
    /// Replies in French, in the same conversation.
    async fn reply(&self, message: &Message) -> Result<(), CallError> {
        self.tell.report_activity(Role::Polyglot, "reads a message");
        sleep(WORK_TIME).await;
        let said = &message.contents;
        let french = french(&said.original_text);
        let mut draft = EnvelopeSpec::new(&self.address, CULTURE, &french);
        draft.conversation_id.clone_from(&said.conversation_id);
        draft.turn_number = said.turn_number.map(|turn| turn + 1);
        let told = format!("replies to the message: \"{french}\"");
        self.tell.report_action(
            Role::Polyglot,
            ActionKind::Delivers.with_party(Role::Editor),
            told,
        );
        let outbound = draft.build()?;
        let order = SendRequest {
            receiver_id: &message.sender_id,
            envelope: &outbound,
            idempotency_key: None,
        };
        self.server.send(&order).await.map(drop)
    }
}

fn french(text: &str) -> String {
    let word = |word: &str| WORDS.iter().find(|(english, _)| *english == word).map(|found| found.1);
    let words: Vec<&str> = text.split(' ').map(|said| word(said).unwrap_or(said)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_the_words_it_needs() {
        assert_eq!(french("the bridge is open"), "le pont est ouvert");
        assert_eq!(french("the tunnel"), "le tunnel");
    }
}
