//! The population: users, pages with their revisions, and watch lists.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, names};
use crate::RowSink;
use crate::clock::{DAY, START};
use crate::population::{fixed_text, text};
use crate::random::{Ranks, push_alphanumeric};

/// The streams of the tables; what several tables must agree about has a stream of its own.
const USERS: u64 = 0;
const PAGES: u64 = 1;
const REVISIONS: u64 = 2;
const TEXTS: u64 = 3;
const WATCHES: u64 = 4;

/// The most revisions of a page, and the exponent of their distribution.
const REVISIONS_MAX: u64 = 100;
const REVISIONS_THETA: f64 = 1.5;
/// The most pages that a user watches, and the exponent of their distribution.
const WATCHES_MAX: u32 = 100;
const WATCHES_THETA: f64 = 1.75;
/// The exponent of the distribution of revisions over users.
const EDITOR_THETA: f64 = 1.0001;

/// One revision of the population. Its text has the same number.
struct Revision {
    page: i64,
    user: i64,
    length: usize,
    is_latest: bool,
}

/// The revisions, by their numbers from 1 on.
fn draw_revisions(config: &Config, seed: u64) -> Vec<Revision> {
    let random = &mut Random::stream(seed, REVISIONS);
    let counts = Ranks::new(REVISIONS_MAX, REVISIONS_THETA);
    let editors = Ranks::new(config.users.into(), EDITOR_THETA);
    let mut revisions = Vec::new();
    for page in 1..=i64::from(config.pages) {
        let count = counts.next(random);
        for number in 1..=count {
            revisions.push(Revision {
                page,
                user: editors.next(random),
                length: names::text_length(config, random),
                is_latest: number == count,
            });
        }
    }
    revisions
}

/// How many revisions the population has.
pub fn revisions(config: &Config, seed: u64) -> u64 {
    draw_revisions(config, seed).len() as u64
}

/// Makes all rows.
pub fn populate(config: &Config, seed: u64, sink: &mut dyn RowSink) {
    let revisions = draw_revisions(config, seed);
    let mut edits = vec![0_i32; config.users as usize + 1];
    for revision in &revisions {
        edits[revision.user as usize] += 1;
    }
    users(config, seed, &edits, sink);
    groups_and_blocks(config, seed, sink);
    pages(config, seed, &revisions, sink);
    restrictions(config, sink);
    revision_rows(seed, &revisions, sink);
    texts(seed, &revisions, sink);
    watch_lists(config, seed, sink);
    sink.table("recentchanges", &RECENTCHANGES, 0);
    sink.table("logging", &LOGGING, 0);
}

const RECENTCHANGES: [&str; 12] = [
    "rc_timestamp",
    "rc_namespace",
    "rc_title",
    "rc_minor",
    "rc_cur_id",
    "rc_user",
    "rc_user_text",
    "rc_comment",
    "rc_this_oldid",
    "rc_bot",
    "rc_ip",
    "rc_new_len",
];

const LOGGING: [&str; 9] = [
    "log_type",
    "log_action",
    "log_timestamp",
    "log_user",
    "log_user_text",
    "log_namespace",
    "log_title",
    "log_page",
    "log_rev_id",
];

fn users(config: &Config, seed: u64, edits: &[i32], sink: &mut dyn RowSink) {
    sink.table(
        "useracct",
        &[
            "user_id",
            "user_name",
            "user_real_name",
            "user_email",
            "user_touched",
            "user_token",
            "user_editcount",
        ],
        config.users.into(),
    );
    let random = &mut Random::stream(seed, USERS);
    let mut row = vec![Value::Null; 7];
    row[4] = Value::Timestamp(START);
    for user in 1..=i64::from(config.users) {
        row[0] = Value::Integer(user as i32);
        names::user(seed, user, text(&mut row[1]));
        push_alphanumeric(text(&mut row[2]), random, 0, 20);
        let email = text(&mut row[3]);
        push_alphanumeric(email, random, 4, 20);
        email.push_str("@example.org");
        push_alphanumeric(text(&mut row[5]), random, 32, 32);
        row[6] = Value::Integer(edits[user as usize]);
        sink.row(&row);
    }
}

/// Every tenth user is in a group; every hundredth is blocked, and some address for each of them.
fn groups_and_blocks(config: &Config, seed: u64, sink: &mut dyn RowSink) {
    let users = 1..=config.users as i32;
    sink.table(
        "user_groups",
        &["ug_user", "ug_group"],
        u64::from(config.users) / 10,
    );
    for user in users.clone().step_by(10) {
        sink.row(&[Value::Integer(user), Value::Text("sysop".to_owned())]);
    }
    sink.table(
        "ipblocks",
        &[
            "ipb_id",
            "ipb_address",
            "ipb_user",
            "ipb_reason",
            "ipb_expiry",
        ],
        u64::from(config.users) / 100,
    );
    let random = &mut Random::stream(seed, USERS + (1 << 33));
    let mut row = vec![Value::Null; 5];
    fixed_text(&mut row[3], "vandalism");
    row[4] = Value::Timestamp(START + 30 * DAY);
    for (number, user) in (1..).zip(users.step_by(100)) {
        row[0] = Value::Integer(number);
        names::address(random, text(&mut row[1]));
        row[2] = Value::Integer(user);
        sink.row(&row);
    }
}

fn pages(config: &Config, seed: u64, revisions: &[Revision], sink: &mut dyn RowSink) {
    sink.table(
        "page",
        &[
            "page_id",
            "page_namespace",
            "page_title",
            "page_counter",
            "page_is_redirect",
            "page_is_new",
            "page_random",
            "page_touched",
            "page_latest",
            "page_len",
        ],
        config.pages.into(),
    );
    let random = &mut Random::stream(seed, PAGES);
    let mut row = vec![Value::Null; 10];
    row[3] = Value::BigInt(0);
    row[4] = Value::SmallInt(0);
    row[5] = Value::SmallInt(0);
    row[7] = Value::Timestamp(START);
    let numbered = (1..).zip(revisions);
    for (number, revision) in numbered.filter(|(_, revision)| revision.is_latest) {
        row[0] = Value::Integer(revision.page as i32);
        row[1] = Value::Integer(names::page(seed, revision.page, text(&mut row[2])) as i32);
        row[6] = Value::Double(random.unit());
        row[8] = Value::BigInt(number);
        row[9] = Value::Integer(revision.length as i32);
        sink.row(&row);
    }
}

/// Every twentieth page may be edited by some only.
fn restrictions(config: &Config, sink: &mut dyn RowSink) {
    sink.table(
        "page_restrictions",
        &["pr_page", "pr_type", "pr_level", "pr_cascade"],
        u64::from(config.pages) / 20,
    );
    for page in (1..=config.pages as i32).step_by(20) {
        sink.row(&[
            Value::Integer(page),
            Value::Text("edit".to_owned()),
            Value::Text("autoconfirmed".to_owned()),
            Value::SmallInt(0),
        ]);
    }
}

fn revision_rows(seed: u64, revisions: &[Revision], sink: &mut dyn RowSink) {
    sink.table(
        "revision",
        &[
            "rev_id",
            "rev_page",
            "rev_text_id",
            "rev_comment",
            "rev_user",
            "rev_user_text",
            "rev_timestamp",
            "rev_minor_edit",
            "rev_deleted",
            "rev_len",
        ],
        revisions.len() as u64,
    );
    let random = &mut Random::stream(seed, REVISIONS + (1 << 33));
    let mut row = vec![Value::Null; 10];
    row[6] = Value::Timestamp(START);
    row[8] = Value::SmallInt(0);
    for (number, revision) in (1..).zip(revisions) {
        row[0] = Value::BigInt(number);
        row[1] = Value::Integer(revision.page as i32);
        row[2] = Value::BigInt(number);
        push_alphanumeric(text(&mut row[3]), random, 0, 60);
        row[4] = Value::Integer(revision.user as i32);
        names::user(seed, revision.user, text(&mut row[5]));
        row[7] = Value::SmallInt(random.percent(25.0).into());
        row[9] = Value::Integer(revision.length as i32);
        sink.row(&row);
    }
}

fn texts(seed: u64, revisions: &[Revision], sink: &mut dyn RowSink) {
    sink.table(
        "text",
        &["old_id", "old_text", "old_flags", "old_page"],
        revisions.len() as u64,
    );
    let random = &mut Random::stream(seed, TEXTS);
    let mut row = vec![Value::Null; 4];
    fixed_text(&mut row[2], "utf-8");
    for (number, revision) in (1..).zip(revisions) {
        row[0] = Value::BigInt(number);
        push_alphanumeric(text(&mut row[1]), random, revision.length, revision.length);
        row[3] = Value::Integer(revision.page as i32);
        sink.row(&row);
    }
}

/// Most users watch few pages, or none; popular pages are watched by many.
fn watch_lists(config: &Config, seed: u64, sink: &mut dyn RowSink) {
    let most = WATCHES_MAX.min(config.pages);
    sink.table(
        "watchlist",
        &[
            "wl_user",
            "wl_namespace",
            "wl_title",
            "wl_notificationtimestamp",
        ],
        u64::from(config.users) * 4,
    );
    let random = &mut Random::stream(seed, WATCHES);
    let counts = Ranks::new(u64::from(most) + 1, WATCHES_THETA);
    let pages = Ranks::new(config.pages.into(), config.theta);
    let mut row = vec![Value::Null; 4];
    let mut watched = Vec::new();
    for user in 1..=config.users as i32 {
        watched.clear();
        for _ in 1..counts.next(random) {
            watched.push(pages.next_free(random, |page| watched.contains(&page)));
        }
        row[0] = Value::Integer(user);
        for page in &watched {
            let namespace = names::page(seed, *page, text(&mut row[2]));
            row[1] = Value::Integer(namespace as i32);
            sink.row(&row);
            if namespace == 0 {
                row[1] = Value::Integer(1);
                sink.row(&row);
            }
        }
    }
}
