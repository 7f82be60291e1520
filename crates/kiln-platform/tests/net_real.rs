//! Sockets of the machine: the contract over TCP and on Unix sockets, the files of Unix sockets,
//! and what happens without descriptors.

mod net_contract;

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_platform::disk::TemporaryDirectory;
use kiln_platform::net::{
    Address, Events, Kind, Listener, Peer, Poller, SocketAddr, Stream, Token,
};
use net_contract::{Connection, Listen, accept};

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Calls `body` with a way to listen over TCP, then with one to listen on Unix sockets.
fn everywhere(body: impl Fn(Listen<'_>)) {
    body(&|| Listener::tcp(loopback()).expect("a port is free"));
    let directory = TemporaryDirectory::new("net").expect("the test may write there");
    let path = directory.path().join("socket");
    body(&|| Listener::unix(&path, 0o600).expect("the path is free"));
}

#[test]
fn clients_get_back_what_they_sent() {
    everywhere(|listen| net_contract::echo(listen, 5, 300_000));
}

#[test]
fn a_large_transfer_goes_through_small_queues() {
    everywhere(|listen| net_contract::echo(listen, 1, 8_000_000));
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    everywhere(net_contract::half_close);
}

#[test]
fn an_event_says_that_the_peer_is_gone() {
    everywhere(net_contract::closed);
}

#[test]
fn a_stream_dropped_with_bytes_unread_breaks_the_connection() {
    everywhere(net_contract::broken);
}

#[test]
fn no_listener_no_connection() {
    everywhere(net_contract::refused);
}

#[test]
fn the_state_at_the_registration_is_an_event() {
    everywhere(net_contract::registered_late);
}

#[test]
fn an_event_tells_of_a_change_once() {
    everywhere(net_contract::edges);
}

#[test]
fn no_wake_up_is_lost() {
    net_contract::wakers(3, 20_000);
}

#[test]
fn waits_end_in_time() {
    net_contract::time_outs();
}

#[test]
fn a_thousand_connections_in_one_poller() {
    raise_descriptors();
    everywhere(|listen| net_contract::many(listen, 1_000));
}

/// Two thousand descriptors are more than some systems grant unasked.
fn raise_descriptors() {
    let mut limits = limits();
    limits.rlim_cur = limits.rlim_max.min(4_096);
    set_limits(&limits);
}

fn limits() -> libc::rlimit {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: there is room for what the call fills in.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) };
    assert_eq!(status, 0);
    limits
}

fn set_limits(limits: &libc::rlimit) {
    // SAFETY: the call reads the limits.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limits) };
    assert_eq!(status, 0);
}

#[test]
fn an_address_has_one_listener() {
    let listen = |address: &Address| match address {
        Address::Tcp(address) => Listener::tcp(*address),
        Address::Unix(path) => Listener::unix(path, 0o600),
    };
    net_contract::in_use(&listen, &Address::Tcp(loopback()));
    let directory = TemporaryDirectory::new("net").expect("the test may write there");
    let path = directory.path().join("socket");
    net_contract::in_use(&listen, &Address::Unix(path));
}

#[test]
fn a_port_can_be_used_again_while_its_connections_linger() {
    let mut listener = Listener::tcp(loopback()).expect("a port is free");
    let address = listener.local_address().clone();
    let client = Connection::to(&address);
    // The end that closes first lingers on the listener's port.
    drop(accept(&mut listener));
    drop(listener);
    drop(client);
    let Address::Tcp(address) = address else {
        panic!("{address} is no port");
    };
    drop(Listener::tcp(address).expect("it can be used at once"));
}

fn mode_of(path: &Path) -> u32 {
    let metadata = std::fs::symlink_metadata(path).expect("it is there");
    assert!(metadata.file_type().is_socket());
    metadata.permissions().mode() & 0o777
}

#[test]
fn the_file_of_a_unix_socket_has_its_mode_and_goes_with_the_listener() {
    let directory = TemporaryDirectory::new("net").expect("the test may write there");
    let path = directory.path().join("socket");
    for mode in [0o600, 0o660, 0o777] {
        let listener = Listener::unix(&path, mode).expect("the path is free");
        assert_eq!(mode_of(&path), mode);
        assert_eq!(*listener.local_address(), Address::Unix(path.clone()));
        drop(listener);
        assert!(!path.exists());
    }
    // Another listener's file stays.
    let listener = Listener::unix(&path, 0o600).expect("the path is free");
    std::fs::remove_file(&path).expect("it is there");
    let second = Listener::unix(&path, 0o600).expect("the path is free");
    drop(listener);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
}

#[test]
fn a_stale_socket_is_replaced_and_a_file_is_not() {
    let directory = TemporaryDirectory::new("net").expect("the test may write there");
    let path = directory.path().join("socket");
    // The standard library's listener leaves its file, as a process that is killed does.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("the path is free"));
    assert!(path.exists());
    let mut listener = Listener::unix(&path, 0o600).expect("no process listens on it");
    let client = Stream::connect(&Address::Unix(path.clone())).expect("it listens");
    let _server = accept(&mut listener);
    drop((client, listener));

    std::fs::write(&path, "precious").expect("the test may write there");
    let error = Listener::unix(&path, 0o600).expect_err("it is a file");
    assert_eq!(error.kind(), Kind::InUse);
    assert!(
        error.to_string().ends_with("the file is no socket"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).expect("it stayed"), b"precious");

    let long = PathBuf::from("/").join("x".repeat(200));
    let error = Listener::unix(&long, 0o600).expect_err("no address has so much room");
    assert!(error.to_string().contains("1 to 107 bytes"), "{error}");
    let missing = directory.path().join("missing").join("socket");
    let error = Listener::unix(&missing, 0o600).expect_err("the directory is missing");
    assert_eq!(error.kind(), Kind::Failed, "{error}");
}

#[test]
fn a_live_socket_is_left_alone() {
    let directory = TemporaryDirectory::new("net").expect("the test may write there");
    let path = directory.path().join("socket");
    let _live = std::os::unix::net::UnixListener::bind(&path).expect("the path is free");
    let error = Listener::unix(&path, 0o600).expect_err("this process listens on it");
    assert_eq!(error.kind(), Kind::InUse);
    assert!(
        error.to_string().ends_with("a process listens on it"),
        "{error}"
    );
    assert!(path.exists());
}

#[test]
fn a_peer_is_known() {
    let directory = TemporaryDirectory::new("net").expect("the test may write there");
    let path = directory.path().join("socket");
    let listener = Listener::unix(&path, 0o600).expect("the path is free");
    let _client = Stream::connect(&Address::Unix(path)).expect("it listens");
    let (_, peer) = listener.accept().expect("it is open").expect("it waits");
    // SAFETY: the call takes no memory.
    let user = unsafe { libc::geteuid() };
    let expected = cfg!(target_os = "linux").then_some(user);
    assert_eq!(peer, Peer::Unix { user: expected });

    let mut listener = Listener::tcp(loopback()).expect("a port is free");
    let mut client = Connection::to(listener.local_address());
    drop(accept(&mut listener));
    assert_eq!(client.read_all(&mut [0]), Ok(0));
}

/// The name under which this program's tests call themselves without descriptors.
const CHILD: &str = "KILN_NET_CHILD";

#[test]
fn without_descriptors_a_connection_waits() {
    if std::env::var_os(CHILD).is_none() {
        // A process of its own: its limit must not meet the other tests.
        let program = std::env::current_exe().expect("this program has a path");
        let child = Command::new(program)
            .args(["--exact", "without_descriptors_a_connection_waits"])
            .env(CHILD, "1")
            .output()
            .expect("it can be started");
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{output}");
        return;
    }
    let mut listener = Listener::tcp(loopback()).expect("a port is free");
    let mut poller = Poller::new().expect("the system has descriptors");
    let mut events = Events::with_capacity(1);
    listener.register(&poller, Token(0)).expect("it is open");
    let client = Stream::connect(listener.local_address()).expect("the system has descriptors");
    while events.is_empty() {
        poller.wait(&mut events, None).expect("it is open");
    }
    let before = limits();
    let mut none = before;
    none.rlim_cur = 3;
    set_limits(&none);
    for _ in 0..3 {
        let error = listener.accept().expect_err("no descriptor is free");
        assert_eq!(error.kind(), Kind::Exhausted, "{error}");
    }
    set_limits(&before);
    let accepted = listener.accept().expect("descriptors are free again");
    assert!(accepted.is_some(), "the connection waited");
    drop(client);
}

#[test]
fn descriptors_are_allowed_up_to_what_the_process_may_have() {
    let before = kiln_platform::net::allow_descriptors(1).expect("there is a bound");
    assert!(before >= 1, "a bound is not lowered");
    let most = kiln_platform::net::allow_descriptors(usize::MAX).expect("there is a bound");
    assert!(most >= before);
    assert_eq!(kiln_platform::net::allow_descriptors(1).ok(), Some(most));
}
