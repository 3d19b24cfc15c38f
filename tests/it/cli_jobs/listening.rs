//! `rialto listen`: notices forwarded to a program, each once, in order, and signed.

use rialto_client::relay::WebhookSecret;
use rialto_core::time::Timestamp;
use serde_json::{Value, json};

use super::door::Door;
use super::kit::{CliFixture, Ran, command, finished};
use crate::kit::{Agent, Behaviour, Got, Worker, eventually};

fn taken() -> Behaviour {
    Behaviour::Say(204, String::new())
}

fn header(got: &Got, name: &str) -> String {
    got.headers.get(name).and_then(|value| value.to_str().ok()).expect(name).to_owned()
}

/// The position up to which an agent has acknowledged its inbox.
async fn acked(fixture: &CliFixture, agent: &Agent) -> Value {
    fixture.get("/v1/me", Some(&agent.key)).await.expect(200).at("/inbox/acked")
}

/// The notices of an agent at the hub.
async fn inbox(fixture: &CliFixture, agent: &Agent) -> Vec<Value> {
    let page = fixture.get("/v1/inbox?after=0", Some(&agent.key)).await.expect(200);
    page.at("/items").as_array().expect("a list").clone()
}

/// Starts `listen` for an agent through the server at this URL.
fn listening(
    fixture: &CliFixture,
    hub: &str,
    agent: &Agent,
    line: &[&str],
) -> tokio::task::JoinHandle<Ran> {
    let mut command = command(fixture.home.path(), hub, &[&["listen"], line].concat());
    command.env("RIALTO_KEY", &agent.key);
    tokio::spawn(finished(command, ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_are_brought_in_order_signed_and_then_acknowledged() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    let jobs = [fixture.posted("shout", &[]).await, fixture.posted("shout", &[]).await];
    let hook = Worker::start(taken()).await;
    let url = format!("{}/hook", hook.url);
    let line = ["--forward-to", url.as_str(), "--count", "2"];
    let made = fixture.post("/v1/webhooks/secret", Some(&shop.key), &json!({})).await.expect(200);
    let secret = WebhookSecret::read(&made.str("/webhook_secret")).expect("the agent's own");
    let ran = listening(&fixture, &fixture.url, &shop, &line).await.expect("no panic").ok();
    let told: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split("  ").collect()).collect();
    assert_eq!(told.len(), 2, "{ran:#?}");
    let (got, notices) = (hook.got(), inbox(&fixture, &shop).await);
    for (at, job) in jobs.iter().enumerate() {
        let notice = &notices[at];
        let own = fixture.get(&format!("/v1/jobs/{job}"), Some(&shop.key)).await.expect(200);
        assert_eq!(got[at].json()["job_id"], own.at("/foreign_id"), "the protocol's own id");
        assert_eq!((&notice["kind"], &notice["job"]), (&json!("assigned"), &json!(job)));
        let when = notice["at"].as_str().expect("a time");
        assert_eq!(told[at], [when, "assigned", "204", job]);
        let seconds: i64 = header(&got[at], "webhook-timestamp").parse().expect("seconds");
        let now = Timestamp(seconds * 1_000);
        secret.verify(&got[at].headers, got[at].body.as_bytes(), now).expect("it is signed");
        assert_eq!(
            (got[at].path.as_str(), header(&got[at], "content-type").as_str()),
            ("/hook/jobs", "application/json")
        );
    }
    assert_ne!(header(&got[0], "webhook-id"), header(&got[1], "webhook-id"));
    assert_eq!(acked(&fixture, &shop).await, json!(2));
}

/// Headers that differ between attempts or belong to the connection.
const OF_A_TRY: [&str; 4] = ["webhook-timestamp", "webhook-signature", "host", "content-length"];

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_the_bytes_and_headers_that_a_real_webhook_gets() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    let (real, here) = (Worker::start(taken()).await, Worker::start(taken()).await);
    let id = fixture.posted("shout", &["--callback", &format!("{}/back", real.url)]).await;
    fixture.work(&shop, &id, json!({"text": "HELLO", "n": 1.50})).await;
    let sent = real.heard(1).await.remove(0);
    let url = format!("{}/back", here.url);
    let line = ["--forward-to", url.as_str(), "--count", "1"];
    listening(&fixture, &fixture.url, &fixture.boss, &line).await.expect("no panic").ok();
    let brought = here.got().remove(0);
    assert_eq!((&brought.path, &brought.body), (&sent.path, &sent.body));
    let lasting = |got: &Got| {
        let kept = got.headers.iter().filter(|(name, _)| !OF_A_TRY.contains(&name.as_str()));
        kept.map(|(name, value)| (name.to_string(), value.clone())).collect::<Vec<_>>()
    };
    let mut headers = [lasting(&sent), lasting(&brought)];
    headers.iter_mut().for_each(|headers| headers.sort_by(|a, b| a.0.cmp(&b.0)));
    assert_eq!(headers[0], headers[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_comes_again_under_the_same_id_and_is_not_acknowledged() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.posted("shout", &[]).await;
    fixture.posted("shout", &[]).await;
    let hook = Worker::start(Behaviour::Say(500, "no".to_owned())).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let line = ["--forward-to", &hook.url, "--count", "1", "--json", "--secret", secret];
    let listening = listening(&fixture, &fixture.url, &shop, &line);
    let got = hook.heard(2).await;
    assert_eq!(acked(&fixture, &shop).await, json!(0));
    hook.behave(taken());
    let ran = listening.await.expect("no panic").ok();
    assert_eq!(
        (ran.json()["position"].clone(), ran.json()["status"].clone()),
        (json!(1), json!(204))
    );
    assert!(ran.err.contains("answered 500; retrying in") && ran.err.contains(secret), "{ran:#?}");
    assert_eq!(header(&got[0], "webhook-id"), header(&got[1], "webhook-id"));
    let first = header(&got[0], "webhook-id");
    assert!(
        hook.got().iter().all(|got| header(got, "webhook-id") == first),
        "the second one waits"
    );
    assert_eq!(acked(&fixture, &shop).await, json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_when_the_hub_or_the_command_starts_again() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    let hook = Worker::start(taken()).await;
    let door = Door::to(&fixture.url).await;
    let line = ["--forward-to", hook.url.as_str(), "--count", "2"];
    let waiting = listening(&fixture, &door.url, &shop, &line);
    fixture.posted("shout", &[]).await;
    hook.heard(1).await;
    eventually(async || acked(&fixture, &shop).await == json!(1)).await;
    door.close();
    let CliFixture { hub, home, boss } = fixture;
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let fixture = CliFixture { hub, home, boss };
    fixture.posted("shout", &[]).await;
    fixture.posted("shout", &[]).await;
    door.open_to(&fixture.url);
    waiting.await.expect("no panic").ok();
    let line = ["--forward-to", hook.url.as_str(), "--count", "1"];
    listening(&fixture, &fixture.url, &shop, &line).await.expect("no panic").ok();
    let mut ids: Vec<String> = hook.got().iter().map(|got| header(got, "webhook-id")).collect();
    assert_eq!(ids.len(), 3, "each once: {ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), 3, "nothing twice: {ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_notices_are_documents_and_stay_unacknowledged() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &shop);
    fixture.posted("shout", &[]).await;
    for _ in 0..2 {
        let mut command = fixture.command(&["listen", "--print", "--count", "1", "--as", "shout"]);
        command.env("RIALTO_HUB", &fixture.url);
        let ran = finished(command, "").await.ok();
        assert_eq!(ran.json(), inbox(&fixture, &shop).await[0]);
        assert_eq!(acked(&fixture, &shop).await, json!(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_no_has_its_exit_code() {
    let fixture = CliFixture::start().await;
    fixture.run(&["listen", "--forward-to", "here"]).await.failed(2, "--forward-to http://");
    fixture.run(&["listen", "--print", "--as", "nobody"]).await.failed(3, "agent nobody not found");
    let mut stranger = fixture.command(&["listen", "--print", "--json"]);
    stranger.env("RIALTO_KEY", "rk_wrong");
    let ran = finished(stranger, "").await.expect(4);
    assert!(ran.json()["error"].is_string(), "{ran:#?}");
    let nobody = crate::kit::ClosedPort::take();
    let ran =
        listening(&fixture, &nobody.url, &fixture.boss, &["--print"]).await.expect("no panic");
    ran.failed(7, "cannot reach");
}
