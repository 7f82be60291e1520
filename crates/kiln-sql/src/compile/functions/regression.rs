//! Aggregates of pairs of numbers: how two values depend on each other.
//!
//! The pairs are collected in two arrays, and those with a NULL do not count. They are taken in one
//! after the other as PostgreSQL does (`float8_regr_accum`, after Youngs and Cramer).

use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};

use super::Named;

/// What was taken in.
#[derive(Default)]
struct Sums {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    /// Those of the pairs in two arrays, of which the first has the dependent values.
    fn of(heap: &Heap, arguments: &[Slot]) -> Result<Sums> {
        let mut sums = Sums::default();
        let [dependent, independent] = arguments else {
            return Ok(sums);
        };
        if dependent.is_null() || independent.is_null() {
            return Ok(sums);
        }
        let pairs = heap.array(*dependent).iter().zip(heap.array(*independent));
        for (y, x) in pairs {
            if !y.is_null() && !x.is_null() {
                sums.add(y.as_f64(), x.as_f64())?;
            }
        }
        Ok(sums)
    }

    fn add(&mut self, y: f64, x: f64) -> Result<()> {
        let before = self.count;
        self.count += 1.0;
        let was_finite = self.x.is_finite() && self.y.is_finite();
        self.x += x;
        self.y += y;
        if before == 0.0 {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (beyond_x, beyond_y) = (x * self.count - self.x, y * self.count - self.y);
        let scale = 1.0 / (self.count * before);
        self.xx += beyond_x * beyond_x * scale;
        self.yy += beyond_y * beyond_y * scale;
        self.xy += beyond_x * beyond_y * scale;
        let all = [self.x, self.y, self.xx, self.yy, self.xy];
        if all.iter().any(|sum| sum.is_infinite()) {
            if was_finite && x.is_finite() && y.is_finite() {
                let message = "value out of range: overflow";
                return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
            }
            for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        }
        Ok(())
    }
}

/// NULL of fewer pairs than so many.
fn of_pairs(sums: &Sums, fewest: f64, value: f64) -> Option<f64> {
    (sums.count >= fewest).then_some(value)
}

macro_rules! aggregates {
    ($($function:ident $name:literal |$sums:ident| $value:expr;)+) => {
        $(fn $function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
            let $sums = &Sums::of(heap, arguments)?;
            let value: Option<f64> = $value;
            Ok(value.map_or(Slot::NULL, Slot::from_f64))
        })+

        /// The aggregate of this name over DOUBLE PRECISIONs, which gives one.
        pub(in super::super) fn aggregate(name: &str) -> Option<Named> {
            match name {
                $($name => Some(($name, $function as ScalarFunction)),)+
                _ => None,
            }
        }
    };
}

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

/// `regr_count`, which gives a BIGINT.
pub(in super::super) const COUNT: Named = ("regr_count", |heap, arguments| {
    let sums = Sums::of(heap, arguments)?;
    Ok(Slot::from_i64(sums.count as i64))
});
