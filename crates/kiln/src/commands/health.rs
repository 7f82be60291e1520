//! `kiln health`: asks a server how it is, for containers and scripts that have nothing else to ask
//! with.

use std::process::ExitCode;

use clap::Args;
use kiln_platform::net::{Address, Events, Poller, SocketAddr, Stream, Token};
use kiln_platform::time;

use super::print;

/// Ask a server for its health
///
/// Ends with exit code 0 when the server serves, and with 1 when it does not, or does not answer.
#[derive(Args)]
pub struct Arguments {
    /// Where the server answers with its health, as its --admin says [env: KILN_ADMIN] [default:
    /// 127.0.0.1:9432]
    address: Option<SocketAddr>,
    /// Seconds that the answer may take
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let in_environment = || super::settings::variable("KILN_ADMIN");
    let address = match (arguments.address, in_environment()) {
        (Some(address), _) => address,
        (None, Some(text)) if !text.is_empty() => {
            let parsed = text.parse();
            parsed.map_err(|_| format!("KILN_ADMIN={text}: it is ADDRESS:PORT"))?
        }
        (None, _) => SocketAddr::from(([127, 0, 0, 1], 9_432)),
    };
    let answer = ask(&local(address), arguments.timeout * 1_000_000_000)
        .map_err(|why| format!("no answer from {address}: {why}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    print(body)?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::FAILURE),
    }
}

/// A server that listens on all addresses of this machine is asked on one of them.
fn local(mut address: SocketAddr) -> Address {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => [127, 0, 0, 1].into(),
            SocketAddr::V6(_) => [0, 0, 0, 0, 0, 0, 0, 1].into(),
        });
    }
    Address::Tcp(address)
}

/// What the server answers, all of it.
fn ask(address: &Address, limit_ns: u64) -> Result<String, String> {
    const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: kiln\r\nConnection: close\r\n\r\n";
    let failed = |error: kiln_platform::net::Error| error.to_string();
    let until_ns = time::now_ns() + limit_ns;
    let mut stream = Stream::connect(address).map_err(failed)?;
    let mut poller = Poller::new().map_err(failed)?;
    let mut events = Events::with_capacity(4);
    stream.register(&poller, Token(0)).map_err(failed)?;
    let (mut sent, mut received, mut buffer) = (0, Vec::new(), [0; 4_096]);
    loop {
        let remaining_ns = until_ns.saturating_sub(time::now_ns());
        if remaining_ns == 0 {
            return Err("it takes too long".to_owned());
        }
        let moved = match sent < REQUEST.len() {
            true => stream.write(&REQUEST[sent..]).map_err(failed)?,
            false => stream.read(&mut buffer).map_err(failed)?,
        };
        match moved {
            None => poller
                .wait(&mut events, Some(remaining_ns))
                .map_err(failed)?,
            Some(count) if sent < REQUEST.len() => sent += count,
            Some(0) => break,
            Some(count) => received.extend_from_slice(&buffer[..count]),
        }
        if received.len() > ANSWER_BYTES_MAX {
            return Err("the answer is too long".to_owned());
        }
    }
    String::from_utf8(received).map_err(|_| "the answer is no text".to_owned())
}
