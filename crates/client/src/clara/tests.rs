//! A wallet at a test market that sends what the test specifies, and the items wallets sign.

use std::time::Duration;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use rialto_core::money::Credits;
use rialto_protocols::clara::PROCESS;
use rialto_protocols::kit::ans104::{Item, ItemId, SignatureType};
use rialto_protocols::kit::base64url;
use serde_json::json;

use crate::call::CallError;
use crate::clara::{
    MarketClient, Profile, RetryPolicy, Seed, Server, TaskEnd, TaskSpec, Wallet, WalletError,
};
use crate::testing::{RecordedRequest, TestServer, answer};

const REGISTERED: &str =
    r#"{"Messages":[{"Target":"a","Tags":[{"name":"Action","value":"Registered"}]}]}"#;

async fn market(
    said: impl Fn(&RecordedRequest, usize) -> Vec<u8> + Send + 'static,
) -> (TestServer, MarketClient) {
    let stage = TestServer::new(move |heard, number| match heard.target.as_str() {
        "/clara" => answer(200, "", &format!(r#"{{"process":"{PROCESS}"}}"#)),
        _ => said(heard, number),
    })
    .await;
    let server = Server::discover(&stage.url).await.expect("a market");
    assert_eq!(server.process().to_string(), PROCESS);
    let quick = Duration::from_millis(2);
    let server =
        server.with_retry(RetryPolicy { max_attempts: 3, initial_delay: quick, max_delay: quick });
    let account = MarketClient::new(Wallet::new(&Seed::from_bytes([1; 32])), server);
    (stage, account)
}

fn profile() -> Profile {
    let fee = Credits::from_micros(20_000_000);
    Profile { id: "A".to_owned(), topic: "tweet".to_owned(), fee, metadata: "{}".to_owned() }
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_sent_again_as_it_is() {
    let (stage, account) = market(|heard, number| match (heard.method.as_str(), number) {
        ("POST", 0) => Vec::new(),
        ("POST", 1) => answer(503, "", r#"{"error":"not now"}"#),
        ("POST", _) => answer(202, "", r#"{"message":"Processing DataItem","id":"x"}"#),
        _ => answer(200, "", REGISTERED),
    })
    .await;
    account.register(&profile()).await.expect("registered");
    let heard = stage.heard();
    let posted: Vec<&RecordedRequest> = heard.iter().filter(|one| one.method == "POST").collect();
    assert_eq!(posted.len(), 3);
    assert!(posted.iter().all(|one| one.body == posted[0].body && one.target == "/clara/mu"));
    let kind = posted[0].header("content-type");
    assert_eq!(kind, Some("application/octet-stream"));
    let read = &heard.last().expect("a result").target;
    assert!(read.ends_with(&format!("?process-id={PROCESS}")), "{read}");
}

#[tokio::test]
async fn what_the_market_does_not_do_is_an_error_in_its_words() {
    let (_stage, account) = market(|heard, _| match heard.method.as_str() {
        "POST" => answer(202, "", "{}"),
        _ => answer(200, "", r#"{"Error":"No agents to choose from","Messages":[]}"#),
    })
    .await;
    let error = account.register(&profile()).await.expect_err("an error");
    assert_eq!(error.to_string(), "No agents to choose from");
    assert!(matches!(error, CallError::Refused { status: 202, retryable: true, .. }));
}

#[tokio::test]
async fn what_the_unit_does_not_take_is_not_sent_again() {
    let (stage, account) = market(|_, _| answer(401, "", r#"{"error":"the signature"}"#)).await;
    let error = account.register(&profile()).await.expect_err("an error");
    assert!(
        matches!(&error, CallError::Refused { status: 401, message, .. } if message == "the signature")
    );
    assert_eq!(stage.heard().iter().filter(|one| one.method == "POST").count(), 1);
    let fee = Credits::from_micros(1);
    let unfit = account.register(&Profile { fee, ..profile() }).await.expect_err("no price");
    assert!(matches!(unfit, CallError::Refused { status: 400, .. }));
}

/// A results page with messages to an address about a task, after a cursor.
fn page(cursor: &str, target: &str, task: &str, action: &str) -> String {
    let done = format!(
        r#"{{\"id\":\"{task}\",\"agentId\":\"A\",\"sender\":\"s\",\"recipient\":\"r\",\"result\":{{\"x\":1}},\"timestamp\":5,\"block\":1}}"#
    );
    let tags =
        format!(r#"[{{"name":"Action","value":"{action}"}},{{"name":"TaskId","value":"{task}"}}]"#);
    let message = format!(r#"{{"Target":"{target}","Data":"{done}","Tags":{tags}}}"#);
    format!(
        r#"{{"pageInfo":{{"hasNextPage":true}},"edges":[{{"cursor":"{cursor}","node":{{"Messages":[{message}]}}}}]}}"#
    )
}

#[tokio::test]
async fn a_requester_finds_its_own_result_among_all_others() {
    let me = Wallet::new(&Seed::from_bytes([1; 32])).address().to_owned();
    let registered = std::sync::Mutex::new(String::new());
    let (_stage, account) = market(move |heard, number| {
        let mut task = registered.lock().expect("sound");
        if let Some(result) = heard.target.strip_prefix("/clara/cu/result/") {
            *task = result.split('?').next().unwrap_or_default().to_owned();
            return answer(200, "", r#"{"Messages":[]}"#);
        }
        let nothing = r#"{"pageInfo":{"hasNextPage":false},"edges":[]}"#;
        let after = heard.target.split("from=").nth(1).and_then(|rest| rest.split('&').next());
        let body = match after {
            _ if heard.method == "POST" => "{}".to_owned(),
            None if heard.target.contains("DESC") => nothing.to_owned(),
            None if number == 0 => nothing.to_owned(),
            None => page("c1", "another-address", &task, "Task-Result"),
            Some("c1") => page("c2", &me, "another", "Task-Result"),
            Some("c2") => page("c3", &me, &task, "Task-Queued"),
            Some("c3") => page("c4", &me, &task, "Task-Result"),
            Some(_) => nothing.to_owned(),
        };
        answer(200, "", &body)
    })
    .await;
    let order = TaskSpec::new("tweet", Credits::from_micros(5_000_000), "{}");
    let mut wait = account.register_task(&order).await.expect("registered");
    let ending = wait.next(Duration::from_secs(5)).await.expect("an ending");
    let TaskEnd::Done(outcome) = ending else { panic!("{ending:?}") };
    assert_eq!((outcome.task_id.as_str(), outcome.result.as_str()), (wait.task_id(), r#"{"x":1}"#));
    let late = wait.next(Duration::from_millis(5)).await.expect_err("nothing more");
    assert!(matches!(late, CallError::TimedOut { .. }));
}

fn process() -> ItemId {
    ItemId::read(PROCESS).expect("an id")
}

/// Whether a wallet's items are valid and carry its own address.
fn signs(wallet: &Wallet, kind: SignatureType) {
    let tags = [("Action", "List-Agents"), ("", "é")];
    let one = wallet.sign(process(), &tags, "data").expect("signed");
    let two = wallet.sign(process(), &tags, "data").expect("signed");
    assert_ne!(one.id, two.id);
    let item = Item::read(one.as_bytes()).expect("an item");
    assert_eq!(item.verify(), Ok(()));
    assert_eq!((item.signature_type, item.signer_address().as_str()), (kind, wallet.address()));
    assert_eq!(item.id().to_string(), one.id);
    assert_eq!(item.target, Some(process().0.as_slice()));
    assert_eq!(
        (item.tag("Action"), item.tag(""), item.data),
        (Some("List-Agents"), Some("é"), b"data".as_slice())
    );
}

#[test]
fn a_seed_is_a_wallet_and_a_key_file_is_too() {
    let seed = Seed::from_bytes([7; 32]);
    let wallet = Wallet::new(&seed);
    signs(&wallet, SignatureType::Ed25519);
    let dir = std::env::temp_dir().join(format!("rialto-wallet-{}", std::process::id()));
    std::fs::write(&dir, seed.reveal()).expect("a file");
    let read = Wallet::open(&dir);
    std::fs::remove_file(&dir).expect("it goes");
    assert_eq!(read.expect("a wallet").address(), wallet.address());
    assert_eq!(format!("{wallet:?}"), format!("Wallet({})", wallet.address()));
    assert!(matches!(Wallet::open(&dir), Err(WalletError::Unreadable(_))));
}

/// The numbers of a private key, in the order of its DER.
fn numbers(key: &KeyPair) -> Vec<Vec<u8>> {
    let der = AsDer::<Pkcs8V1Der<'_>>::as_der(key).expect("DER");
    let der = der.as_ref();
    // Inside PKCS #8 the key begins with version 0 and the header of the modulus.
    let start = [0x02, 0x01, 0x00, 0x02, 0x82, 0x02, 0x01];
    let start = der.windows(7).position(|part| part == start).expect("a key") + 3;
    let (mut rest, mut found) = (&der[start..], Vec::new());
    while let Some((0x02, tail)) = rest.split_first() {
        let (length, head) = match tail[0] {
            0x82 => (usize::from(tail[1]) << 8 | usize::from(tail[2]), 3),
            0x81 => (usize::from(tail[1]), 2),
            short => (usize::from(short), 1),
        };
        let bytes = &tail[head..head + length];
        found.push(bytes.strip_prefix(&[0]).unwrap_or(bytes).to_vec());
        rest = &tail[head + length..];
    }
    found
}

#[test]
fn an_arweave_wallet_is_read_from_its_jwk() {
    let key = KeyPair::generate(KeySize::Rsa4096).expect("a key");
    let numbers = numbers(&key);
    assert_eq!(numbers.len(), 8);
    let names = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];
    let mut jwk = json!({"kty": "RSA"});
    for (name, number) in names.iter().zip(&numbers) {
        jwk[*name] = base64url::encode(number).into();
    }
    let wallet = Wallet::read(&jwk.to_string()).expect("a wallet");
    signs(&wallet, SignatureType::Arweave);

    for name in names {
        let mut broken = jwk.clone();
        broken[name] = "".into();
        let why = Wallet::read(&broken.to_string()).expect_err(name);
        assert!(matches!(why, WalletError::BadMember(named) if named == name), "{why:?}");
    }
    let mut other = jwk.clone();
    other["d"] = base64url::encode(&[1; 512]).into();
    assert!(matches!(Wallet::read(&other.to_string()), Err(WalletError::BadKey)));
    other["e"] = base64url::encode(&[3]).into();
    assert!(matches!(Wallet::read(&other.to_string()), Err(WalletError::BadKey)));
    for unknown in ["", "{}", r#"{"kty":"OKP"}"#, "ed25519-seed:AAAA"] {
        assert!(matches!(Wallet::read(unknown), Err(WalletError::UnknownFormat)), "{unknown}");
    }
}
