//! The least of an HTTP client: one request, one connection.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// A request with any headers, also impossible ones.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

/// A reply, its body put together.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.body))
    }

    /// The sentence of an error.
    pub(crate) fn error(&self) -> String {
        self.json()["error"]
            .as_str()
            .expect("a sentence")
            .to_owned()
    }
}

pub(crate) fn get(address: &str, path: &str) -> Reply {
    get_with(address, path, &[])
}

pub(crate) fn get_with(address: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let request = Request {
        method: "GET",
        path,
        headers,
        body: b"",
    };
    self::request(address, &request).expect("a reply")
}

pub(crate) fn post(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let request = Request {
        method: "POST",
        path,
        headers,
        body,
    };
    self::request(address, &request).expect("a reply")
}

/// None when the server is not there or hangs up.
pub(crate) fn request(address: &str, request: &Request<'_>) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    let named = |name: &str| {
        request
            .headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    if !named("host") {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        request.body.len()
    ));
    stream.write_all(head.as_bytes()).ok()?;
    // A server that has refused already may stop reading; its answer counts.
    let _ = stream.write_all(request.body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parsed(&bytes)
}

fn parsed(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let body = if headers.get("transfer-encoding").map(String::as_str) == Some("chunked") {
        dechunked(rest)
    } else {
        rest.to_vec()
    };
    Some(Reply {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let from = end + 2;
        match size {
            Some(size) if size > 0 && rest.len() >= from + size => {
                body.extend_from_slice(&rest[from..from + size]);
                rest = rest.get(from + size + 2..).unwrap_or_default();
            }
            _ => break,
        }
    }
    body
}
