//! Connections of others than the nodes of this hub have no effect.

use rialto_core::encoding::VERSION;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::cluster::hop::{HANDSHAKE_TIMEOUT, HELLO_BYTES_MAX, UNAUTHENTICATED_MAX};
use crate::fixtures::SeededRng;

const A_WHILE: Duration = Duration::from_millis(400);

/// The writer has noticed nothing, and still takes nodes.
async fn assert_unaffected(writer: &mut TestNode, epoch: u64) {
    assert_eq!(writer.events_for(Duration::from_millis(50)).await, []);
    let mut follower = TestNode::start(77);
    follower.follow(epoch, writer.address);
    assert_eq!(follower.next().await, Event::Connected(epoch, writer.events.head));
}

#[tokio::test]
async fn a_node_with_another_secret_is_refused() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut other = TestNode::with(2, HUB, &secret(2));
    other.follow(5, writer.address);
    assert_eq!(other.events_for(A_WHILE).await, [], "and its writer is not believed to be gone");
    assert_unaffected(&mut writer, 5).await;
}

#[tokio::test]
async fn a_node_of_another_hub_is_refused() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut other = TestNode::with(2, [8; 16], &secret(1));
    other.follow(5, writer.address);
    let connected = |event: &Event| matches!(event, Event::Connected(..));
    assert!(!other.events_for(A_WHILE).await.iter().any(connected));
    assert_unaffected(&mut writer, 5).await;
}

#[tokio::test]
async fn another_version_of_the_frames_is_told_the_own_one() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut connection = connect_by_hand(writer.address).await;
    let other = Hello { wire: WIRE_VERSION + 1, ..hello(2, 5) };
    connection.write_frame(&Frame::Hello(other)).await.expect("it is written");
    match connection.input.read_frame(FRAME_BYTES_MAX).await {
        Ok(Frame::Hello(theirs)) => assert_eq!(theirs.wire, WIRE_VERSION),
        other => panic!("expected a Hello, got {other:?}"),
    }
    assert_closed(&mut connection).await;
    assert_unaffected(&mut writer, 5).await;
}

#[tokio::test]
async fn plain_and_random_bytes_are_refused() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut random = SeededRng(1);
    let mut inputs = vec![
        b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n".to_vec(),
        crate::cluster::hop::codec::encode_frame(&Frame::Hello(hello(2, 5))).expect("encoded"),
        vec![0; 100_000],
    ];
    for length in [1, 5, 100, 1_000, 20_000] {
        for first in [None, Some(0x16), Some(0x17), Some(0x15)] {
            let mut bytes: Vec<u8> = (0..length).map(|_| random.roll(256) as u8).collect();
            if let Some(first) = first {
                // The type and version of a TLS record.
                let record = [first, 3, 3];
                let known = length.min(3);
                bytes[..known].copy_from_slice(&record[..known]);
            }
            inputs.push(bytes);
        }
    }
    for input in inputs {
        let mut socket = TcpStream::connect(writer.address).await.expect("it listens");
        // It may close before it has read all.
        let _ = socket.write_all(&input).await;
        let _ = socket.shutdown().await;
        let read = async { while socket.read(&mut [0; 1024]).await.is_ok_and(|n| n > 0) {} };
        timeout(WAIT, read).await.expect("it is closed");
    }
    assert_unaffected(&mut writer, 5).await;
}

#[tokio::test]
async fn random_frames_of_a_node_close_its_connection_only() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut random = SeededRng(2);
    for length in 0..30_u32 {
        let mut connection = say_hello(writer.address, 2, 5).await;
        let mut bytes = (length + 1).to_be_bytes().to_vec();
        bytes.push(VERSION);
        bytes.extend((0..length).map(|_| random.roll(32) as u8));
        // No frame has this number, so the connection ends in any case.
        bytes.extend([0, 0, 0, 2, VERSION, 100]);
        connection.output.write_all(&bytes).await.expect("it is written");
        connection.output.flush().await.expect("it is written");
        assert_closed(&mut connection).await;
    }
    writer.events_for(A_WHILE).await;
    assert_unaffected(&mut writer, 5).await;
}

/// A client that verifies nothing.
#[derive(Debug)]
struct AnyServer;

impl rustls::client::danger::ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        vec![
            rustls::SignatureScheme::ED25519,
            rustls::SignatureScheme::ECDSA_NISTP256_SHA256,
            rustls::SignatureScheme::RSA_PSS_SHA256,
        ]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn tls_1_2_and_clients_without_the_key_are_refused() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("the version is known")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer))
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let socket = TcpStream::connect(writer.address).await.expect("it listens");
        let name = ServerName::try_from("node").expect("a name");
        // In TLS 1.3 the client believes to be connected before the server has checked it.
        if let Ok(stream) = connector.connect(name, socket).await {
            let mut connection = Connection::new(stream.into());
            let _ = connection.write_frame(&Frame::Hello(hello(2, 5))).await;
            assert!(connection.input.read_frame(FRAME_BYTES_MAX).await.is_err());
        }
    }
    assert_unaffected(&mut writer, 5).await;
}

#[tokio::test]
async fn the_first_frame_is_a_short_hello_and_no_other_follows() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let call = |length| Frame::Call { number: 1, body: vec![0; length] };
    let firsts = [Frame::Ask(ask(1, "text")), call(0), call(HELLO_BYTES_MAX + 1)];
    for first in firsts {
        let mut connection = connect_by_hand(writer.address).await;
        connection.write_frame(&first).await.expect("it is written");
        assert_closed(&mut connection).await;
    }
    assert_unaffected(&mut writer, 5).await;
    let unexpected = [
        Frame::Hello(hello(2, 5)),
        Frame::Reply(done(1)),
        Frame::Head(Head::default()),
        Frame::CallReply { number: 1, body: None },
    ];
    for frame in unexpected {
        let mut connection = say_hello(writer.address, 2, 5).await;
        connection.write_frame(&frame).await.expect("it is written");
        assert_closed(&mut connection).await;
    }
}

#[tokio::test]
async fn silent_connections_time_out_and_meanwhile_others_wait() {
    let writer = TestNode::start(1);
    writer.lead(5);
    let mut silent = Vec::new();
    for _ in 0..UNAUTHENTICATED_MAX {
        silent.push(TcpStream::connect(writer.address).await.expect("it listens"));
    }
    let mut follower = TestNode::start(2);
    follower.follow(5, writer.address);
    assert_eq!(follower.events_for(Duration::from_secs(1)).await, [], "neither taken nor refused");
    assert_eq!(follower.next().await, Event::Connected(5, writer.events.head));
    for socket in &mut silent {
        let read = timeout(HANDSHAKE_TIMEOUT, socket.read(&mut [0; 1])).await;
        assert!(!matches!(read.expect("it is closed"), Ok(1..)));
    }
}
