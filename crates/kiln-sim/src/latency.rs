//! How long calls took: percentiles, and shares of classes.

use serde_json::{Map, Value, json};

use crate::outcome::Point;

/// The percentiles that are reported.
pub(crate) const PERCENTILES: [u64; 5] = [25, 50, 80, 95, 99];

/// The upper bounds of the classes, in microseconds; above the last is one more.
const CLASSES_US: [u64; 10] = [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120];

/// Latencies in ascending order.
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    fn new(mut latencies_ns: Vec<u64>) -> Latencies {
        latencies_ns.sort_unstable();
        Latencies(latencies_ns)
    }

    /// Those of all committed calls of a run.
    pub(crate) fn of_all(point: &Point) -> Latencies {
        Latencies::new(point.done.latencies_ns.concat())
    }

    /// The latency that so many calls in a hundred did not exceed, in microseconds; 0 without
    /// calls.
    pub(crate) fn percentile_us(&self, percentile: u64) -> f64 {
        let rank = (self.0.len() as u64 * percentile).div_ceil(100).max(1) as usize;
        self.0.get(rank - 1).map_or(0.0, |ns| *ns as f64 / 1e3)
    }

    /// The greatest, in microseconds; 0 without calls.
    pub(crate) fn max_us(&self) -> f64 {
        self.percentile_us(100)
    }

    fn to_json(&self) -> Value {
        let mut values = Map::new();
        values.insert("calls".to_owned(), self.0.len().into());
        for percentile in PERCENTILES {
            let value = self.percentile_us(percentile);
            values.insert(format!("p{percentile}_us"), value.into());
        }
        values.insert("max_us".to_owned(), self.max_us().into());
        let below = |us: u64| self.0.partition_point(|ns| *ns < us * 1_000);
        let count = self.0.len().max(1) as f64;
        let mut shares = Map::new();
        let mut lower = 0;
        for upper in CLASSES_US {
            let share = (below(upper) - below(lower)) as f64 / count;
            shares.insert(format!("{lower}-{upper}"), share.into());
            lower = upper;
        }
        let rest = (self.0.len() - below(lower)) as f64 / count;
        shares.insert(format!("{lower}-"), rest.into());
        values.insert("shares_by_us".to_owned(), Value::Object(shares));
        Value::Object(values)
    }
}

/// The latencies of a run's committed calls: of all, and by procedure.
pub(crate) fn to_json(point: &Point, names: impl IntoIterator<Item = &'static str>) -> Value {
    let by_procedure = names.into_iter().zip(&point.done.latencies_ns);
    let by_procedure = by_procedure.map(|(name, latencies_ns)| {
        let latencies = Latencies::new(latencies_ns.clone());
        (name.to_owned(), latencies.to_json())
    });
    json!({
        "all": Latencies::of_all(point).to_json(),
        "by_procedure": Value::Object(by_procedure.collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_classes_of_few_calls() {
        let latencies = Latencies::new(vec![40_000, 9_999, 10_000, 6_000_000]);
        assert_eq!(latencies.percentile_us(25), 9.999);
        assert_eq!(latencies.percentile_us(50), 10.0);
        assert_eq!(latencies.percentile_us(80), 6_000.0);
        assert_eq!(latencies.max_us(), 6_000.0);
        let json = latencies.to_json();
        let share = |class: &str| json["shares_by_us"][class].as_f64();
        let classes = ["0-10", "10-20", "20-40", "40-80", "5120-"].map(share);
        assert_eq!(
            classes.map(|share| share.expect("a class")),
            [0.25, 0.25, 0.0, 0.25, 0.25]
        );
    }

    #[test]
    fn no_calls_have_no_latency() {
        let none = Latencies::new(Vec::new());
        assert_eq!(none.percentile_us(99), 0.0);
        assert_eq!(none.to_json()["calls"], 0);
    }
}
