//! Aggregates of pairs of numbers: how two values depend on each other.
//!
//! What is accumulated of the pairs: how many there are, the sums of both parts, and the products of
//! their deviations from the means ([`SPREAD_OF_PAIRS`](super::statistics::SPREAD_OF_PAIRS)).

use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Slot};

use super::Named;

/// What was accumulated, the independent values as `x`.
struct Sums {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    fn of(arguments: &[Slot]) -> Option<Sums> {
        let [y, count, x, xx, yy, xy] = arguments else {
            return None;
        };
        Some(Sums {
            count: count.as_i64() as f64,
            x: x.as_f64(),
            y: y.as_f64(),
            xx: xx.as_f64(),
            yy: yy.as_f64(),
            xy: xy.as_f64(),
        })
    }
}

/// NULL of fewer pairs than so many.
fn of_pairs(sums: &Sums, fewest: f64, value: f64) -> Option<f64> {
    (sums.count >= fewest).then_some(value)
}

macro_rules! aggregates {
    ($($function:ident $name:literal |$sums:ident| $value:expr;)+) => {
        $(fn $function(_: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
            let Some($sums) = &Sums::of(arguments) else {
                return Ok(Slot::NULL);
            };
            let value: Option<f64> = $value;
            Ok(value.map_or(Slot::NULL, Slot::from_f64))
        })+

        /// The aggregate of this name over DOUBLE PRECISIONs, which gives one, or the number of
        /// pairs.
        pub(in super::super) fn aggregate(name: &str) -> Option<Named> {
            match name {
                $($name => Some(($name, $function as ScalarFunction)),)+
                _ => None,
            }
        }
    };
}

/// The aggregate that gives the number of pairs, a BIGINT.
pub(in super::super) const COUNT: &str = "regr_count";

aggregates! {
    covar_pop "covar_pop" |s| of_pairs(s, 1.0, s.xy / s.count);
    covar_samp "covar_samp" |s| of_pairs(s, 2.0, s.xy / (s.count - 1.0));
    corr "corr" |s| match s.xx == 0.0 || s.yy == 0.0 {
        true => None,
        false => of_pairs(s, 1.0, s.xy / (s.xx * s.yy).sqrt()),
    };
    regr_r2 "regr_r2" |s| match (s.xx == 0.0, s.yy == 0.0) {
        (true, _) => None,
        (_, true) => of_pairs(s, 1.0, 1.0),
        _ => of_pairs(s, 1.0, (s.xy * s.xy) / (s.xx * s.yy)),
    };
    regr_slope "regr_slope" |s| match s.xx == 0.0 {
        true => None,
        false => of_pairs(s, 1.0, s.xy / s.xx),
    };
    regr_intercept "regr_intercept" |s| match s.xx == 0.0 {
        true => None,
        false => of_pairs(s, 1.0, (s.y - s.x * s.xy / s.xx) / s.count),
    };
    regr_avgx "regr_avgx" |s| of_pairs(s, 1.0, s.x / s.count);
    regr_avgy "regr_avgy" |s| of_pairs(s, 1.0, s.y / s.count);
    regr_sxx "regr_sxx" |s| of_pairs(s, 1.0, s.xx);
    regr_syy "regr_syy" |s| of_pairs(s, 1.0, s.yy);
    regr_sxy "regr_sxy" |s| of_pairs(s, 1.0, s.xy);
}
