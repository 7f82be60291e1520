//! Bars that are divided: where the time of each protocol goes.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, FONT, Failure, INK, LEGEND_WIDTH};
use crate::description::{Figure, Panel};
use crate::palette::PARTS;
use crate::results::Results;

const NAME_WIDTH: i32 = 240;
const BAR_WIDTH: i32 = 560;
const BAR: i32 = 18;
const STEP: i32 = 26;
/// Above the first bar of a picture, and below the last one.
const MARGIN: i32 = 34;

/// One picture below the other, each with a bar for each value of x and series.
pub(super) fn draw(figure: &Figure, results: &Results, text: &mut String) -> Result<(), Failure> {
    let bars = (figure.values(results.extent).len() * figure.series.len()) as i32;
    let picture = MARGIN * 2 + STEP * bars;
    let height = (picture * figure.panel.len() as i32).max(MARGIN + STEP * PARTS.len() as i32);
    let width = NAME_WIDTH + BAR_WIDTH + 20 + LEGEND_WIDTH as i32;
    let root = SVGBackend::with_string(text, (width as u32, height as u32)).into_drawing_area();
    for (position, panel) in figure.panel.iter().enumerate() {
        draw_panel(figure, results, panel, picture * position as i32, &root)?;
    }
    for (position, measure) in figure.measure.iter().enumerate() {
        let (x, y) = (NAME_WIDTH + BAR_WIDTH + 24, MARGIN + STEP * position as i32);
        let part = [(x, y), (x + 14, y + 14)];
        root.draw(&Rectangle::new(
            part,
            PARTS[position % PARTS.len()].filled(),
        ))?;
        write(&measure.label, (x + 20, y + 7), HPos::Left, &root)?;
    }
    root.present()
}

fn draw_panel(
    figure: &Figure,
    results: &Results,
    panel: &Panel,
    top: i32,
    area: &Area<'_>,
) -> Result<(), Failure> {
    let middle = NAME_WIDTH + BAR_WIDTH / 2;
    write(&panel.title, (middle, top + 18), HPos::Center, area)?;
    let mut y = top + MARGIN;
    for x in figure.values(results.extent) {
        for series in &figure.series {
            let name = format!("{} {}: {}", figure.x.name(x), figure.x.label, series.name());
            write(&name, (NAME_WIDTH - 8, y + BAR / 2), HPos::Right, area)?;
            let mut from = 0.0;
            for (measure, colour) in (0..figure.measure.len()).zip(PARTS.iter().cycle()) {
                let summary = results.summary(figure, &panel.title, series.name(), x, measure);
                let to = from + summary.map_or(0.0, |summary| summary.median);
                let corners = [(place(from), y), (place(to), y + BAR)];
                area.draw(&Rectangle::new(corners, colour.filled()))?;
                from = to;
            }
            y += STEP;
        }
    }
    for percent in [0, 25, 50, 75, 100] {
        let x = place(f64::from(percent));
        let line = vec![(x, top + MARGIN - 4), (x, y)];
        area.draw(&PathElement::new(line, INK.mix(0.3).stroke_width(1)))?;
        write(&format!("{percent} %"), (x, y + 10), HPos::Center, area)?;
    }
    Ok(())
}

/// Where a percentage is.
fn place(percent: f64) -> i32 {
    NAME_WIDTH + (percent.clamp(0.0, 100.0) / 100.0 * f64::from(BAR_WIDTH)) as i32
}

fn write(text: &str, at: (i32, i32), side: HPos, area: &Area<'_>) -> Result<(), Failure> {
    let style = (FONT, 12).into_font().color(&INK);
    let style = style.pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))
}
