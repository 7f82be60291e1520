//! A page of metrics in Prometheus' text format (version 0.0.4).

use std::fmt::{Display, Write};

/// The media type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What kind of metrics a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts of values by their size.
    Histogram,
}

/// A page that is being written.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    /// The family whose metrics are being written.
    family: &'static str,
}

/// The labels of a metric: names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// Begins a family of metrics. Those of a family are written together, each with labels of its
    /// own.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> &mut Page {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.family = name;
        self.write(format_args!(
            "# HELP {name} {}\n",
            help.replace('\\', r"\\").replace('\n', r"\n")
        ));
        self.write(format_args!("# TYPE {name} {kind}\n"));
        self
    }

    /// A metric of the family.
    pub fn metric(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Page {
        self.line("", labels, None, value);
        self
    }

    /// A family of one metric without labels.
    pub fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help).metric(&[], value);
    }

    /// A histogram of the family: how many values are in each bucket, with the bucket's bound, and
    /// how many exceed all bounds.
    pub fn histogram(
        &mut self,
        labels: Labels<'_>,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        beyond: u64,
        sum: f64,
    ) {
        let mut count = 0;
        for (bound, inside) in buckets {
            count += inside;
            self.line("_bucket", labels, Some(&bound.to_string()), count);
        }
        count += beyond;
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: impl Display) {
        let family = self.family;
        self.write(format_args!("{family}{suffix}"));
        let bound = bound.map(|bound| ("le", bound));
        let mut separator = '{';
        for (name, value) in labels.iter().copied().chain(bound) {
            self.write(format_args!("{separator}{name}=\""));
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str(r"\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str(r"\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        self.write(format_args!(" {value}\n"));
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // A string takes all that is written.
        let _ = self.text.write_fmt(arguments);
    }

    /// The page.
    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_in_the_format() {
        let mut page = Page::default();
        page.single("kiln_a_total", Kind::Counter, "Counts.", 7);
        page.family("kiln_b", Kind::Gauge, "A \\ and\na line.")
            .metric(&[("name", "a\"b\\c\nd"), ("other", "")], 0.25);
        page.family("kiln_c_seconds", Kind::Histogram, "Durations.");
        page.histogram(&[("x", "y")], [(0.1, 2), (1.0, 3)], 1, 4.5);
        let expected = r#"# HELP kiln_a_total Counts.
# TYPE kiln_a_total counter
kiln_a_total 7
# HELP kiln_b A \\ and\na line.
# TYPE kiln_b gauge
kiln_b{name="a\"b\\c\nd",other=""} 0.25
# HELP kiln_c_seconds Durations.
# TYPE kiln_c_seconds histogram
kiln_c_seconds_bucket{x="y",le="0.1"} 2
kiln_c_seconds_bucket{x="y",le="1"} 5
kiln_c_seconds_bucket{x="y",le="+Inf"} 6
kiln_c_seconds_sum{x="y"} 4.5
kiln_c_seconds_count{x="y"} 6
"#;
        assert_eq!(page.finish(), expected);
    }
}
