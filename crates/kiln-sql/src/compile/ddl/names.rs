//! The names that constraints and indexes get when the user gives none, as PostgreSQL makes them.

pub(super) use super::super::qualified::{is_relation, is_relation_besides};

/// The longest name in bytes.
const NAME_BYTES_MAX: usize = 63;

/// `first_second_suffix`, with the longer of the first two cut until it fits.
pub(super) fn object_name(first: &str, second: Option<&str>, suffix: &str) -> String {
    let overhead = suffix.len() + 1 + usize::from(second.is_some());
    let available = NAME_BYTES_MAX.saturating_sub(overhead);
    let (mut first_bytes, mut second_bytes) = (first.len(), second.map_or(0, str::len));
    while first_bytes + second_bytes > available {
        if first_bytes > second_bytes {
            first_bytes -= 1;
        } else {
            second_bytes -= 1;
        }
    }
    let first = &first[..first.floor_char_boundary(first_bytes)];
    match second {
        Some(second) => {
            let second = &second[..second.floor_char_boundary(second_bytes)];
            format!("{first}_{second}_{suffix}")
        }
        None => format!("{first}_{suffix}"),
    }
}

/// As [`object_name`], with the first number behind it that makes it new.
pub(super) fn choose(
    first: &str,
    second: Option<&str>,
    suffix: &str,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let mut numbered = suffix.to_owned();
    let mut number = 0;
    loop {
        let name = object_name(first, second, &numbered);
        if !is_taken(&name) {
            return name;
        }
        number += 1;
        numbered = format!("{suffix}{number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_postgresql_cuts_them() {
        assert_eq!(object_name("t", None, "pkey"), "t_pkey");
        assert_eq!(object_name("t", Some("v"), "check"), "t_v_check");
        let long = "x".repeat(60);
        let name = object_name(&long, Some("column"), "fkey");
        assert_eq!(name.len(), NAME_BYTES_MAX);
        assert!(name.ends_with("x_column_fkey"), "{name}");
        let name = object_name(&long, Some(&long), "key");
        assert_eq!(
            (name.len(), name.matches('x').count()),
            (NAME_BYTES_MAX, 58)
        );
    }

    #[test]
    fn taken_names_get_numbers() {
        let taken = ["t_v_check", "t_v_check1"];
        let name = choose("t", Some("v"), "check", |name| taken.contains(&name));
        assert_eq!(name, "t_v_check2");
    }
}
