//! Addresses the hub must not call: its own and its network's (R65).

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use serde_json::{Value, json};

use super::market::{SKILL, quiet};
use crate::kit::{Agent, Behaviour, TestHub, Worker, assert_later, assert_malformed, snapshot};

/// A hub that may call only the public internet, which these tests never do.
const STRICT: [(&str, &str); 1] = [("egress.allow", "")];

const FORBIDDEN: &[&str] = &[
    // This machine, in every spelling of a URL.
    "https://127.0.0.1/jobs",
    "https://127.0.0.1:8010",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.8.9.10/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://localhost/",
    "https://LocalHost.:443/",
    "https://hub.localhost/",
    // Its private networks.
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/",
    "https://[fc00::1]/",
    "https://[fd12:3456::1]/",
    "https://[fe80::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::a00:1]/",
    "https://[2002:a00:1::]/",
    // Multicast, broadcast and reserved addresses.
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://240.0.0.1/",
    "https://[ff02::1]/",
    // Public hosts in a form that is not allowed.
    "http://agent.example/",
    "http://93.184.216.34/",
    "https://user@agent.example/",
    "https://user:secret@agent.example/",
    "https://@agent.example/",
    "https://agent.example:0/",
    "https://agent.example\\@10.0.0.1/",
    "https://agent.example/\tx",
    "https://",
    "https:///agent.example",
];

fn registration(endpoint: &str) -> Value {
    json!({"agent_name": "w", "owner_id": "acme", "api_endpoint": endpoint,
        "skills": [{"skill_name": SKILL, "cost_per_call": 0}]})
}

async fn hubs() -> [TestHub; 2] {
    [TestHub::serve(&STRICT).await, TestHub::open(&STRICT).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_endpoint_is_refused_at_registration() {
    for hub in hubs().await {
        let known = hub.enrol(&registration("https://agent.example/jobs"), None).await;
        let before = snapshot(&hub).await;
        for url in FORBIDDEN {
            let mut new = registration(url);
            new["owner_id"] = "newcomer".into();
            for path in ["/registry/register", "/register"] {
                assert_malformed(&hub.post(path, None, &new).await, "/api_endpoint");
            }
            let mut moved = registration(url);
            moved["agent_id"] = known.id.as_str().into();
            let reply = hub.post("/registry/register", Some(&known.key), &moved).await;
            assert_malformed(&reply, "/api_endpoint");
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_callback_is_refused_with_the_job() {
    for hub in hubs().await {
        let asking = hub.orchestrator("o1").await;
        let working = hub.agent("acme", SKILL, "0", None).await;
        let before = snapshot(&hub).await;
        let others = [
            "ftp://agent.example/",
            "local://memory",
            "javascript:alert(1)",
            "agent.example",
            "file:///etc/passwd",
        ];
        for url in FORBIDDEN.iter().chain(&others) {
            let body = json!({"orchestrator_id": asking.id, "skill_name": SKILL, "input_data": {}, "budget": 0,
                "callback_url": url, "agent_id": working.id});
            for path in ["/registry/jobs", "/jobs"] {
                let reply = hub.post(path, Some(&asking.key), &body).await;
                assert_malformed(&reply, "/callback_url");
                assert_eq!(reply.str("/status"), "FAILURE", "{url}");
            }
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_with_another_scheme_means_that_the_agent_polls() {
    let hub = TestHub::serve(&STRICT).await;
    let asking = hub.orchestrator("o1").await;
    for endpoint in ["local://memory", "ftp://127.0.0.1/"] {
        let mut body = registration(endpoint);
        body["owner_id"] = endpoint.into();
        let agent = hub.enrol(&body, None).await;
        hub.hire(&asking, &agent, SKILL, "0").await.expect(202);
        assert_eq!(hub.engine.with_world(|world| world.deliveries().count()), 0);
    }
    hub.stop().await;
}

/// Names in this machine's hosts file that resolve to loopback, besides those the hub knows.
fn names_of_this_machine() -> Vec<String> {
    let table = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = table
        .lines()
        .filter_map(|line| line.split('#').next())
        .flat_map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>());
    let leads_home = |name: &String| {
        let found = (name.as_str(), 443)
            .to_socket_addrs()
            .map(|all| all.map(|one| one.ip()).collect::<Vec<_>>());
        !name.ends_with("localhost") && found.is_ok_and(|all| all.iter().any(IpAddr::is_loopback))
    };
    names.filter(leads_home).collect()
}

/// Hires an agent whose endpoint is this URL, and returns the agent.
async fn try_endpoint(hub: &TestHub, asking: &Agent, url: &str) -> Agent {
    let mut body = registration(url);
    body["owner_id"] = url.into();
    let agent = hub.enrol(&body, None).await;
    assert_later(&hub.hire(asking, &agent, SKILL, "0").await, 503, "AGENT_OFFLINE", 30);
    quiet(hub).await;
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_loopback_is_never_dialled() {
    // There is a listener, which would see a call.
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let port = worker.url.rsplit_once(':').expect("a port").1.to_owned();
    // Over https, and over http if another network is listed.
    let strict = TestHub::serve(&STRICT).await;
    let other = TestHub::serve(&[("egress.allow", "10.20.30.0/24")]).await;
    for (hub, scheme) in [(&strict, "https"), (&other, "https"), (&other, "http")] {
        let asking = hub.orchestrator(scheme).await;
        for name in names_of_this_machine() {
            let agent = try_endpoint(hub, &asking, &format!("{scheme}://{name}:{port}/")).await;
            let shown = hub.get(&format!("/registry/agents/{}", agent.id), None).await.expect(200);
            assert_eq!(shown.str("/status"), "offline");
        }
    }
    assert!(worker.got().is_empty());
    strict.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_network_is_called_and_only_that() {
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let address: SocketAddr = worker.url.trim_start_matches("http://").parse().expect("an address");
    let hub = TestHub::serve(&[("egress.allow", "127.0.0.1/32")]).await;
    let asking = hub.orchestrator("o1").await;
    let agent = hub.enrol(&registration(&worker.url), None).await;
    hub.hire(&asking, &agent, SKILL, "0").await.expect(200);
    assert_eq!(worker.got().len(), 1);
    let mut body = registration(&format!("http://127.0.0.2:{}", address.port()));
    body["owner_id"] = "other".into();
    assert_malformed(&hub.post("/register", None, &body).await, "/api_endpoint");
    hub.stop().await;
}
