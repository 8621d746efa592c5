//! Against a small server in a thread, whose replies are given.

use std::{
    collections::VecDeque,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use tokdyno_domain::conditions::CacheReset;

use super::*;

/// Replies by path; the last one of a path stays. Paths that are missing are 404.
struct Server {
    endpoint: EndpointUrl,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve(replies: &[(&str, u16, &str)]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut replies: VecDeque<(String, u16, String)> = replies
        .iter()
        .map(|(path, status, body)| ((*path).to_owned(), *status, (*body).to_owned()))
        .collect();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut buffer = [0; 4096];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(count) if count > 0 => head.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let mut words = head.split_ascii_whitespace();
            let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            seen.lock()
                .expect("a list")
                .push(format!("{method} {path}"));
            let place = replies.iter().position(|(known, _, _)| known == path);
            let (status, body) = match place {
                Some(place) => {
                    let more = replies.iter().filter(|(known, _, _)| known == path).count() > 1;
                    let (_, status, body) = if more {
                        replies.remove(place).expect("a reply")
                    } else {
                        replies[place].clone()
                    };
                    (status, body)
                }
                None => (404, "{\"detail\":\"Not Found\"}".to_owned()),
            };
            let reply = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    Server {
        endpoint: format!("http://{address}").parse().expect("an address"),
        asked,
    }
}

impl Server {
    async fn reset(&self) -> CacheReset {
        let target = Target::resolve(&self.endpoint, &TlsTrust::System, PATIENCE)
            .await
            .expect("a target");
        reset::reset_within(Duration::from_secs(1), &target, &self.endpoint, None).await
    }

    fn asked(&self, line: &str) -> usize {
        let asked = self.asked.lock().expect("a list");
        asked.iter().filter(|seen| *seen == line).count()
    }
}

fn reason(reset: CacheReset) -> String {
    match reset {
        CacheReset::Refused { reason } => reason,
        CacheReset::Cleared => panic!("it was cleared"),
    }
}

#[tokio::test]
async fn a_stage_is_accompanied() {
    let sglang = |finished: u32, running: u32| {
        format!(
            "sglang:num_running_reqs{{tp_rank=\"0\"}} {running}.0\nsglang:num_requests_total {finished}.0\n"
        )
    };
    let (before, during, after) = (sglang(10, 0), sglang(12, 7), sglang(40, 0));
    let server = serve(&[
        ("/metrics", 200, &before),
        ("/metrics", 200, &during),
        ("/metrics", 200, &after),
        (
            "/server_info",
            200,
            r#"{"internal_states":[{"effective_max_running_requests_per_dp":48}]}"#,
        ),
    ]);
    let scraper = Scraper::start(&server.endpoint, &TlsTrust::System, None).await;
    // Until the second reading was taken.
    for _ in 0..1000 {
        if server.asked("GET /metrics") >= 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let report = scraper.finish().await.expect("a report");
    assert_eq!(report.finished, Some(30));
    assert_eq!(report.max_running, Some(48));
    assert_eq!(report.running_max, Some(7.0));
    assert!(report.samples >= 1 && !report.counters_fell);
    assert_eq!(server.asked("GET /health"), 0);
}

#[tokio::test]
async fn a_server_without_metrics_is_left_alone() {
    for replies in [
        &[][..],
        &[("/metrics", 200, "<html>")][..],
        &[("/metrics", 500, "vllm:num_requests_running 1\n")][..],
    ] {
        let server = serve(replies);
        let scraper = Scraper::start(&server.endpoint, &TlsTrust::System, None).await;
        assert_eq!(scraper.finish().await, None);
        assert_eq!(server.asked("GET /metrics"), 1);
    }
    // Nobody listens there.
    let nobody = "http://127.0.0.1:9".parse().expect("an address");
    let scraper = Scraper::start(&nobody, &TlsTrust::System, None).await;
    assert_eq!(scraper.finish().await, None);
}

#[tokio::test]
async fn each_engine_is_asked_in_its_own_way() {
    let vllm = ("/metrics", 200, "vllm:num_requests_running 0\n");
    let sglang = ("/metrics", 200, "sglang:num_running_reqs 0\n");
    // An older version says nothing.
    for said in ["{\"success\":true}", ""] {
        let server = serve(&[vllm, ("/reset_prefix_cache", 200, said)]);
        assert_eq!(server.reset().await, CacheReset::Cleared);
        assert_eq!(server.asked("POST /flush_cache"), 0);
    }
    // Requests run at first.
    let server = serve(&[
        sglang,
        ("/flush_cache", 400, "Not flushed."),
        ("/flush_cache", 200, "Cache flushed."),
    ]);
    assert_eq!(server.reset().await, CacheReset::Cleared);
    assert_eq!(server.asked("POST /reset_prefix_cache"), 0);
    assert_eq!(server.asked("POST /flush_cache"), 2);
    // Metrics are off: one way after the other.
    let server = serve(&[("/flush_cache", 200, "Cache flushed.")]);
    assert_eq!(server.reset().await, CacheReset::Cleared);
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let vllm = ("/metrics", 200, "vllm:num_requests_running 0\n");
    let refused = reason(serve(&[vllm]).reset().await);
    assert!(refused.contains("VLLM_SERVER_DEV_MODE=1"), "{refused}");
    let refused = reason(serve(&[]).reset().await);
    assert!(refused.contains("neither"), "{refused}");
    // Whatever the status says: it was not cleared.
    let refused = (
        "/reset_prefix_cache",
        200,
        r#"{"success":false,"message":"busy"}"#,
    );
    let server = serve(&[vllm, refused]);
    let refused = reason(server.reset().await);
    assert!(refused.contains("did not clear"), "{refused}");
    assert!(server.asked("POST /reset_prefix_cache") >= 2);
    let refused = reason(serve(&[("/flush_cache", 401, "{}")]).reset().await);
    assert!(refused.contains("--admin-api-key"), "{refused}");
    let refused = reason(serve(&[("/flush_cache", 500, "{}")]).reset().await);
    assert!(refused.contains("500"), "{refused}");
}
