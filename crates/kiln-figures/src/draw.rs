//! Pictures of results, as SVG that is read on white and on black.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::description::{Drawing, Figure, Panel};
use crate::palette::{Look, Mark, look};
use crate::results::{Results, Summary};

mod bars;

/// Text and axes, which take the colour of the page: no other thing has this one.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_WRITTEN: &str = "#010203";
/// The size of a picture, in pixels.
const PANEL: (u32, u32) = (400, 290);
const LEGEND_WIDTH: u32 = 190;
const PANELS_A_ROW: usize = 3;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure = DrawingAreaErrorKind<std::io::Error>;

/// The picture of a figure; `None` of a table, or when nothing was measured.
///
/// # Errors
/// What the drawing library says.
pub fn svg(figure: &Figure, results: &Results) -> Result<Option<String>, String> {
    if figure.is_table() || results.rows.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw(figure, results, &mut text)
        .map_err(|error| format!("{} cannot be drawn: {error}", figure.name()))?;
    let text = text.replace(INK_WRITTEN, "currentColor");
    // Alone in a file it follows what the reader's programs are set to.
    let style =
        "<style>svg{color:#1b1b1b}@media (prefers-color-scheme:dark){svg{color:#e6e6e6}}</style>";
    Ok(Some(match text.find('>') {
        Some(end) => format!("{}{style}{}", &text[..=end], &text[end + 1..]),
        None => text,
    }))
}

/// What a series looks like in this figure.
struct Line<'a> {
    name: &'a str,
    look: Look,
}

fn lines(figure: &Figure) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for series in &figure.series {
        let first = look(&series.protocol, 0);
        let alike = |line: &&Line<'_>| {
            let Look {
                colour, is_dashed, ..
            } = line.look;
            (colour, is_dashed) == (first.colour, first.is_dashed)
        };
        // The first place for a mark that nothing of this colour has yet.
        let free = (0..6).find(|repeated| {
            let mark = look(&series.protocol, *repeated).mark;
            !lines
                .iter()
                .filter(alike)
                .any(|line| line.look.mark == mark)
        });
        lines.push(Line {
            name: series.name(),
            look: look(&series.protocol, free.unwrap_or(0)),
        });
    }
    lines
}

fn draw(figure: &Figure, results: &Results, text: &mut String) -> Result<(), Failure> {
    if figure.draw == Drawing::Shares {
        return bars::draw(figure, results, text);
    }
    let lines = lines(figure);
    let measures = match figure.draw {
        Drawing::All => figure.measure.len(),
        _ => 1,
    };
    let pictures =
        (0..measures).flat_map(|measure| figure.panel.iter().map(move |it| (it, measure)));
    let count = figure.panel.len() * measures;
    let columns = count.min(PANELS_A_ROW);
    let rows = count.div_ceil(columns);
    let size = (
        PANEL.0 * columns as u32 + LEGEND_WIDTH,
        PANEL.1 * rows as u32,
    );
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    let (charts, legend) = root.split_horizontally(size.0 - LEGEND_WIDTH);
    let areas = charts.split_evenly((rows, columns));
    for ((panel, measure), area) in pictures.zip(&areas) {
        draw_panel(figure, results, (panel, measure), &lines, area)?;
    }
    draw_legend(&lines, &legend)?;
    root.present()
}

/// Where the values of x are on the axis: numbers at their place, also falling ones, and names, or
/// numbers in another order, one after the other.
fn positions(figure: &Figure, values: &[String]) -> Vec<f64> {
    let names = values.iter().map(|value| figure.x.name(value));
    let numbers: Option<Vec<f64>> = names.map(|name| name.parse().ok()).collect();
    let scaled = |number: f64| match figure.x.logarithmic {
        true => number.max(1e-9).log2(),
        false => number,
    };
    match numbers {
        Some(numbers) if numbers.is_sorted() => numbers.into_iter().map(scaled).collect(),
        Some(numbers) if numbers.is_sorted_by(|one, other| one >= other) => {
            numbers.into_iter().map(|it| -scaled(it)).collect()
        }
        _ => (0..values.len()).map(|position| position as f64).collect(),
    }
}

fn draw_panel(
    figure: &Figure,
    results: &Results,
    (panel, measure): (&Panel, usize),
    lines: &[Line<'_>],
    area: &Area<'_>,
) -> Result<(), Failure> {
    let values = figure.values(results.extent);
    let positions = positions(figure, values);
    let of = |name: &str| -> Vec<(f64, Summary)> {
        let points = positions.iter().zip(values).filter_map(|(position, x)| {
            let summary = results.summary(figure, &panel.title, name, x, measure)?;
            Some((*position, summary))
        });
        points.collect()
    };
    let measured: Vec<Vec<(f64, Summary)>> = lines.iter().map(|line| of(line.name)).collect();
    let most = measured.iter().flatten().map(|(_, summary)| summary.most);
    let most = most.fold(0.0, f64::max).max(1e-9) * 1.06;
    let first = positions.iter().copied().fold(f64::INFINITY, f64::min);
    let last = positions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let margin = ((last - first) * 0.05).max(0.25 * f64::from(u8::from(first == last)));
    let small = (FONT, 12).into_font().color(&INK);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_bottom(38)
        .caption(&panel.title, (FONT, 14).into_font().color(&INK))
        .y_label_area_size(58)
        .build_cartesian_2d(first - margin..last + margin, 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.mix(0.15))
        .axis_style(INK.mix(0.6))
        .y_labels(6)
        .y_label_style(small.clone())
        .y_label_formatter(&|value| amount(*value))
        .y_desc(&figure.measure[measure].label)
        .axis_desc_style((FONT, 12).into_font().color(&INK))
        .draw()?;
    draw_x_axis(figure, area, values, &positions, &|position| {
        chart.backend_coord(&(position, 0.0))
    })?;
    for (line, points) in lines.iter().zip(&measured) {
        let stroke = line.look.colour.stroke_width(2);
        let path = points.iter().map(|(x, summary)| (*x, summary.median));
        match line.look.is_dashed {
            true => chart.draw_series(DashedLineSeries::new(path, 6, 4, stroke))?,
            false => chart.draw_series(LineSeries::new(path, stroke))?,
        };
        let spread = points.iter().filter(|(_, summary)| summary.runs > 1);
        chart.draw_series(spread.map(|(x, summary)| {
            PathElement::new(
                vec![(*x, summary.least), (*x, summary.most)],
                line.look.colour.stroke_width(1),
            )
        }))?;
        for (x, summary) in points {
            let at = chart.backend_coord(&(*x, summary.median));
            draw_mark(line.look, at, area)?;
        }
    }
    Ok(())
}

/// Values and label of the axis below a picture. Values that would touch the one before are left
/// out.
fn draw_x_axis(
    figure: &Figure,
    area: &Area<'_>,
    values: &[String],
    positions: &[f64],
    place: &dyn Fn(f64) -> (i32, i32),
) -> Result<(), Failure> {
    let base = area.get_base_pixel();
    let centred = |size: u32| {
        let style = (FONT, size).into_font().color(&INK);
        style.pos(Pos::new(HPos::Center, VPos::Top))
    };
    let mut free_from = i32::MIN;
    let (mut bottom, mut middle) = (0, Vec::new());
    for (value, position) in values.iter().zip(positions) {
        let (x, y) = place(*position);
        let (x, y) = (x - base.0, y - base.1);
        bottom = y;
        middle.push(x);
        area.draw(&PathElement::new(
            vec![(x, y), (x, y + 4)],
            INK.mix(0.6).stroke_width(1),
        ))?;
        let name = figure.x.name(value);
        let half = 4 * name.chars().count() as i32;
        if x - half >= free_from {
            area.draw(&Text::new(name.to_owned(), (x, y + 6), centred(12)))?;
            free_from = x + half + 4;
        }
    }
    let (least, most) = (middle.iter().min(), middle.iter().max());
    let middle = (least.unwrap_or(&0) + most.unwrap_or(&0)) / 2;
    let label = figure.x.label.clone();
    area.draw(&Text::new(label, (middle, bottom + 21), centred(12)))
}

fn draw_legend(lines: &[Line<'_>], area: &Area<'_>) -> Result<(), Failure> {
    let base = area.get_base_pixel();
    let style = (FONT, 12).into_font().color(&INK);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    for (position, line) in lines.iter().enumerate() {
        let y = 30 + 19 * position as i32;
        let stroke = line.look.colour.stroke_width(2);
        let parts: &[(i32, i32)] = match line.look.is_dashed {
            true => &[(4, 10), (14, 20), (24, 30)],
            false => &[(4, 30)],
        };
        for (from, to) in parts {
            area.draw(&PathElement::new(vec![(*from, y), (*to, y)], stroke))?;
        }
        draw_mark(line.look, (17 + base.0, y + base.1), area)?;
        area.draw(&Text::new(line.name.to_owned(), (36, y), style.clone()))?;
    }
    Ok(())
}

/// A mark at a place of the whole picture.
fn draw_mark(look: Look, (x, y): (i32, i32), area: &Area<'_>) -> Result<(), Failure> {
    let base = area.get_base_pixel();
    let (x, y) = (x - base.0, y - base.1);
    let (full, thin) = (look.colour.filled(), look.colour.stroke_width(2));
    match look.mark {
        Mark::Disc => area.draw(&Circle::new((x, y), 4, full)),
        Mark::Ring => area.draw(&Circle::new((x, y), 4, thin)),
        Mark::Square => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], full)),
        Mark::Triangle => area.draw(&TriangleMarker::new((x, y), 6, full)),
        Mark::Cross => area.draw(&Cross::new((x, y), 4, thin)),
        Mark::Diamond => {
            let corners = vec![(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)];
            area.draw(&Polygon::new(corners, full))
        }
    }
}

/// A number with as many digits as tell it from its neighbours.
pub(crate) fn amount(value: f64) -> String {
    let size = value.abs();
    let (value, unit) = match size {
        _ if size >= 1e7 => (value / 1e6, " M"),
        _ if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_goes_as_its_values_do() {
        let of = |name: &str, values: &[&str]| {
            let figure = Figure::named(name).expect("it is there");
            let values: Vec<String> = values.iter().map(|it| (*it).to_owned()).collect();
            positions(&figure, &values)
        };
        assert_eq!(of("orthrus-9", &["10", "40", "80"]), [10.0, 40.0, 80.0]);
        assert_eq!(of("orthrus-4", &["8192", "64"]), [-13.0, -6.0]);
        let partitions = ["0.5", "2.5", "4.5", "6.5"];
        assert_eq!(
            of("strife-8d", &partitions),
            [0.0, 1.0, 2.0, 3.0],
            "30, 17, 1, 28"
        );
    }

    #[test]
    fn amounts_are_short() {
        let amounts = [
            (0.0, "0"),
            (0.0614, "0.061"),
            (2.5, "2.5"),
            (12.0, "12"),
            (9_999.0, "9999"),
            (125_000.0, "125 k"),
            (37_600_000.0, "37.6 M"),
        ];
        for (value, text) in amounts {
            assert_eq!(amount(value), text);
        }
    }
}
