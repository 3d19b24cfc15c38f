//! Failed calls always report correctly whether the receiver may have seen the request.

use super::server::{Does, Server};
use super::*;

async fn over_http(does: Does, timeout: Duration) -> Result<HttpResponse, SendError> {
    let server = Server::start(does).await;
    post(&egress(&["127.0.0.0/8"], timeout), &server.url("http", "127.0.0.1")).await
}

fn unreachable(why: &str) -> Result<HttpResponse, SendError> {
    Err(SendError::Unreachable(why.to_owned()))
}

#[tokio::test]
async fn a_closed_port_counts_as_never_reached() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", gone.local_addr().expect("a bound listener has an address"));
    drop(gone);
    let answer = post(&egress(&["127.0.0.0/8"], LONG), &url).await;
    assert_eq!(answer, unreachable("the connection was refused"));
}

#[tokio::test]
async fn a_name_without_addresses_was_never_reached() {
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://agent.example/");
        let answer = post(&egress(&["127.0.0.0/8"], LONG), &url).await;
        assert_eq!(answer, unreachable("the name could not be resolved"));
    }
}

#[tokio::test]
async fn a_name_server_that_never_answers_counts_as_not_reached() {
    struct Silent;
    impl Resolve for Silent {
        fn resolve(&self, _name: &str) -> ResolveFuture {
            Box::pin(std::future::pending())
        }
    }
    let egress = Egress::with_resolver(settings(&[], SHORT), Arc::new(Silent));
    let answer = post(&egress.expect("good settings"), "https://agent.example/").await;
    assert_eq!(answer, unreachable("connecting timed out"));
}

#[tokio::test]
async fn a_handshake_that_fails_or_hangs_counts_as_not_reached() {
    let server = Server::start(Does::Close).await;
    let url = server.url("https", "127.0.0.1");
    // The server waits for a plain request that never comes, so the handshake hangs.
    let answer = post(&egress(&["127.0.0.0/8"], SHORT), &url).await;
    assert_eq!(answer, unreachable("connecting timed out"));
    assert_eq!((server.hits(), server.requests().len()), (1, 0));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"SSH-2.0-x\r\n").await.ok();
        }
    });
    let answer = post(&egress(&["127.0.0.0/8"], LONG), &format!("https://{address}/")).await;
    let why = "no secure connection: the TLS handshake failed or the certificate is not trusted";
    assert_eq!(answer, unreachable(why));
}

#[tokio::test]
async fn a_server_that_stays_silent_or_drips_runs_out_of_time() {
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n";
    let drip = Duration::from_millis(20);
    for does in [
        Does::Hang,
        Does::ReplyAndKeep(whole),
        Does::ReplyAndRepeat(whole, "x", drip),
        Does::ReplyAndRepeat("", "H", drip * 1_000),
    ] {
        assert_eq!(over_http(does, SHORT).await, Err(SendError::TimedOut));
    }
}

#[tokio::test]
async fn a_connection_that_dies_midway_or_speaks_no_http_is_broken() {
    for does in [
        Does::Close,
        Does::Reply(""),
        Does::Reply("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"),
        Does::Reply("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
        Does::Reply("220 mail.example ESMTP\r\n"),
        Does::Reply("\0\0\0\0\0\0\0\0"),
    ] {
        let answer = over_http(does, LONG).await;
        assert!(matches!(answer, Err(SendError::InvalidResponse(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn a_hub_that_cannot_check_certificates_says_so_instead_of_skipping_the_check() {
    let mut egress = egress(&[], LONG);
    egress.https_client = Err("No CA certificates were loaded from the system".to_owned());
    assert!(egress.https_error().is_some());
    let answer = post(&egress, "https://agent.example/").await;
    assert!(matches!(answer, Err(SendError::Unreachable(_))), "{answer:?}");
}

#[test]
fn failures_never_show_an_address() {
    let failures = [
        SendError::Blocked(TargetError::ResolvesToPrivate),
        SendError::Blocked(TargetError::PrivateAddress),
        SendError::Unreachable("the connection was refused".to_owned()),
        SendError::TimedOut,
    ];
    for failure in failures {
        assert!(!failure.to_string().contains(|c: char| c.is_ascii_digit()), "{failure}");
    }
}

#[test]
fn settings_that_could_never_send_are_refused() {
    for bad in [
        EgressSettings { timeout: Duration::ZERO, ..EgressSettings::default() },
        EgressSettings { connect_timeout: Duration::ZERO, ..EgressSettings::default() },
        EgressSettings { per_host: 0, ..EgressSettings::default() },
    ] {
        assert!(matches!(Egress::new(bad), Err(EgressError::ZeroLimit)));
    }
    assert!(Egress::new(EgressSettings::default()).is_ok());
}
