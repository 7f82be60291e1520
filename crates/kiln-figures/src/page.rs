//! A page of figures: pictures, claims, values, commands and rows, in one file of HTML that needs
//! nothing else.

use std::fmt::Write;

use crate::claim::Outcome;
use crate::description::{Claim, Figure, Paper, Series};
use crate::draw::{self, amount};
use crate::results::{Results, Summary};

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
    /// The verdict about a figure.
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
        let _ = writeln!(
            page,
            "<h2 id=\"{name}\">{name}: {}</h2>",
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
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td class=\"{class}\">{3}</td></tr>",
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
    let _ = writeln!(
        page,
        "<section id=\"{name}\"><h3>{}: {}</h3>",
        escape(&figure.caption()),
        escape(&figure.title)
    );
    if !figure.set_up.is_empty() {
        let _ = writeln!(page, "<p>{}</p>", escape(&figure.set_up));
    }
    match draw::svg(figure, results)? {
        Some(svg) => {
            let _ = writeln!(page, "<figure>{svg}</figure>");
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
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td><code>{}</code></td><td class=\"{class}\">{}</td></tr>",
            escape(&claim.says),
            escape(&claim.check),
            escape(&outcome_text(claim, &outcome)),
        );
    }
    page.push_str("</table>\n");
}

/// Tables of all values. What there is one of has no place of its own: of a single x the measures
/// are below each other, of a single series beside each other; otherwise each measure has a table.
fn values(page: &mut String, figure: &Figure, results: &Results) {
    let xs = figure.values(results.extent);
    let measures: Vec<usize> = (0..figure.measure.len()).collect();
    let label = |measure: usize| figure.measure[measure].label.as_str();
    let series: Vec<&str> = figure.series.iter().map(Series::name).collect();
    for panel in &figure.panel {
        let title = panel.title.as_str();
        if measures.len() > 1 && xs.len() == 1 {
            let at = format!("{}: {}", figure.x.label, figure.x.name(&xs[0]));
            let columns = series.iter().copied();
            let rows = measures.iter().map(|measure| {
                let cells = series.iter().map(|name| (*name, *measure));
                (label(*measure), xs[0].as_str(), cells.collect())
            });
            let heads = [title, &at];
            table(
                page,
                figure,
                results,
                title,
                (&heads, columns.collect(), rows.collect()),
            );
        } else if measures.len() > 1 && series.len() == 1 {
            let columns = measures.iter().map(|measure| label(*measure));
            let rows = xs.iter().map(|x| {
                let cells = measures.iter().map(|measure| (series[0], *measure));
                (figure.x.name(x), x.as_str(), cells.collect())
            });
            let heads = [title, &figure.x.label];
            table(
                page,
                figure,
                results,
                title,
                (&heads, columns.collect(), rows.collect()),
            );
        } else {
            for measure in &measures {
                let caption = match title.is_empty() {
                    true => label(*measure).to_owned(),
                    false => format!("{title}: {}", label(*measure)),
                };
                let rows = xs.iter().map(|x| {
                    let cells = series.iter().map(|name| (*name, *measure));
                    (figure.x.name(x), x.as_str(), cells.collect())
                });
                let heads = [caption.as_str(), &figure.x.label];
                let rows = rows.collect();
                table(page, figure, results, title, (&heads, series.clone(), rows));
            }
        }
    }
}

/// A row of a table: what it is called, its x, and the series and measures of its cells.
type TableRow<'a> = (&'a str, &'a str, Vec<(&'a str, usize)>);

/// Caption and first head; heads; rows.
type Table<'a> = (&'a [&'a str; 2], Vec<&'a str>, Vec<TableRow<'a>>);

fn table(
    page: &mut String,
    figure: &Figure,
    results: &Results,
    panel: &str,
    ([caption, first], columns, rows): Table<'_>,
) {
    let _ = write!(page, "<table><caption>{}</caption>", escape(caption));
    let _ = write!(page, "<tr><th>{}</th>", escape(first));
    for column in columns {
        let _ = write!(page, "<th>{}</th>", escape(column));
    }
    page.push_str("</tr>\n");
    for (name, x, cells) in rows {
        let _ = write!(page, "<tr><td>{}</td>", escape(name));
        for (series, measure) in cells {
            let summary = results.summary(figure, panel, series, x, measure);
            let _ = write!(page, "<td class=\"number\">{}</td>", cell(summary));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
}

fn cell(summary: Option<Summary>) -> String {
    match summary {
        None => "–".to_owned(),
        Some(summary) if summary.runs == 1 => amount(summary.median),
        Some(summary) => format!(
            "{} <small>{} – {}</small>",
            amount(summary.median),
            amount(summary.least),
            amount(summary.most)
        ),
    }
}

/// How it was measured, and the rows to take away.
fn commands(page: &mut String, figure: &Figure, results: &Results) {
    page.push_str("<details><summary>Commands and rows</summary>\n");
    for made_by in results.made_by() {
        let _ = writeln!(page, "<p>{}</p>", escape(&made_by));
    }
    page.push_str("<pre>");
    for result in &results.rows {
        let _ = writeln!(page, "kiln {}", escape(&result.command));
    }
    page.push_str("</pre>\n");
    let rows = serde_json::to_string(results).expect("all keys are text");
    let _ = writeln!(
        page,
        "<p><a download=\"{}.json\" href=\"data:application/json,{}\">All rows as JSON</a></p></details>",
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::description::Extent;
    use crate::results::Row;

    /// A figure of which each run measures 25, 50 and 25 percent.
    fn measured(draw: &str, series: &str, xs: &str) -> (Figure, Results) {
        let text = format!(
            r#"
            paper = "sto"
            number = "0"
            title = "A figure"
            machine = "sto"
            run = "hot"
            full = ""
            quick = ""
            draw = "{draw}"
            series = [{series}]
            measure = [
                {{ label = "execute", value = "/a", per = 0.01 }},
                {{ label = "lock", value = "/b", per = 0.01 }},
                {{ label = "wait", value = "/a", per = 0.01 }},
            ]
            x = {{ label = "cores", argument = "--cores", values = [{xs}] }}
            "#
        );
        let figure = Figure::read(&text).expect("it is sound");
        let mut results = Results::new(&figure, Extent::Full);
        for point in figure.points(Extent::Full, 1) {
            results.rows.push(Row {
                command: point.words.join(" "),
                panel: point.panel,
                series: point.series,
                x: point.x,
                seed: point.seed,
                seconds: 0.5,
                result: json!({ "a": 0.25, "b": 0.5 }),
            });
        }
        (figure, results)
    }

    const ONE: &str = r#"{ protocol = "silo" }"#;
    const TWO: &str = r#"{ protocol = "silo" }, { protocol = "mvcc" }"#;

    #[test]
    fn tables_have_no_place_for_what_there_is_one_of() {
        let tables = |series: &str, xs: &str| {
            let (figure, results) = measured("table", series, xs);
            let mut page = String::new();
            values(&mut page, &figure, &results);
            page
        };
        let of_one_x = tables(TWO, r#""4""#);
        assert!(of_one_x.contains("<th>cores: 4</th><th>silo</th><th>mvcc</th>"));
        let row = "<td>lock</td><td class=\"number\">50</td><td class=\"number\">50</td>";
        assert!(of_one_x.contains(row), "{of_one_x}");
        let of_one_series = tables(ONE, r#""4", "8""#);
        assert!(of_one_series.contains("<th>cores</th><th>execute</th><th>lock</th><th>wait</th>"));
        assert_eq!(of_one_series.matches("<table>").count(), 1);
        let of_both = tables(TWO, r#""4", "8""#);
        assert_eq!(
            of_both.matches("<table>").count(),
            3,
            "one for each measure"
        );
    }

    #[test]
    fn figures_are_drawn_as_they_say() {
        let svg = |draw: &str| {
            let (figure, results) = measured(draw, TWO, r#""4", "8""#);
            draw::svg(&figure, &results).expect("it can be drawn")
        };
        assert_eq!(svg("table"), None);
        let shares = svg("shares").expect("it has a picture");
        assert!(
            shares.contains("8 cores: mvcc") && shares.contains("50 %"),
            "{shares}"
        );
        let half = shares.matches("width=\"280\"").count();
        assert_eq!(half, 4, "half of each bar is the second measure");
        let all = svg("all").expect("it has a picture");
        for label in ["execute", "lock", "wait"] {
            assert!(all.contains(label), "{label}");
        }
    }
}
