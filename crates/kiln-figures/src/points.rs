//! The runs that a figure consists of.

use crate::description::{Extent, Figure, Panel, Series};

/// The first seed; the others follow it.
const SEED: u64 = 42;

/// A run: one protocol at one value of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The title of its picture.
    pub panel: String,
    /// The name of its series.
    pub series: String,
    /// Its value of x.
    pub x: String,
    /// What it is repeated by.
    pub seed: u64,
    /// The words behind the program's name.
    pub words: Vec<String>,
}

impl Figure {
    /// The runs, in an order that has something of each line early: seed after seed. `{x}` among
    /// the words is the value of x; `{data}` stays, until the run has a directory for its data.
    pub fn points(&self, extent: Extent, seeds: u64) -> Vec<Point> {
        let mut points = Vec::new();
        let seeds = seeds.min(self.seeds.unwrap_or(seeds));
        for seed in SEED..SEED + seeds {
            for panel in &self.panel {
                for x in self.values(extent) {
                    for series in &self.series {
                        points.push(self.point(extent, seed, panel, x, series));
                    }
                }
            }
        }
        points
    }

    /// Whether some words have the value of x in them.
    fn has_placeholder(&self) -> bool {
        let panels = self.panel.iter().map(|panel| &panel.run);
        let series = self.series.iter().map(|series| &series.run);
        let mut all = panels.chain(series).chain([&self.run]);
        all.any(|words| words.contains("{x}"))
    }

    fn point(&self, extent: Extent, seed: u64, panel: &Panel, x: &str, series: &Series) -> Point {
        let (command, machine) = match self.is_virtual() {
            true => ("sim", format!("--machine {} --jobs 1", self.machine)),
            false => ("bench", "--repeat 1".to_owned()),
        };
        let (length, of_panel, own) = match extent {
            Extent::Quick => (&self.quick, "", &series.quick),
            Extent::Full => (&self.full, panel.full.as_str(), &series.full),
        };
        let x_words = match self.x.argument.is_empty() && self.has_placeholder() {
            true => "",
            false => x,
        };
        let words = format!(
            "{command} {} {} {of_panel} {} {own} {} {x_words} {machine} {length} --protocol {} --seed {seed}",
            self.run, panel.run, series.run, self.x.argument, series.protocol,
        );
        Point {
            panel: panel.title.clone(),
            series: series.name().to_owned(),
            x: x.to_owned(),
            seed,
            words: words
                .split_whitespace()
                .map(|word| word.replace("{x}", x))
                .collect(),
        }
    }
}
