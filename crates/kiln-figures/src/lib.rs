//! The papers' figures: what each measures and claims, and how it is drawn again.
//!
//! A figure is a description in `figures/`, one TOML file each: its paper and number, the workload
//! with its options, the machine (a preset of virtual cores, or the one at hand), the protocols,
//! the axes, and what the paper claims as checks that can be evaluated. [`Figure::all`] has them;
//! [`Figure::points`] are the runs of `kiln bench` and `kiln sim` that one consists of. [`Runner`]
//! makes them and keeps their rows in [`Results`]; [`draw`] makes a picture of these, [`claim`]
//! judges the claims, and [`page`] puts all together.

pub mod claim;
mod description;
pub mod draw;
pub mod page;
mod palette;
mod points;
mod results;
mod runner;

pub use description::{Axis, Claim, Drawing, Extent, Figure, Measure, Panel, Paper, Series};
pub use points::Point;
pub use results::{Difference, Results, Row, Summary};
pub use runner::{Programs, Runner};
