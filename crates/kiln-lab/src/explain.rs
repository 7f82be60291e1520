//! What `strife` made of batches of calls: of one in numbers, as STRIFE's Figure 5, and as a
//! picture of the access graph; of all of a run what they were on average, and what their steps
//! took (Figures 9 to 11).

use std::fmt::Write;

use kiln_engine::ExplainedBatch;
use kiln_protocols::batches::{BatchStatistics, Step, StepTime};
use serde_json::{Map, Value, json};

/// The sizes of clusters that are printed.
const SIZES_MAX: usize = 24;
/// Transactions that are drawn at most.
const TRANSACTIONS_MAX: usize = 240;
/// Records that are drawn at most.
const RECORDS_MAX: usize = 480;

/// The numbers of a batch, a line each.
pub(crate) fn text(batch: &ExplainedBatch) -> String {
    let clusters = &batch.clusters;
    let mut sizes: Vec<String> = (clusters.conflict_free.iter().take(SIZES_MAX))
        .map(usize::to_string)
        .collect();
    if clusters.conflict_free.len() > SIZES_MAX {
        sizes.push("…".to_owned());
    }
    let part = 100.0 * clusters.residuals as f64 / clusters.transactions.max(1) as f64;
    let left = match batch.left {
        0 => String::new(),
        left => format!("  records only added to    {left:>6}   tie nothing together\n"),
    };
    format!(
        "A batch of {} transactions under strife, k = {}, α = {}\n  \
           spot clusters            {:>6}\n  \
           conflict-free clusters   {:>6}   of {} transactions\n  \
           residuals                {:>6}   {part:.1} %\n{left}",
        clusters.transactions,
        clusters.samples,
        clusters.alpha_permille as f64 / 1000.0,
        clusters.spot,
        clusters.conflict_free.len(),
        sizes.join(", "),
        clusters.residuals,
    )
}

/// What the batches of a run were on average and what their steps took, with so many workers;
/// nothing where there were none.
#[must_use]
pub fn batches(statistics: &BatchStatistics, workers: usize) -> Option<String> {
    if statistics.batches == 0 {
        return None;
    }
    let each = |sum: u64| sum as f64 / statistics.batches as f64;
    let analysed = |sum: u64| sum as f64 / statistics.analysed.max(1) as f64;
    let mut text = format!(
        "{} batches ended, each of {:.0} transactions; {} were analysed: {:.1} spot clusters, of which {:.1} were left, the largest of \
         {:.0}; {:.1} clusters besides, {:.1} residuals\n\
         The analysis took {:.0} ns for each transaction\n  \
         step            ns of a worker   of transactions   µs that it lasted\n",
        statistics.batches,
        each(statistics.transactions),
        statistics.analysed,
        analysed(statistics.spot),
        analysed(statistics.special),
        analysed(statistics.largest),
        analysed(statistics.small),
        analysed(statistics.residuals),
        statistics.analysis_each(workers),
    );
    for step in Step::ALL {
        let time = statistics.step(step);
        if *time != StepTime::default() {
            let _ = writeln!(
                text,
                "  {:<14}  {:>14.0}  {:>16}  {:>18.1}",
                step.name(),
                time.worked_each(),
                time.transactions,
                each(time.lasted) / 1e3,
            );
        }
    }
    Some(text)
}

/// The same for programs; null where there were none.
#[must_use]
pub fn batches_json(statistics: &BatchStatistics, workers: usize) -> Value {
    if statistics.batches == 0 {
        return Value::Null;
    }
    let each = |sum: u64| sum as f64 / statistics.batches as f64;
    let analysed = |sum: u64| sum as f64 / statistics.analysed.max(1) as f64;
    let steps = Step::ALL.map(|step| {
        let time = statistics.step(step);
        let value = json!({
            "worked_ns_each": time.worked_each(),
            "transactions": time.transactions,
            "lasted_us_a_batch": each(time.lasted) / 1e3,
        });
        (step.name().to_owned(), value)
    });
    json!({
        "batches": statistics.batches,
        "transactions_a_batch": each(statistics.transactions),
        "analysed": statistics.analysed,
        "spot_clusters": analysed(statistics.spot),
        "special_clusters": analysed(statistics.special),
        "small_clusters": analysed(statistics.small),
        "largest_cluster": analysed(statistics.largest),
        "residuals": analysed(statistics.residuals),
        "analysis_ns_each": statistics.analysis_each(workers),
        "steps": Value::Object(steps.into_iter().collect::<Map<_, _>>()),
    })
}

/// The colour of a cluster; residuals, and records that only they want, are black.
fn colour(cluster: Option<usize>) -> String {
    match cluster {
        // The golden angle: neighbours differ.
        Some(position) => format!("hsl({:.0},65%,45%)", (position as f64 * 137.508) % 360.0),
        None => "black".to_owned(),
    }
}

/// Positions in `0..count`, at most `most` of them, evenly.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let shown = count.min(most);
    (0..shown).map(move |at| at * count / shown)
}

/// A picture of a batch's data access graph: transactions on the right, the records that they have
/// in common on the left, each in the colour of its cluster. Of a large batch it is a part, spread
/// over all clusters.
pub(crate) fn svg(batch: &ExplainedBatch) -> String {
    let by_cluster = |cluster: Option<usize>| cluster.unwrap_or(usize::MAX);
    let mut order: Vec<usize> = (0..batch.transactions.len()).collect();
    order.sort_by_key(|&at| by_cluster(batch.transactions[at].cluster));
    let shown: Vec<usize> = spread(order.len(), TRANSACTIONS_MAX)
        .map(|at| order[at])
        .collect();
    let mut degrees = vec![0_usize; batch.records.len()];
    for &at in &shown {
        for &(record, _) in &batch.transactions[at].records {
            degrees[record] += 1;
        }
    }
    // Records of one transaction tie nothing together.
    let mut records: Vec<usize> = (0..degrees.len()).filter(|&at| degrees[at] > 1).collect();
    records.sort_by_key(|&at| usize::MAX - degrees[at]);
    records.truncate(RECORDS_MAX);
    records.sort_by_key(|&at| (by_cluster(batch.records[at]), usize::MAX - degrees[at]));
    let rows = shown.len().max(records.len()).max(20);
    let height = rows as f64 * 6.0;
    let place = |at: usize, count: usize| 60.0 + (at as f64 + 0.5) * height / count.max(1) as f64;
    let (left, right) = (140.0, 620.0);
    let mut places = vec![None; degrees.len()];
    for (at, &record) in records.iter().enumerate() {
        places[record] = Some(place(at, records.len()));
    }
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{:.0}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        height + 90.0
    );
    let clusters = &batch.clusters;
    let _ = writeln!(
        picture,
        "<text x=\"20\" y=\"24\">{} transactions, {} of them drawn: {} clusters, {} residuals (black)</text>\n\
         <text x=\"20\" y=\"44\">records that several of them want</text><text x=\"560\" y=\"44\">transactions</text>",
        clusters.transactions,
        shown.len(),
        clusters.conflict_free.len(),
        clusters.residuals
    );
    for (at, &number) in shown.iter().enumerate() {
        let transaction = &batch.transactions[number];
        let (y, colour) = (place(at, shown.len()), colour(transaction.cluster));
        for &(record, is_written) in &transaction.records {
            if let Some(of_record) = places[record] {
                let dashes = if is_written {
                    ""
                } else {
                    " stroke-dasharray=\"3 3\""
                };
                let _ = writeln!(
                    picture,
                    "<line x1=\"{left}\" y1=\"{of_record:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
                     stroke-width=\"0.5\" stroke-opacity=\"0.6\"{dashes}/>"
                );
            }
        }
        let _ = writeln!(
            picture,
            "<circle cx=\"{right}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
        );
    }
    for &record in &records {
        let (y, colour) = (
            places[record].unwrap_or_default(),
            colour(batch.records[record]),
        );
        let radius = 1.5 + (degrees[record] as f64).sqrt();
        let _ = writeln!(
            picture,
            "<circle cx=\"{left}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{colour}\"/>"
        );
    }
    picture.push_str("</svg>\n");
    picture
}

#[cfg(test)]
mod tests {
    use kiln_engine::{BatchClusters, ExplainedTransaction};

    use super::*;

    /// A batch of so many transactions, every third of another cluster, all with a record of their
    /// own.
    fn batch(count: usize) -> ExplainedBatch {
        let transaction = |at: usize| ExplainedTransaction {
            cluster: (at % 3 < 2).then_some(at % 3),
            records: vec![(at % 3, true), (3 + at, at.is_multiple_of(2))],
        };
        ExplainedBatch {
            clusters: BatchClusters {
                transactions: count,
                spot: 2,
                conflict_free: vec![count / 3; 2],
                residuals: count / 3,
                samples: 16,
                alpha_permille: 200,
            },
            transactions: (0..count).map(transaction).collect(),
            records: (0..3 + count)
                .map(|at| (at % 3 < 2).then_some(at % 3))
                .collect(),
            left: 0,
        }
    }

    #[test]
    fn numbers_are_those_of_the_batch() {
        let text = text(&batch(300));
        assert!(text.starts_with("A batch of 300 transactions"), "{text}");
        assert!(text.contains("k = 16, α = 0.2\n"), "{text}");
        assert!(text.contains("of 100, 100 transactions"), "{text}");
        assert!(text.contains("33.3 %"), "{text}");
    }

    #[test]
    fn batches_are_told_by_their_averages() {
        let mut statistics = BatchStatistics {
            batches: 4,
            transactions: 1_000,
            analysed: 4,
            special: 10,
            ..BatchStatistics::default()
        };
        assert_eq!(batches(&BatchStatistics::default(), 2), None);
        assert!(batches_json(&BatchStatistics::default(), 2).is_null());
        statistics.steps[Step::Fuse as usize] = StepTime {
            worked: 70_000,
            transactions: 1_000,
            lasted: 36_000,
        };
        let text = batches(&statistics, 2).expect("there were some");
        assert!(text.starts_with("4 batches ended, each of 250 "), "{text}");
        assert!(text.contains("of which 2.5 were left"), "{text}");
        assert!(text.contains("took 36 ns"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        let json = batches_json(&statistics, 2);
        assert_eq!(json["steps"]["fuse"]["worked_ns_each"], 70.0);
        assert_eq!(json["steps"]["fuse"]["lasted_us_a_batch"], 9.0);
    }

    #[test]
    fn pictures_are_bounded_however_large_the_batch_is() {
        let (small, large) = (svg(&batch(30)), svg(&batch(30_000)));
        assert_eq!(small.matches("<circle").count(), 30 + 3);
        assert_eq!(large.matches("<circle").count(), TRANSACTIONS_MAX + 3);
        assert!(large.len() < 200_000 && large.ends_with("</svg>\n"));
        assert!(svg(&ExplainedBatch::default()).contains("0 clusters"));
    }
}
