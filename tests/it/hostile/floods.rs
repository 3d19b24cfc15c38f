//! Floods of valid and invalid requests: messages, registrations, offers, wrong keys (T6, T47,
//! T50).

use futures_util::future::join_all;
use rialto_protocols::agora::{EnvelopeSigner, MessageType};
use rialto_protocols::kit::ed25519::SecretKey;
use serde_json::json;

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use crate::agora::kit::Key;
use crate::kit::Reply;
use crate::openclaw::kit::identity;

/// The response has a standard `Retry-After` header.
#[track_caller]
fn assert_later(reply: &Reply) {
    assert_eq!(reply.status, 429, "{}", reply.text);
    let seconds: u64 =
        reply.header("retry-after").and_then(|text| text.parse().ok()).expect("a number");
    assert!(seconds > 0, "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flooded_inbox_stops_only_its_sender() {
    const ROOM: usize = 50;
    let process = HubProcess::open(&[("limits.inbox_pending", "50")]);
    let bystander = Bystander::arrive(&process).await;
    let before = process.memory();
    let (flood, victim) = (process.join("flood").await, process.join("victim").await);
    let said = join_all((0..300).map(|n| {
        let text = format!("no. {n}");
        let (process, flood, victim) = (&process, &flood, &victim);
        async move { process.say(flood, victim, &text).await }
    }))
    .await;
    let taken = said.iter().filter(|reply| reply.status == 202).count();
    assert_eq!(taken, ROOM, "the inbox takes as many as fit, and drops none silently");
    said.iter().filter(|reply| reply.status != 202).for_each(assert_later);
    // The victim can send, and the flooding agent can still write to others.
    let other = process.join("other").await;
    process.say(&victim, &other, "help").await.expect(202);
    process.say(&flood, &other, "hello").await.expect(202);
    let page = process.get("/relay/agent/messages?limit=200", Some(&victim.key)).await.expect(200);
    assert_eq!(page.at("/data").as_array().map_or(0, Vec::len).min(ROOM), ROOM, "{}", page.text);
    // Once the inbox is read, it accepts messages again.
    let read = json!({"up_to": ROOM});
    process.post("/relay/agent/inbox/ack", Some(&victim.key), &read).await.expect(200);
    process.say(&flood, &victim, "one more").await.expect(202);
    process.assert_within(before, 64 << 20, "a flooded inbox");
    bystander.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registration_spam_is_told_when_to_come_back_at_every_door() {
    // The limit per address, and the limit in total.
    for limit in ["limits.registrations_per_minute", "limits.registrations_per_minute_total"] {
        spam(limit).await;
    }
}

async fn spam(limit: &str) {
    const A_MINUTE: &str = "20";
    const DOORS: usize = 5;
    let process = HubProcess::open(&[(limit, A_MINUTE)]);
    let bystander = Bystander::arrive(&process).await;
    let (ada, bob) = (process.join("ada").await, process.join("bob").await);
    let before = process.memory();
    let register = async |n: usize| {
        let now = crate::agora::kit::now();
        match n % DOORS {
            0 => {
                let body = json!({"agent_name": "spam", "owner_id": format!("o{n}"), "skills": []});
                process.post("/registry/register", None, &body).await
            }
            1 => process.post("/relay/register", None, &json!({"agent_id": format!("s{n}")})).await,
            2 => process.post("/openclaw/identity", None, &identity("spam", now)).await,
            3 => process.post("/a2a/agents", None, &json!({"name": format!("s{n}")})).await,
            _ => {
                let mut seed = [3; 32];
                seed[..8].copy_from_slice(&n.to_be_bytes());
                let key = Key { composer: EnvelopeSigner::new(SecretKey::from_seed(&seed)) };
                let hello = key.sign(MessageType::Hello, &json!({"name": "spam"})).json();
                process.post("/agora/envelopes", None, &hello).await
            }
        }
    };
    let mut refused = [0; DOORS];
    for n in 0..400 {
        let reply = register(n).await;
        match reply.status {
            200 | 201 => {}
            _ => {
                assert_later(&reply);
                refused[n % DOORS] += 1;
            }
        }
    }
    let taken: usize = 400 - refused.iter().sum::<usize>();
    assert!(taken < 100, "{taken} of 400 were accepted");
    assert!(refused.iter().all(|count| *count > 50), "every route refuses: {refused:?}");
    // Registered agents are not affected.
    process.say(&ada, &bob, "still here").await.expect(202);
    process.assert_within(before, 64 << 20, "registration spam");
    bystander.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_are_told_when_to_come_back_at_every_door_and_good_ones_go_on() {
    const A_MINUTE: &str = "20";
    const READS: [&str; 8] = [
        "/v1/me",
        "/v1/events",
        "/registry/accounts/ada",
        "/relay/agent/messages",
        "/relay/agent/inbox",
        "/openclaw/stream",
        "/agora/messages",
        "/a2a/tasks",
    ];
    let process = HubProcess::open(&[("limits.wrong_keys_per_minute", A_MINUTE)]);
    let bystander = Bystander::arrive(&process).await;
    let (ada, bob) = (process.join("ada").await, process.join("bob").await);
    let said = crate::relay::kit::message(&ada.id, &bob.id, "let me in");
    let guess = async |n: usize| {
        let key = format!("rk_{n:048x}");
        match READS.get(n % (READS.len() + 1)) {
            Some(path) => process.get(path, Some(&key)).await,
            // Through the fast path.
            None => process.post("/relay/messages", Some(&key), &said).await,
        }
    };
    let mut refused = [0; READS.len() + 1];
    for n in 0..200 {
        let reply = guess(n).await;
        match reply.status {
            401 => {}
            _ => {
                assert_later(&reply);
                refused[n % refused.len()] += 1;
            }
        }
    }
    let heard: usize = 200 - refused.iter().sum::<usize>();
    assert!((20..100).contains(&heard), "{heard} of 200 got a wrong-key answer");
    assert!(refused.iter().all(|count| *count > 5), "every route refuses: {refused:?}");
    // Callers at the same address with a valid key, or with none, are not affected.
    for path in ["/v1/me", "/relay/agent/messages"] {
        process.get(path, Some(&ada.key)).await.expect(200);
        process.get(path, None).await.expect(401);
    }
    process.say(&ada, &bob, "still here").await.expect(202);
    bystander.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_offers_is_bounded_and_one_of_them_can_be_taken() {
    /// How many offers one agent may make for one job.
    const EACH: usize = 4;
    let process = HubProcess::open(&[]);
    let bystander = Bystander::arrive(&process).await;
    let requester = process.agent("requester", "asks", None).await;
    let workers = join_all((0..40).map(|n| {
        let (process, owner) = (&process, format!("w{n}"));
        async move { process.agent(&owner, "work", None).await }
    }))
    .await;
    let before = process.memory();
    let wanted = json!({"skill": "work", "budget": 0, "select": "offers"});
    let job = process.post("/v1/jobs", Some(&requester.key), &wanted).await.expect(201).str("/id");
    let path = format!("/v1/jobs/{job}/offers");
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..25 {
        let offers = workers.iter().map(|worker| {
            let (process, path) = (&process, &path);
            async move { process.post(path, Some(&worker.key), &json!({"price": 0})).await }
        });
        for reply in join_all(offers).await {
            if reply.status == 201 {
                taken += 1;
                continue;
            }
            // A retry does not help, and the agent is not busy.
            assert_eq!(reply.status, 422, "{}", reply.text);
            assert_eq!(reply.str("/code"), "refused", "{}", reply.text);
            assert_eq!(reply.at("/retryable"), false, "{}", reply.text);
            refused += 1;
        }
    }
    assert_eq!((taken, refused), (EACH * workers.len(), (25 - EACH) * workers.len()));
    // The requester sees all accepted offers, and accepts one.
    let taken = json!({"agent": workers[0].id, "price": 0});
    let path = format!("/v1/jobs/{job}/accept");
    process.post(&path, Some(&requester.key), &taken).await.expect(200);
    process.assert_within(before, 64 << 20, "a flood of offers");
    bystander.leave().await;
}
