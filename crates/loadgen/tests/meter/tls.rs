//! Encrypted endpoints.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokdyno_domain::{
    endpoint::TlsTrust,
    meter::{MeterOutcome, MeterSpec},
    record::FailureKind,
};

use crate::support::{level, run, spec, text, total};

struct TlsServer {
    address: SocketAddr,
    pem: String,
}

type Stream = StreamOwned<ServerConnection, TcpStream>;

impl TlsServer {
    /// A server with a certificate of its own for `localhost`. It closes every
    /// connection after `replies_per_connection`, with or without the notice.
    fn start(replies_per_connection: u32, alpn: &[&[u8]]) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { break };
                let config = Arc::clone(&config);
                std::thread::spawn(move || {
                    let connection = ServerConnection::new(config).expect("a connection");
                    serve(StreamOwned::new(connection, stream), replies_per_connection);
                });
            }
        });
        Self {
            address,
            pem: made.cert.pem(),
        }
    }

    fn spec(&self, tls: TlsTrust) -> MeterSpec {
        // `localhost` may also mean ::1, where nobody listens.
        let mut spec = spec(
            &format!("https://localhost:{}", self.address.port()),
            vec![level(1, 2), level(3, 9)],
        );
        spec.tls = tls;
        spec
    }

    fn ca(&self) -> TlsTrust {
        TlsTrust::Ca {
            pem: self.pem.clone(),
        }
    }
}

fn serve(mut stream: Stream, replies: u32) {
    for _ in 0..replies {
        let Some(head) = read_request(&mut stream) else {
            return;
        };
        let (kind, body) = if head.starts_with("GET") {
            ("application/json", r#"{"data":[{"id":"tiny"}]}"#.to_owned())
        } else {
            let mut body: String = (1..=4)
                .map(|token| format!("data: {}\n\n", text(Some(token))))
                .collect();
            body += &format!("data: {}\n\ndata: [DONE]\n\n", total(4));
            ("text/event-stream", body)
        };
        let reply = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

fn read_request(stream: &mut Stream) -> Option<String> {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse::<usize>().expect("a length"));
        if body.len() >= length {
            return Some(text);
        }
    }
}

#[test]
fn a_chosen_authority_and_any_certificate() {
    let server = TlsServer::start(1000, &[b"http/1.1"]);
    for tls in [server.ca(), TlsTrust::AcceptAny] {
        let told = run(server.spec(tls));
        assert_eq!(told.outcome, MeterOutcome::Complete);
        assert_eq!(told.records().len(), 11);
        for record in told.records() {
            assert!(record.is_success(), "{record:?}");
            assert_eq!((record.chunks, record.completion_tokens), (4, Some(4)));
            assert_eq!(record.connect_ns, None, "connections are kept");
        }
    }
}

#[test]
fn a_closing_server_is_connected_to_again() {
    let server = TlsServer::start(1, &[]);
    let told = run(server.spec(server.ca()));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    // A close may cross a request, which is then broken and not sent again.
    for record in told.records() {
        match &record.failure {
            None => assert_eq!(record.chunks, 4),
            Some(failure) => assert_eq!(failure.kind, FailureKind::Broken),
        }
    }
    assert!(
        told.records()
            .iter()
            .any(|record| record.is_success() && record.connect_ns.is_some())
    );
}

#[test]
fn an_unknown_certificate_is_refused_with_the_remedy() {
    let server = TlsServer::start(1000, &[]);
    let other = TlsServer::start(1000, &[]);
    let told = run(server.spec(other.ca()));
    assert!(
        told.reason().contains("self-signed") && told.reason().contains("CA file"),
        "{}",
        told.reason()
    );
}

#[test]
fn a_given_certificate_is_believed_under_any_name() {
    let server = TlsServer::start(1000, &[]);
    let mut by_number = server.spec(server.ca());
    by_number.endpoint = format!("https://{}", server.address)
        .parse()
        .expect("an address");
    assert_eq!(run(by_number).outcome, MeterOutcome::Complete);
}

#[test]
fn the_wrong_scheme_is_recognised() {
    // A plain server that answers anything with words.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let wordy = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let mut encrypted = spec(&format!("https://{wordy}"), vec![level(1, 1)]);
    encrypted.tls = TlsTrust::AcceptAny;
    let told = run(encrypted);
    assert!(told.reason().contains("http://"), "{}", told.reason());

    let server = TlsServer::start(1000, &[]);
    let told = run(spec(
        &format!("http://{}", server.address),
        vec![level(1, 1)],
    ));
    assert!(told.reason().contains("https://"), "{}", told.reason());
}

#[test]
fn a_server_of_http2_alone() {
    let server = TlsServer::start(1000, &[b"h2"]);
    let told = run(server.spec(server.ca()));
    assert!(told.reason().contains("HTTP/2"), "{}", told.reason());
}
