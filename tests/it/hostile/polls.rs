//! Many concurrent long polls (G7, G20).

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use super::room::Room;
use crate::kit::in_time;
use crate::relay::kit::Peer;

const WAITING: usize = 1_000;
/// The number of agent groups that poll.
const PARTIES: usize = 20;
/// How many long polls one agent may have open.
const EACH_MAX: usize = 64;
/// Memory limit of one long poll, in a hub built without optimisation.
const WAITING_BYTES: u64 = 64 << 10;

/// Sends a request without waiting for the response.
async fn ask(process: &HubProcess, path: &str, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(process.address).await.expect("it listens");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n",
        process.address
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    stream
}

/// Reads a response to its end.
async fn read(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.expect("an answer");
    answer
}

/// A requester, its worker, and an idle agent.
struct Party {
    requester: Peer,
    worker: Peer,
    idle: Peer,
    job: String,
}

impl Party {
    async fn meet(process: &HubProcess, number: usize) -> Self {
        let requester = process.agent(&format!("requester{number}"), "asks", None).await;
        let worker = process.agent(&format!("worker{number}"), "work", None).await;
        let idle = process.agent(&format!("idle{number}"), "nothing", None).await;
        let wanted = json!({"skill": "work", "budget": 0, "to": worker.id});
        let job = process.post("/v1/jobs", Some(&requester.key), &wanted).await.expect(201);
        Self { requester, worker, idle, job: job.str("/id") }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waiting_requests_delay_no_other_and_all_get_an_answer() {
    let room = Room::of(WAITING).await;
    let process = HubProcess::open(&[]);
    let bystander = Bystander::arrive(&process).await;
    let each = (room.count / PARTIES / 2).min(EACH_MAX);
    let parties = join_all((0..PARTIES).map(|number| Party::meet(&process, number))).await;
    let before = process.memory();
    let (mut for_work, mut for_result) = (Vec::new(), Vec::new());
    // Half of them wait for work that does not come, the others for the end of a job.
    for party in &parties {
        let path = format!("/v1/jobs/{}?wait=30", party.job);
        for _ in 0..each {
            for_work.push(ask(&process, "/v1/work?wait=30", &party.idle.key).await);
            for_result.push((ask(&process, &path, &party.requester.key).await, party));
        }
    }
    bystander.assert_well().await;
    let count = for_work.len() + for_result.len();
    process.assert_within(before, count as u64 * WAITING_BYTES, &format!("{count} long polls"));
    for party in &parties {
        let done = json!({"ok": true, "output": {"text": "it is done"}});
        let path = format!("/v1/jobs/{}/result", party.job);
        process.post(&path, Some(&party.worker.key), &done).await.expect(200);
    }
    let told = for_result.into_iter().map(async |(stream, party)| match read(stream).await {
        // The wait ended before the job was done, so poll again.
        early if !early.contains("it is done") => {
            assert!(early.starts_with("HTTP/1.1 200"), "{early}");
            read(ask(&process, &format!("/v1/jobs/{}", party.job), &party.requester.key).await)
                .await
        }
        told => told,
    });
    for answer in join_all(told).await {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("it is done"), "{answer}");
    }
    // A closed connection frees its slot, and the next request is served.
    drop(for_work);
    let Party { requester, idle, .. } = &parties[0];
    let wanted = json!({"skill": "nothing", "budget": 0, "to": idle.id});
    process.post("/v1/jobs", Some(&requester.key), &wanted).await.expect(201);
    let work = process.get("/v1/work", Some(&idle.key)).await.expect(200);
    assert!(work.text.contains("nothing"), "{}", work.text);
    bystander.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_agent_waits_for_so_many_answers_and_is_told_when_it_asks_for_more() {
    const TOO_MANY: usize = 2 * EACH_MAX;
    let process = HubProcess::open(&[]);
    let party = Party::meet(&process, 1).await;
    let (told, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..TOO_MANY {
        let (stream, told) =
            (ask(&process, "/v1/work?wait=30", &party.idle.key).await, told.clone());
        tokio::spawn(async move { told.send(read(stream).await) });
    }
    for _ in EACH_MAX..TOO_MANY {
        let refused = in_time(answers.recv()).await.expect("an answer");
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
        assert!(refused.contains("retry-after: "), "{refused}");
    }
    // The first ones still wait, and are answered once there is a job.
    let wanted = json!({"skill": "nothing", "budget": 0, "to": party.idle.id});
    process.post("/v1/jobs", Some(&party.requester.key), &wanted).await.expect(201);
    for _ in 0..EACH_MAX {
        let told = in_time(answers.recv()).await.expect("an answer");
        assert!(told.starts_with("HTTP/1.1 200") && told.contains("nothing"), "{told}");
    }
}
