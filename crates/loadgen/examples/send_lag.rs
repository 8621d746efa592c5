//! How much later than scheduled an open loop sends, on this machine.
//!
//! ```text
//! cargo run --release -p tokdyno-loadgen --example send_lag
//! ```
//!
//! A server of its own in this process answers at once with 16 tokens. Beside the lag
//! of the meter stands that of the runtime's own timer, which counts in milliseconds:
//! the reason why the meter waits for a timer of the kernel.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use tokdyno_domain::{
    endpoint::TlsTrust,
    meter::{Certify, METER_SCHEMA, MeterEventKind, MeterSpec},
    metrics::Distribution,
    workload::{Arrivals, LoadLevel, StageKind, StageSize, Thousandths, Workload},
};
use tokdyno_loadgen::{CancelFlag, run_blocking};

/// Requests per second.
const RATES: [f64; 4] = [50.0, 200.0, 1000.0, 2000.0];
const SECONDS: f64 = 5.0;
const TOKENS: u32 = 16;

fn main() {
    println!("| requests/s | sent | lag p50 ms | p99 ms | max ms |\n|--:|--:|--:|--:|--:|");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    for rate in RATES {
        line(&format!("{rate}"), lags_ms(&address.to_string(), rate));
    }
    line("the runtime's timer", runtime_lags_ms());
}

fn line(what: &str, lags_ms: Vec<f64>) {
    let lag = Distribution::of(lags_ms);
    let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.3}"));
    println!(
        "| {what} | {} | {} | {} | {} |",
        lag.count,
        show(lag.p50),
        show(lag.p99),
        show(lag.max)
    );
}

fn lags_ms(address: &str, rate: f64) -> Vec<f64> {
    let level = LoadLevel {
        kind: StageKind::OpenLoop {
            rate: Thousandths::new(rate).expect("in range"),
            arrivals: Arrivals::Poisson,
        },
        size: StageSize::Duration { seconds: SECONDS },
    };
    let mut workload = Workload::with_levels("lag", vec![level]);
    workload.output_tokens = TOKENS;
    let spec = MeterSpec {
        schema: METER_SCHEMA,
        endpoint: format!("http://{address}").parse().expect("an address"),
        model: Some("m".to_owned()),
        tls: TlsTrust::System,
        api_key: None,
        workload,
        certify: Certify::Off,
        spool: None,
    };
    let mut lags = Vec::new();
    run_blocking(spec, &CancelFlag::new(), |event| {
        if let MeterEventKind::Request(request) = event.kind {
            let record = request.record;
            let intended = record.intended_ns.unwrap_or(record.sent_ns);
            let connecting = record.connect_ns.unwrap_or(0);
            let lag_ns = record.sent_ns.saturating_sub(intended + connecting);
            lags.push(lag_ns as f64 / 1e6);
        }
    })
    .expect("a specification");
    lags
}

fn runtime_lags_ms() -> Vec<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut lags = Vec::new();
        for step in 0..500_u64 {
            let due = Instant::now() + Duration::from_micros(2000 + step * 7 % 1000);
            tokio::time::sleep_until(due.into()).await;
            lags.push(due.elapsed().as_secs_f64() * 1000.0);
        }
        lags
    })
}

/// Answers each request with its tokens, in one write.
fn serve(mut stream: TcpStream) {
    let mut body = String::new();
    for count in 1..=TOKENS {
        body += &format!(
            "data: {{\"choices\":[{{\"text\":\" a\"}}],\"usage\":{{\"completion_tokens\":{count}}}}}\n\n"
        );
    }
    body += "data: [DONE]\n\n";
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    loop {
        let (mut length, mut posted) = (0, false);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            posted |= line.starts_with("POST");
            if let Some(text) = line.strip_prefix("Content-Length: ") {
                length = text.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut asked = vec![0; length];
        if reader.read_exact(&mut asked).is_err() {
            return;
        }
        let reply = if posted { &reply } else { &none };
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}
