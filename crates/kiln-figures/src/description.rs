//! Descriptions of figures.

use serde::{Deserialize, Serialize};

use crate::claim::Check;

/// A paper, by what it describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Ren, Faleiro, Abadi: Design Principles for Scaling Multi-core OLTP Under High Contention
    /// (SIGMOD 2016)
    Orthrus,
    /// Ren, Thomson, Abadi: VLL: a lock manager redesign for main memory database systems (VLDB
    /// Journal 2015)
    Vll,
    /// Huang, Qian, Kohler, Liskov, Shrira: Opportunities for Optimism in Contended Main-Memory
    /// Multicore Transactions (VLDB 2020)
    Sto,
    /// Prasaad, Cheung, Suciu: Handling Highly Contended OLTP Workloads Using Fast Dynamic
    /// Partitioning (SIGMOD 2020)
    Strife,
    /// Wu, Chan, Tan: Transaction Healing: Scaling Optimistic Concurrency Control on Multicores
    /// (SIGMOD 2016)
    Healing,
}

impl Paper {
    /// All of them.
    pub const ALL: [Paper; 5] = [
        Paper::Orthrus,
        Paper::Vll,
        Paper::Sto,
        Paper::Strife,
        Paper::Healing,
    ];

    /// Its name in figures' names.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Orthrus => "orthrus",
            Paper::Vll => "vll",
            Paper::Sto => "sto",
            Paper::Strife => "strife",
            Paper::Healing => "healing",
        }
    }

    /// Its title and where it appeared.
    pub const fn title(self) -> &'static str {
        match self {
            Paper::Orthrus => {
                "Design Principles for Scaling Multi-core OLTP Under High Contention (SIGMOD 2016)"
            }
            Paper::Vll => {
                "VLL: a lock manager redesign for main memory database systems (VLDB Journal 2015)"
            }
            Paper::Sto => {
                "Opportunities for Optimism in Contended Main-Memory Multicore Transactions (VLDB 2020)"
            }
            Paper::Strife => {
                "Handling Highly Contended OLTP Workloads Using Fast Dynamic Partitioning (SIGMOD 2020)"
            }
            Paper::Healing => {
                "Transaction Healing: Scaling Optimistic Concurrency Control on Multicores (SIGMOD 2016)"
            }
        }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Each point once, for a short time, at some values of x.
    Quick,
    /// All points with several seeds.
    Full,
}

impl Extent {
    /// With how many seeds each point is measured, unless the user says otherwise.
    pub const fn seeds(self) -> u64 {
        match self {
            Extent::Quick => 1,
            Extent::Full => 3,
        }
    }
}

/// A figure or table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The paper.
    pub paper: Paper,
    /// Its number there: `9`, `8a`, `table-4`.
    pub number: String,
    /// What it shows, in a line.
    pub title: String,
    /// What differs from the paper's set-up, and why, if something does.
    #[serde(default)]
    pub set_up: String,
    /// The machine: a preset of virtual cores, or `here` for the threads of this one.
    pub machine: String,
    /// The workload and its options, as words behind `kiln sim` or `kiln bench`.
    pub run: String,
    /// How long a full run measures.
    pub full: String,
    /// How long a quick one does.
    pub quick: String,
    /// What changes from point to point.
    pub x: Axis,
    /// What is measured; tables show all.
    pub measure: Vec<Measure>,
    /// How it is drawn.
    #[serde(default)]
    pub draw: Drawing,
    /// With how many seeds each point is measured at most, where its x means another thing with
    /// another seed.
    #[serde(default)]
    pub seeds: Option<u64>,
    /// What is compared.
    pub series: Vec<Series>,
    /// Several pictures side by side; one without a title if there are none.
    #[serde(default = "one_panel")]
    pub panel: Vec<Panel>,
    /// What the paper says of it.
    #[serde(default)]
    pub claim: Vec<Claim>,
}

fn one_panel() -> Vec<Panel> {
    vec![Panel::default()]
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    /// The first measure along x, a line for each series.
    #[default]
    Lines,
    /// All measures so, a picture for each.
    All,
    /// The measures as parts of a bar, one for each x and series.
    Shares,
    /// Not at all: the paper has numbers as well.
    Table,
}

/// The horizontal axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What stands below it.
    pub label: String,
    /// The option that has the values. Where it is empty the values are words themselves, unless
    /// `{x}` among other words stands for them.
    #[serde(default)]
    pub argument: String,
    /// Its values.
    pub values: Vec<String>,
    /// Those of a quick run; all if there are none.
    #[serde(default)]
    pub quick: Vec<String>,
    /// Whether each value is twice or ten times the last one, so that equal steps are equal
    /// factors.
    #[serde(default)]
    pub logarithmic: bool,
    /// What stands at the values, and in claims, instead of them.
    #[serde(default)]
    pub names: Vec<String>,
}

impl Axis {
    /// What stands at a value.
    pub fn name<'a>(&'a self, value: &'a str) -> &'a str {
        let position = self.values.iter().position(|other| other == value);
        let name = position.and_then(|position| self.names.get(position));
        name.map_or(value, String::as_str)
    }

    /// The value that has this name.
    pub fn value<'a>(&'a self, name: &str) -> Option<&'a String> {
        self.values.iter().find(|value| self.name(value) == name)
    }
}

/// What is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What it is, with its unit.
    pub label: String,
    /// Where it is in a row, as a JSON pointer; several, separated by spaces, are added.
    pub value: String,
    /// What it is divided by.
    #[serde(default = "one")]
    pub per: f64,
    /// Whether that is divided by it instead, as time is by a rate.
    #[serde(default)]
    pub inverse: bool,
}

fn one() -> f64 {
    1.0
}

/// A line of the picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The protocol, with its options behind `+`.
    pub protocol: String,
    /// What the legend calls it; the protocol if it is empty.
    #[serde(default)]
    pub name: String,
    /// Words of its own.
    #[serde(default)]
    pub run: String,
    /// Words of its own in full runs.
    #[serde(default)]
    pub full: String,
    /// Words of its own in quick ones.
    #[serde(default)]
    pub quick: String,
    /// Whether its audits may fail, as it gives up serializability.
    #[serde(default)]
    pub is_unsafe: bool,
}

impl Series {
    /// What the legend and the claims call it.
    pub fn name(&self) -> &str {
        match self.name.is_empty() {
            true => &self.protocol,
            false => &self.name,
        }
    }
}

/// One of several pictures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// What stands above it; claims call it so.
    #[serde(default)]
    pub title: String,
    /// Words of its own.
    #[serde(default)]
    pub run: String,
    /// Words of its own in full runs.
    #[serde(default)]
    pub full: String,
}

/// What the paper says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In a sentence.
    pub says: String,
    /// The same as a check; see [`claim`](crate::claim).
    pub check: String,
    /// Why it is otherwise here, where it is.
    #[serde(default)]
    pub differs: String,
}

/// The descriptions, in the order of the papers.
const SOURCES: &[&str] = &include!("sources.rs");

impl Figure {
    /// The values of x that are measured.
    pub fn values(&self, extent: Extent) -> &[String] {
        match extent {
            Extent::Quick if !self.x.quick.is_empty() => &self.x.quick,
            _ => &self.x.values,
        }
    }

    /// All figures, in the order of the papers.
    ///
    /// # Panics
    /// Never: the descriptions are read by tests.
    pub fn all() -> Vec<Figure> {
        let read = |text: &&str| Figure::read(text).expect("the descriptions are sound");
        SOURCES.iter().map(read).collect()
    }

    /// The figure of that name.
    pub fn named(name: &str) -> Option<Figure> {
        Figure::all().into_iter().find(|it| it.name() == name)
    }

    /// Its name: paper and number, `orthrus-9`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.paper.name(), self.number)
    }

    /// What the paper calls it: `Figure 9`, `Table 4`.
    pub fn caption(&self) -> String {
        match self.number.strip_prefix("table-") {
            Some(number) => format!("Table {number}"),
            None => format!("Figure {}", self.number),
        }
    }

    /// Whether it runs on virtual cores.
    pub fn is_virtual(&self) -> bool {
        self.machine != "here"
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        self.number.starts_with("table-") || self.draw == Drawing::Table
    }

    /// Reads a description.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn read(text: &str) -> Result<Figure, String> {
        let figure: Figure = toml::from_str(text).map_err(|error| error.to_string())?;
        figure.verify()?;
        Ok(figure)
    }

    /// Checks that the parts fit together: what a claim names is measured, also in quick runs.
    fn verify(&self) -> Result<(), String> {
        let name = self.name();
        let wrong = |what: String| Err(format!("{name}: {what}"));
        if self.series.is_empty() || self.measure.is_empty() || self.x.values.is_empty() {
            return wrong("it has no series, no measure or no values of x".to_owned());
        }
        if !self.x.names.is_empty() && self.x.names.len() != self.x.values.len() {
            return wrong("there are not as many names as values of x".to_owned());
        }
        for value in &self.x.quick {
            if !self.x.values.contains(value) {
                return wrong(format!("x has no value {value} for a quick run"));
            }
        }
        for claim in &self.claim {
            let check = Check::read(&claim.check).map_err(|error| format!("{name}: {error}"))?;
            for reference in check.references() {
                let panel = self.panel.iter().any(|it| it.title == reference.panel);
                let series = self.series.iter().any(|it| it.name() == reference.series);
                let quick = self.values(Extent::Quick);
                let is_at = |name: &String| self.x.value(name).is_some_and(|it| quick.contains(it));
                let x = reference.x.as_ref().is_none_or(is_at);
                if !panel || !series || !x || reference.measure >= self.measure.len() {
                    return wrong(format!("nothing is measured that is {reference}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kiln_platform::file;

    use super::*;

    #[test]
    fn descriptions_are_sound_and_all_of_them_are_known() {
        for source in SOURCES {
            if let Err(error) = Figure::read(source) {
                panic!("{error}\n{source}");
            }
        }
        let mut names: Vec<String> = Figure::all().iter().map(Figure::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SOURCES.len(), "two have one name");
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
        let files = file::list(&directory).expect("it is there");
        assert_eq!(files.len(), SOURCES.len(), "sources.rs names all files");
        for path in files {
            let text = file::read_to_string(&path).expect("it can be read");
            let figure = Figure::read(&text).expect("it is sound");
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            assert_eq!(stem, Some(figure.name().as_str()));
        }
    }

    #[test]
    fn mistakes_are_named() {
        let sound = SOURCES[0];
        let refused = |text: &str| Figure::read(text).expect_err("it has a mistake");
        let unknown = format!("colour = 3\n{sound}");
        assert!(refused(&unknown).contains("colour"));
        let claim = format!("{sound}\n[[claim]]\nsays = \"\"\ncheck = \"[nobody] > 1\"\n");
        assert!(refused(&claim).contains("nobody"), "{}", refused(&claim));
        let claim = format!("{sound}\n[[claim]]\nsays = \"\"\ncheck = \"[2pl-wait-die]#9 > 1\"\n");
        assert!(
            refused(&claim).contains("2pl-wait-die"),
            "{}",
            refused(&claim)
        );
        let claim = format!("{sound}\n[[claim]]\nsays = \"\"\ncheck = \"1 ! 2\"\n");
        assert!(refused(&claim).contains('!'), "{}", refused(&claim));
    }
}
