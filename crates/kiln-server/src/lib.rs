//! A server of Kiln that speaks PostgreSQL's protocol, so that psql and PostgreSQL's drivers work
//! as they are.
//!
//! | module | holds |
//! |---|---|
//! | [`session`] | what a session is asked for and answers |
//! | [`client`] | a client from its first byte to its last, without I/O |
//! | `io` | sockets and threads around clients; [`Server`] |
//! | [`authentication`] | who must prove who they are, and how |
//! | [`monitor`] | what is counted and logged of clients and their statements |
//! | `admin` | metrics and health for who runs it |
//! | [`cancellation`] | how a statement is cancelled through another connection |

mod admin;
pub mod authentication;
pub mod cancellation;
pub mod client;
mod io;
pub mod monitor;
pub mod session;

pub use authentication::Authentication;
pub use io::{Server, ServerOptions, Tls, tls_end_point};
pub use kiln_platform::net::Address;
pub use monitor::Logged;
