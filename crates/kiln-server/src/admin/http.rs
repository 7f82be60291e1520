//! As much of HTTP/1.1 as a scraper needs: one request a connection, GET or HEAD, without a body.
//! It does no I/O.

/// Bytes of a request, from its first to the empty line.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;

/// What was received of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// Not all of it.
    Part,
    /// All of it: it asks for what is at this path.
    Request {
        /// The path, without what follows a question mark.
        path: &'a str,
        /// Whether it asks for the head of the answer alone.
        is_head: bool,
    },
    /// No request that is answered: this is the answer.
    Refused(Response),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Response {
    /// One line of text.
    pub fn text(status: u16, line: &str) -> Response {
        Response {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{line}\n"),
        }
    }

    /// Its bytes; the head alone if that was asked for.
    pub fn to_bytes(&self, is_head: bool) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            505 => "HTTP Version Not Supported",
            _ => "",
        };
        let allow = match self.status {
            405 => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let (status, length) = (self.status, self.body.len());
        let content_type = self.content_type;
        let mut text = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        );
        if !is_head {
            text.push_str(&self.body);
        }
        text.into_bytes()
    }
}

/// Reads what was received so far.
pub fn read(bytes: &[u8]) -> Received<'_> {
    let Some(end) = end_of_head(bytes) else {
        return match bytes.len() > REQUEST_BYTES_MAX {
            true => refused(431, "the request is too long"),
            false => Received::Part,
        };
    };
    if end > REQUEST_BYTES_MAX {
        return refused(431, "the request is too long");
    }
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else {
        return refused(400, "the request is not text");
    };
    let line = head.split("\r\n").next().unwrap_or_default();
    let line = line.split('\n').next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return refused(400, "the request line is not METHOD TARGET VERSION");
    };
    if !version.starts_with("HTTP/1.") {
        return refused(505, "HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    let is_head = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return refused(405, "only GET and HEAD are answered"),
    };
    if !target.starts_with('/') {
        return refused(400, "the target is not a path");
    }
    let path = target.split('?').next().unwrap_or_default();
    Received::Request { path, is_head }
}

fn refused(status: u16, why: &str) -> Received<'static> {
    Received::Refused(Response::text(status, why))
}

/// Where the head ends: before its empty line.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let proper = bytes.windows(4).position(|it| it == b"\r\n\r\n");
    let lenient = bytes.windows(2).position(|it| it == b"\n\n");
    match (proper, lenient) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> u16 {
        match read(bytes) {
            Received::Refused(response) => response.status,
            _ => 0,
        }
    }

    #[test]
    fn a_request_is_read_when_all_of_it_is_there() {
        let request = b"GET /metrics?name=x HTTP/1.1\r\nHost: kiln\r\nAccept: */*\r\n\r\n";
        for end in 0..request.len() {
            assert_eq!(read(&request[..end]), Received::Part, "{end}");
        }
        let expected = Received::Request {
            path: "/metrics",
            is_head: false,
        };
        assert_eq!(read(request), expected);
        let expected = Received::Request {
            path: "/healthz",
            is_head: true,
        };
        assert_eq!(read(b"HEAD /healthz HTTP/1.0\n\n"), expected);
    }

    #[test]
    fn all_else_is_refused() {
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(status(b"GET /metrics HTTP/2\r\n\r\n"), 505);
        assert_eq!(status(b"GET http://kiln/metrics HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status(b"GET /a b HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status(b"\r\n\r\n"), 400);
        assert_eq!(status(b"\xff\xfe\r\n\r\n"), 400);
        assert_eq!(status(&[b'a'; REQUEST_BYTES_MAX + 1]), 431);
        let mut long = b"GET / HTTP/1.1\r\nX: ".to_vec();
        long.resize(2 * REQUEST_BYTES_MAX, b'x');
        long.extend_from_slice(b"\r\n\r\n");
        assert_eq!(status(&long), 431);
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let bytes = Response::text(405, "no").to_bytes(false);
        let text = String::from_utf8(bytes).expect("it is text");
        assert!(
            text.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"),
            "{text}"
        );
        assert!(
            text.contains("Content-Length: 3\r\nAllow: GET, HEAD\r\n"),
            "{text}"
        );
        assert!(text.ends_with("Connection: close\r\n\r\nno\n"), "{text}");
        let head = Response::text(200, "ok").to_bytes(true);
        assert!(head.ends_with(b"\r\n\r\n"));
    }
}
