//! A reader of Prometheus' text format that takes nothing which is not in the format.

use std::collections::{BTreeMap, BTreeSet};

/// Labels, in their order on the page.
pub type Labels = Vec<(String, String)>;

/// What a page has: the kinds of families, and metrics by name and labels.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub kinds: BTreeMap<String, String>,
    pub metrics: BTreeMap<(String, Labels), f64>,
}

/// Reads a page.
///
/// # Panics
/// With the line that is not in the format.
pub fn read(text: &str) -> Page {
    let mut page = Page::default();
    let (mut family, mut ended, mut has_help) = (String::new(), BTreeSet::new(), String::new());
    assert!(text.ends_with('\n'), "the last line has no end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect(line);
            assert!(is_name(name) && !help.is_empty(), "{line}");
            assert!(ended.insert(name.to_owned()), "a family twice: {line}");
            has_help = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect(line);
            assert_eq!(name, has_help, "TYPE without HELP: {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            page.kinds.insert(name.to_owned(), kind.to_owned());
            family = name.to_owned();
        } else {
            let (name, labels, value) = metric(line);
            let of_family = name.strip_prefix(&family).expect(line);
            let suffixes: &[&str] = match page.kinds[&family].as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(suffixes.contains(&of_family), "{line}");
            assert!(value.is_finite(), "{line}");
            let former = page.metrics.insert((name, labels), value);
            assert!(former.is_none(), "a metric twice: {line}");
        }
    }
    check_histograms(&page);
    page
}

fn is_name(name: &str) -> bool {
    let starts = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b':';
    name.bytes().next().is_some_and(starts)
        && name
            .bytes()
            .all(|byte| starts(byte) || byte.is_ascii_digit())
}

fn metric(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, quoted) = inside.split_once("=\"").expect(line);
            assert!(is_name(label) && !label.contains(':'), "{line}");
            let (value, behind) = quoted_value(quoted, line);
            assert!(labels.iter().all(|(known, _)| known != label), "{line}");
            labels.push((label.to_owned(), value));
            match behind.strip_prefix(',') {
                Some(next) => inside = next,
                None => {
                    rest = behind.strip_prefix('}').expect(line);
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect(line);
    assert!(!value.contains(' '), "{line}");
    (name.to_owned(), labels, value.parse().expect(line))
}

/// The value up to its quotation mark, and what follows it.
fn quoted_value<'a>(quoted: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.push(match characters.next().expect(line).1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                other => panic!("\\{other} in {line}"),
            }),
            other => value.push(other),
        }
    }
    panic!("never closed: {line}");
}

fn check_histograms(page: &Page) {
    let mut buckets: BTreeMap<(String, Labels), Vec<(f64, f64)>> = BTreeMap::new();
    for ((name, labels), count) in &page.metrics {
        if let Some(family) = name.strip_suffix("_bucket") {
            let (bound, others): (Labels, Labels) =
                labels.iter().cloned().partition(|(label, _)| label == "le");
            let bound = match bound[0].1.as_str() {
                "+Inf" => f64::INFINITY,
                bound => bound.parse().expect("a bound is a number"),
            };
            let key = (family.to_owned(), others);
            buckets.entry(key).or_default().push((bound, *count));
        }
    }
    for ((family, labels), mut counts) in buckets {
        counts.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(
            counts.is_sorted_by_key(|(_, count)| *count),
            "{family}: {counts:?}"
        );
        let of = |suffix: &str| page.metrics[&(format!("{family}{suffix}"), labels.clone())];
        assert_eq!(
            counts.last(),
            Some(&(f64::INFINITY, of("_count"))),
            "{family}"
        );
        assert!(of("_sum") >= 0.0, "{family}");
    }
}

impl Page {
    /// The value of a metric with exactly these labels; 0 for one that is not there.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter();
        let labels = labels.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let key = (name.to_owned(), labels.collect());
        self.metrics.get(&key).copied().unwrap_or(0.0)
    }

    /// Checks that no count is smaller than it was in `earlier`.
    pub fn check_grew_from(&self, earlier: &Page) {
        for (key, before) in &earlier.metrics {
            let is_count = ["_total", "_count", "_bucket"];
            if is_count.iter().any(|suffix| key.0.ends_with(suffix)) {
                let now = self.metrics[key];
                assert!(now >= *before, "{key:?} fell from {before} to {now}");
            }
        }
    }
}
