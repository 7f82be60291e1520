//! What a protocol looks like: the same in all pictures.
//!
//! Colours that are told apart by readers with each kind of colour-blindness (M. Okabe and K. Ito,
//! Color Universal Design, 2008), on white and on black; protocols of a family share one, and
//! differ in their marks; families that no paper compares may share one, too. Options make the line
//! dashed.

use plotters::style::RGBColor;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub colour: RGBColor,
    pub mark: Mark,
    pub is_dashed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Disc,
    Ring,
    Square,
    Triangle,
    Cross,
    Diamond,
}

const ORANGE: RGBColor = RGBColor(230, 159, 0);
const SKY: RGBColor = RGBColor(86, 180, 233);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const BLUE: RGBColor = RGBColor(45, 125, 190);
const RED: RGBColor = RGBColor(213, 94, 0);
const PURPLE: RGBColor = RGBColor(204, 121, 167);
const GREY: RGBColor = RGBColor(136, 136, 136);

/// The first that a protocol's name begins with.
const LOOKS: [(&str, RGBColor, Mark); 32] = [
    ("serial", GREY, Mark::Square),
    ("none", GREY, Mark::Cross),
    ("silo-unchecked", GREY, Mark::Ring),
    ("occ-unchecked", GREY, Mark::Triangle),
    ("silo", SKY, Mark::Disc),
    ("occ", BLUE, Mark::Ring),
    ("healing", RED, Mark::Disc),
    ("tictoc", GREEN, Mark::Diamond),
    ("hybrid", BLUE, Mark::Cross),
    ("mocc", SKY, Mark::Diamond),
    ("mvcc", PURPLE, Mark::Disc),
    ("2pl-no-wait", ORANGE, Mark::Disc),
    ("2pl-wait-die", ORANGE, Mark::Square),
    ("2pl-wait-for-graph", ORANGE, Mark::Triangle),
    ("2pl-dreadlocks", ORANGE, Mark::Diamond),
    ("lock-sorted", BLUE, Mark::Disc),
    ("split-lock-sorted", BLUE, Mark::Ring),
    ("lock-atomic", BLUE, Mark::Square),
    ("pre-no-wait", BLUE, Mark::Triangle),
    ("vll-single", GREEN, Mark::Cross),
    ("vll-sca", GREEN, Mark::Ring),
    ("vll-arrayed", GREEN, Mark::Square),
    ("vllr-sca", GREEN, Mark::Diamond),
    ("vllr", GREEN, Mark::Triangle),
    ("vll", GREEN, Mark::Disc),
    ("orthrus-shared", RED, Mark::Square),
    ("split-orthrus", RED, Mark::Ring),
    ("orthrus", RED, Mark::Triangle),
    ("partitioned", PURPLE, Mark::Square),
    ("dora", PURPLE, Mark::Triangle),
    ("strife", GREEN, Mark::Diamond),
    ("range", ORANGE, Mark::Ring),
];

/// Parts of a bar, in their order.
pub(crate) const PARTS: [RGBColor; 7] = [BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GREY];

/// How a protocol is drawn, the `repeated`-th time in one picture.
pub(crate) fn look(protocol: &str, repeated: usize) -> Look {
    let found = LOOKS.iter().find(|(name, ..)| protocol.starts_with(name));
    let (_, colour, mark) = found.copied().unwrap_or(("", GREY, Mark::Diamond));
    const MARKS: [Mark; 6] = [
        Mark::Disc,
        Mark::Ring,
        Mark::Square,
        Mark::Triangle,
        Mark::Cross,
        Mark::Diamond,
    ];
    let first = MARKS.iter().position(|it| *it == mark).unwrap_or(0);
    Look {
        colour,
        mark: MARKS[(first + repeated) % MARKS.len()],
        is_dashed: protocol.contains('+') && !protocol.ends_with("+table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_are_told_apart() {
        for (position, part) in PARTS.iter().enumerate() {
            assert!(!PARTS[..position].contains(part), "{part:?} is there twice");
        }
    }
}
