//! Segments: the files of the log, named by their numbers.

const SUFFIX: &str = ".log";
const DIGITS: usize = 20;

/// The name of the segment with this number: twenty decimal digits and `.log`.
pub fn segment_name(number: u64) -> String {
    format!("{number:0DIGITS$}{SUFFIX}")
}

/// The number of the segment with this name; `None` for the name of something else.
pub fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        for number in [0, 1, 4_711, u64::MAX] {
            assert_eq!(segment_number(&segment_name(number)), Some(number));
        }
        for other in [
            "1.log",
            "99999999999999999999.log",
            "0000000000000000000a.log",
            "MANIFEST",
        ] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
