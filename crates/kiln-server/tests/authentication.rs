//! Clients that prove who they are, or try to. The other side of the exchange is that of the crate
//! `postgres-protocol`.

#![cfg(not(kiln_sim))]

use kiln_platform::net::{Peer, own_user};
use kiln_platform::sync::Arc;
use kiln_server::authentication::Authentication;
use kiln_server::client::{Client, Progress, ServerState};
use kiln_server::session::RunsOn;
use kiln_sql::{Database, Options};
use kiln_wire::client::{Answer, Requests};
use kiln_wire::frontend::Limits;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

const FAR: &str = "192.0.2.7:4000";
const NEAR: &str = "127.0.0.1:4000";
/// AuthenticationSASL, its continuation and its end.
const SASL: u32 = 10;
const CONTINUE: u32 = 11;
const FINAL: u32 = 12;

fn shared(script: &str, authentication: Authentication) -> Arc<ServerState> {
    let database = Database::open(Options::new().workers(1).pin_workers(false));
    let database = database.expect("there is memory");
    database.execute(script).expect("it is SQL");
    let shared = ServerState::new(database, Limits::default(), authentication);
    Arc::new(shared.expect("there is randomness"))
}

fn from(address: &str) -> Peer {
    Peer::Tcp(address.parse().expect("it is an address"))
}

struct Talk {
    client: Client,
    requests: Requests,
}

impl Talk {
    fn new(shared: &Arc<ServerState>, peer: Peer, role: &str) -> (Talk, Vec<Answer>) {
        let mut talk = Talk {
            client: Client::new(shared.clone(), peer),
            requests: Requests::default(),
        };
        talk.requests.startup(0, &[("user", role)]);
        let answers = talk.ask();
        (talk, answers)
    }

    fn ask(&mut self) -> Vec<Answer> {
        self.client.input().receive(&self.requests.take());
        while self.client.advance(RunsOn::Thread) == Progress::Yield {}
        let mut found = Vec::new();
        let answers = self.client.answers();
        while let Some((answer, bytes)) = Answer::split(answers.pending()).expect("it is one") {
            answers.consume(bytes);
            found.push(answer);
        }
        found
    }

    fn first_message(&mut self, mechanism: &str, message: &[u8]) -> Vec<Answer> {
        let mut body = mechanism.as_bytes().to_vec();
        body.push(0);
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message);
        self.requests.password(&body);
        self.ask()
    }

    fn message(&mut self, message: &[u8]) -> Vec<Answer> {
        self.requests.password(message);
        self.ask()
    }

    /// Whether the client has a session that answers.
    fn works(&mut self) -> bool {
        self.requests.query("SELECT 1");
        let answers = self.ask();
        answers
            .iter()
            .any(|answer| matches!(answer, Answer::Row(_)))
    }
}

/// The state of the error that ended it, or the number of the authentication step that came.
fn outcome(answers: &[Answer]) -> String {
    match answers {
        [Answer::Authentication(step, _), ..] => step.to_string(),
        [Answer::Error(fields), ..] => {
            assert_eq!(fields.get(b'S'), "FATAL");
            fields.get(b'C').to_owned()
        }
        other => panic!("{other:?}"),
    }
}

/// Authenticates with a password; the outcome of its last step.
fn authenticate(
    shared: &Arc<ServerState>,
    peer: Peer,
    role: &str,
    password: &str,
) -> (Talk, String) {
    let (mut talk, answers) = Talk::new(shared, peer, role);
    let mechanisms = b"SCRAM-SHA-256\0\0".to_vec();
    assert_eq!(answers, [Answer::Authentication(SASL, mechanisms)]);
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    let answers = talk.first_message("SCRAM-SHA-256", scram.message());
    let [Answer::Authentication(CONTINUE, data)] = &answers[..] else {
        return (talk, outcome(&answers));
    };
    scram.update(data).expect("the server goes on");
    let answers = talk.message(scram.message());
    if let Some(Answer::Authentication(FINAL, data)) = answers.first() {
        scram.finish(data).expect("the server has the secret");
    }
    let outcome = outcome(&answers);
    (talk, outcome)
}

const ROLES: &str = "CREATE ROLE app LOGIN PASSWORD 'correct horse'; CREATE ROLE idle PASSWORD 'x'; \
                     CREATE ROLE bare LOGIN; CREATE TABLE item (id INTEGER PRIMARY KEY)";

#[test]
fn a_password_is_proved_and_others_are_not() {
    let shared = shared(ROLES, Authentication::Automatic);
    for peer in [from(NEAR), from(FAR), Peer::Unix { user: None }] {
        let (mut talk, last) = authenticate(&shared, peer, "app", "correct horse");
        assert_eq!(last, FINAL.to_string());
        assert!(talk.works());
        for (role, password) in [
            ("app", "wrong horse"),
            ("app", ""),
            ("kiln", "correct horse"),
            ("bare", ""),
            ("nobody", "x"),
        ] {
            let (mut talk, last) = authenticate(&shared, peer, role, password);
            assert_eq!(last, "28P01", "{role}");
            assert!(!talk.works());
        }
        // It has a password, and may not connect.
        let (mut talk, _) = authenticate(&shared, peer, "idle", "x");
        assert!(!talk.works());
    }
    let database = &shared.database;
    let changed = database.execute("ALTER ROLE app PASSWORD 'pâté'");
    changed.expect("it is SQL");
    // Composed and decomposed are the same to SASLprep.
    for (password, expected) in [
        ("pâté", "12"),
        ("pa\u{302}te\u{301}", "12"),
        ("pate", "28P01"),
    ] {
        let (_, last) = authenticate(&shared, from(NEAR), "app", password);
        assert_eq!(last, expected, "{password}");
    }
}

#[test]
fn this_machine_is_trusted_until_there_is_a_password() {
    let fresh = shared("CREATE ROLE app LOGIN", Authentication::Automatic);
    let is_asked = |shared: &Arc<ServerState>, peer, role| {
        let (_, answers) = Talk::new(shared, peer, role);
        outcome(&answers)
    };
    let own = Peer::Unix {
        user: Some(own_user()),
    };
    let other = Peer::Unix {
        user: Some(own_user() + 1),
    };
    for peer in [
        from(NEAR),
        from("[::1]:9"),
        from("[::ffff:127.0.0.1]:9"),
        own,
        other,
    ] {
        assert_eq!(is_asked(&fresh, peer, "app"), "0", "{peer}");
        assert_eq!(is_asked(&fresh, peer, "nobody"), "28000", "{peer}");
    }
    assert_eq!(is_asked(&fresh, from(FAR), "app"), SASL.to_string());
    assert_eq!(
        is_asked(&fresh, from("[2001:db8::1]:9"), "app"),
        SASL.to_string()
    );
    let with_password = shared(ROLES, Authentication::Automatic);
    assert_eq!(
        is_asked(&with_password, from(NEAR), "app"),
        SASL.to_string()
    );
    assert_eq!(is_asked(&with_password, other, "app"), SASL.to_string());
    assert_eq!(is_asked(&with_password, own, "kiln"), "0");
    let trusting = shared(ROLES, Authentication::Trust);
    assert_eq!(is_asked(&trusting, from(NEAR), "app"), "0");
    assert_eq!(is_asked(&trusting, from(NEAR), "idle"), "28000");
    assert_eq!(is_asked(&trusting, from(FAR), "app"), SASL.to_string());
    let asking = shared("", Authentication::Password);
    assert_eq!(is_asked(&asking, own, "kiln"), SASL.to_string());
}

#[test]
fn a_role_that_there_is_not_looks_like_one_that_there_is() {
    let shared = shared(ROLES, Authentication::Automatic);
    let first = |role: &str| {
        let (mut talk, _) = Talk::new(&shared, from(FAR), role);
        let answers = talk.first_message("SCRAM-SHA-256", b"n,,n=,r=abc");
        let [Answer::Authentication(CONTINUE, data)] = &answers[..] else {
            panic!("{answers:?}");
        };
        let text = String::from_utf8(data.clone()).expect("it is text");
        let (_, salted) = text.split_once(",s=").expect("it has a salt");
        salted.to_owned()
    };
    assert_eq!(first("nobody"), first("nobody"));
    assert_ne!(first("nobody"), first("nobody else"));
    assert_eq!(first("nobody").len(), first("app").len());
    assert_eq!(first("app"), first("app"));
}

#[test]
fn nonsense_ends_the_connection() {
    let shared = shared(ROLES, Authentication::Automatic);
    for (mechanism, message, expected) in [
        ("SCRAM-SHA-1", &b"n,,n=,r=abc"[..], "08P01"),
        (
            "SCRAM-SHA-256-PLUS",
            b"p=tls-server-end-point,,n=,r=abc",
            "08P01",
        ),
        (
            "SCRAM-SHA-256",
            b"p=tls-server-end-point,,n=,r=abc",
            "28000",
        ),
        ("SCRAM-SHA-256", b"n,a=kiln,n=,r=abc", "08P01"),
        ("SCRAM-SHA-256", b"n,,n=,r=", "08P01"),
        ("SCRAM-SHA-256", b"n,,n=,r=a\xff", "08P01"),
        ("SCRAM-SHA-256", b"n,,m=x,n=,r=abc", "08P01"),
        ("SCRAM-SHA-256", b"", "08P01"),
        ("SCRAM-SHA-256", b"y,,n=,r=abc", "11"),
    ] {
        let (mut talk, _) = Talk::new(&shared, from(FAR), "app");
        let answers = talk.first_message(mechanism, message);
        assert_eq!(outcome(&answers), expected, "{mechanism} {message:?}");
    }
    for message in [
        &b""[..],
        b"c=biws,r=other,p=AAAA",
        b"c=biws,r=abc,p=",
        b"p=",
        b",,,p=\xff",
        b"c=eSws,r=abc,p=AAAA",
    ] {
        let (mut talk, _) = Talk::new(&shared, from(FAR), "app");
        talk.first_message("SCRAM-SHA-256", b"n,,n=,r=abc");
        let last = outcome(&talk.message(message));
        assert!(["08P01", "28000"].contains(&&*last), "{message:?}: {last}");
        assert!(!talk.works());
    }
    // A statement before the proof, a message that the server did not ask for, and raw bytes.
    for (kind, body) in [
        (b'Q', &b"DROP TABLE item\0"[..]),
        (b'p', b"correct horse"),
        (b'!', b""),
        (b'p', &[0; 20_000]),
    ] {
        let (mut talk, _) = Talk::new(&shared, from(FAR), "app");
        talk.requests.raw(kind, body);
        let answers = talk.ask();
        assert!(
            ["08P01", "54000"].contains(&&*outcome(&answers)),
            "{answers:?}"
        );
        assert!(!talk.works());
    }
    let count = shared.database.query("SELECT count(*) FROM item", ());
    assert!(count.is_ok(), "no statement has run");
}
