//! A page of figures: pictures, claims, values, commands and rows, in one file of HTML that needs nothing else.

use std::fmt::Write;

use crate::claim::Outcome;
use crate::description::{Claim, Figure, Panel, Paper};
use crate::draw::{self, amount};
use crate::results::Results;

const STYLE: &str = include_str!("page.css");

/// How many claims of a figure there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Claims that hold.
    pub agree: usize,
    /// Claims that do not, for a reason that the description gives.
    pub explained: usize,
    /// Claims that do not, for no known reason.
    pub differ: usize,
    /// Claims of which something was not measured.
    pub unknown: usize,
}

impl Verdict {
    /// Of a figure.
    pub fn of(figure: &Figure, results: &Results) -> Verdict {
        let mut verdict = Verdict::default();
        for claim in &figure.claim {
            let count = match results.judge(figure, claim) {
                Outcome::Agrees(_) => &mut verdict.agree,
                Outcome::Differs(_) if !claim.differs.is_empty() => &mut verdict.explained,
                Outcome::Differs(_) => &mut verdict.differ,
                Outcome::Unknown => &mut verdict.unknown,
            };
            *count += 1;
        }
        verdict
    }

    /// In words.
    pub fn text(self) -> String {
        let parts = [
            (self.agree, "agree"),
            (self.explained, "differ, explained"),
            (self.differ, "differ"),
            (self.unknown, "not measured"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match parts.is_empty() {
            true => "no claims".to_owned(),
            false => parts.join(", "),
        }
    }
}

/// What came of a claim, in words.
pub fn outcome_text(claim: &Claim, outcome: &Outcome) -> String {
    let sides = |values: &[f64]| {
        let values: Vec<String> = values.iter().map(|value| amount(*value)).collect();
        values.join(" : ")
    };
    match outcome {
        Outcome::Agrees(values) => format!("agrees ({})", sides(values)),
        Outcome::Differs(values) if claim.differs.is_empty() => {
            format!("differs ({})", sides(values))
        }
        Outcome::Differs(values) => format!("differs ({}): {}", sides(values), claim.differs),
        Outcome::Unknown => "not measured".to_owned(),
    }
}

/// The page.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn html(figures: &[(Figure, Results)], date: &str) -> Result<String, String> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Kiln: the papers' figures</title><style>{STYLE}</style></head><body>\n\
         <h1>The papers' figures, drawn again by Kiln</h1>\n\
         <p>Made {}. A line is a protocol, a point the median of its runs, and a bar through it their spread. \
         Figures of virtual cores are measured on a model of the machine that is named, those of <em>here</em> by the threads of \
         this one.</p>\n",
        escape(date),
    );
    contents(&mut page, figures);
    for paper in Paper::ALL {
        let of_paper: Vec<_> = figures.iter().filter(|(it, _)| it.paper == paper).collect();
        if of_paper.is_empty() {
            continue;
        }
        let name = paper.name();
        let _ = write!(
            page,
            "<h2 id=\"{name}\">{name}: {}</h2>\n",
            escape(paper.title())
        );
        for (figure, results) in of_paper {
            section(&mut page, figure, results)?;
        }
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// All figures with their verdicts, first.
fn contents(page: &mut String, figures: &[(Figure, Results)]) {
    page.push_str("<table><tr><th>figure</th><th>shows</th><th>machine</th><th>claims</th></tr>\n");
    for (figure, results) in figures {
        let verdict = Verdict::of(figure, results);
        let class = match verdict {
            _ if verdict.differ > 0 => "differs",
            _ if verdict.explained > 0 => "explained",
            _ => "agrees",
        };
        let _ = write!(
            page,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td class=\"{class}\">{3}</td></tr>\n",
            figure.name(),
            escape(&figure.title),
            escape(&figure.machine),
            verdict.text(),
        );
    }
    page.push_str("</table>\n");
}

fn section(page: &mut String, figure: &Figure, results: &Results) -> Result<(), String> {
    let name = figure.name();
    let _ = write!(
        page,
        "<section id=\"{name}\"><h3>{}: {}</h3>\n",
        escape(&figure.caption()),
        escape(&figure.title)
    );
    if !figure.set_up.is_empty() {
        let _ = write!(page, "<p>{}</p>\n", escape(&figure.set_up));
    }
    match draw::svg(figure, results)? {
        Some(svg) => {
            let _ = write!(page, "<figure>{svg}</figure>\n");
        }
        None => values(page, figure, results),
    }
    claims(page, figure, results);
    if !figure.is_table() {
        page.push_str("<details><summary>Values</summary>\n");
        values(page, figure, results);
        page.push_str("</details>\n");
    }
    commands(page, figure, results);
    page.push_str("</section>\n");
    Ok(())
}

fn claims(page: &mut String, figure: &Figure, results: &Results) {
    if figure.claim.is_empty() {
        return;
    }
    page.push_str("<table><tr><th>the paper says</th><th>check</th><th>here</th></tr>\n");
    for claim in &figure.claim {
        let outcome = results.judge(figure, claim);
        let class = match &outcome {
            Outcome::Agrees(_) => "agrees",
            Outcome::Differs(_) if claim.differs.is_empty() => "differs",
            Outcome::Differs(_) => "explained",
            Outcome::Unknown => "unknown",
        };
        let _ = write!(
            page,
            "<tr><td>{}</td><td><code>{}</code></td><td class=\"{class}\">{}</td></tr>\n",
            escape(&claim.says),
            escape(&claim.check),
            escape(&outcome_text(claim, &outcome)),
        );
    }
    page.push_str("</table>\n");
}

/// A table for each picture and measure.
fn values(page: &mut String, figure: &Figure, results: &Results) {
    for panel in &figure.panel {
        for (number, measure) in figure.measure.iter().enumerate() {
            let title = match panel.title.is_empty() {
                true => measure.label.clone(),
                false => format!("{}: {}", panel.title, measure.label),
            };
            let _ = write!(page, "<table><caption>{}</caption>", escape(&title));
            let _ = write!(page, "<tr><th>{}</th>", escape(&figure.x.label));
            for series in &figure.series {
                let _ = write!(page, "<th>{}</th>", escape(series.name()));
            }
            page.push_str("</tr>\n");
            for x in figure.values(results.extent) {
                row(page, figure, results, (panel, number, x));
            }
            page.push_str("</table>\n");
        }
    }
}

fn row(
    page: &mut String,
    figure: &Figure,
    results: &Results,
    (panel, measure, x): (&Panel, usize, &str),
) {
    let _ = write!(page, "<tr><td>{}</td>", escape(figure.x.name(x)));
    for series in &figure.series {
        let summary = results.summary(figure, &panel.title, series.name(), x, measure);
        let text = match summary {
            None => "–".to_owned(),
            Some(summary) if summary.runs == 1 => amount(summary.median),
            Some(summary) => format!(
                "{} <small>{} – {}</small>",
                amount(summary.median),
                amount(summary.least),
                amount(summary.most)
            ),
        };
        let _ = write!(page, "<td class=\"number\">{text}</td>");
    }
    page.push_str("</tr>\n");
}

/// How it was measured, and the rows to take away.
fn commands(page: &mut String, figure: &Figure, results: &Results) {
    page.push_str("<details><summary>Commands and rows</summary>\n");
    for made_by in results.made_by() {
        let _ = write!(page, "<p>{}</p>\n", escape(&made_by));
    }
    page.push_str("<pre>");
    for result in &results.rows {
        let _ = write!(page, "kiln {}\n", escape(&result.command));
    }
    page.push_str("</pre>\n");
    let rows = serde_json::to_string(results).expect("all keys are text");
    let _ = write!(
        page,
        "<p><a download=\"{}.json\" href=\"data:application/json,{}\">All rows as JSON</a></p></details>\n",
        figure.name(),
        percent_encode(&rows),
    );
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte as char);
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
