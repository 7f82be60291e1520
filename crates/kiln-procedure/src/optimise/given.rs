//! Numbers the scans whose ranges arguments alone decide: one that asks for the range of another
//! one has its number.

use crate::ir::*;
use crate::names::for_each_step;
use crate::procedure::Procedure;

/// Scans that get different numbers at most.
const SCANS_MAX: usize = 16;

/// A range that arguments decide, and from which end it is read.
type GivenRange = (TableRef, u16, Range, bool);

/// Numbers the scans whose ranges arguments alone decide.
pub fn number_scans(procedure: &mut Procedure) {
    let is_given = |register: Reg| procedure.is_given(register);
    let mut ranges: Vec<GivenRange> = Vec::new();
    let mut given = Vec::new();
    for_each_step(&procedure.body, &mut |step| {
        let Step::Scan {
            op,
            table,
            index,
            range,
            reverse,
            ..
        } = step
        else {
            return;
        };
        let bounds = range.lower.iter().chain(&range.upper);
        let mut registers = (range.prefix.iter().copied()).chain(bounds.map(|bound| bound.value));
        if !registers.all(is_given) {
            return;
        }
        let one = (*table, *index, (**range).clone(), *reverse);
        let number = match ranges.iter().position(|known| *known == one) {
            Some(number) => number,
            None if ranges.len() < SCANS_MAX => {
                ranges.push(one);
                ranges.len() - 1
            }
            None => return,
        };
        given.push((*op, number as u16));
    });
    procedure.given_scans = given;
}
