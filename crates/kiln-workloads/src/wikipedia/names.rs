//! What follows from the number of a page or of a user, for the population and for calls alike.

use std::fmt::Write;

use kiln_platform::random::Random;

use super::Config;
use crate::random::push_alphanumeric;

/// The stream of page 0.
const PAGES: u64 = 3 << 32;
/// The stream of user 0.
const USERS: u64 = 4 << 32;

/// The namespaces that are drawn, each with its share in a hundred: articles, their discussions,
/// users, discussions with users, and files.
const NAMESPACES: [(i64, usize); 5] = [(0, 41), (1, 15), (2, 8), (3, 25), (6, 11)];

/// The namespace of a page, whose title goes into `title`.
pub(super) fn page(seed: u64, page: i64, title: &mut String) -> i64 {
    let random = &mut Random::stream(seed, PAGES + page as u64);
    title.clear();
    push_alphanumeric(title, random, 5, 25);
    // Its number makes a title unique.
    write!(title, "[{page}]").expect("writing to a string does not fail");
    let mut share = random.below(100);
    for (namespace, of_hundred) in NAMESPACES {
        if share < of_hundred {
            return namespace;
        }
        share -= of_hundred;
    }
    0
}

/// The name of a user.
pub(super) fn user(seed: u64, user: i64, name: &mut String) {
    let random = &mut Random::stream(seed, USERS + user as u64);
    name.clear();
    push_alphanumeric(name, random, 4, 16);
    write!(name, "[{user}]").expect("writing to a string does not fail");
}

/// An address.
pub(super) fn address(random: &mut Random, out: &mut String) {
    out.clear();
    let [a, b, c, d, ..] = random.next_u64().to_le_bytes();
    write!(out, "{}.{b}.{c}.{d}", a.max(1)).expect("writing to a string does not fail");
}

/// The length of an article: from a third of the mean to the mean, and ten times that for one in
/// twenty, which makes the mean about right.
pub(super) fn text_length(config: &Config, random: &mut Random) -> usize {
    let mean = i64::from(config.text_length);
    let length = random.between(mean / 3, mean);
    match random.percent(5.0) {
        true => 10 * length as usize,
        false => length as usize,
    }
}
