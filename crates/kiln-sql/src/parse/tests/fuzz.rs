//! Damaged statements: a seeded and bounded relative of the fuzz target.

use super::{WORKLOADS, is_inside};
use crate::parse::{is_complete, script, statement};
use kiln_platform::random::Random;

const INPUTS: usize = 20_000;

const SEEDS: &[&str] = &[
    "select a.x, count(*) from t a left join u on a.id = u.id where x in (1, 2) and y between 1 \
     and 2 group by a.x having count(*) > 1 order by 2 desc limit 10",
    "insert into t (a, b) select 1, E'x\\n' on conflict (a) do update set b = excluded.b + 1",
    "merge into only t as x using (select a, b from only (s) union table u) q (c, d) on x.a = q.c \
     when matched and d > 1 then update set b = x.b + d, (c) = (default) when matched then delete \
     when not matched and c is null then do nothing when not matched then insert (a, b) overriding \
     system value values (c, 'x')",
    "with v as (values (1), (2)) merge into t using v * on true when not matched then insert default \
     values; select j['a'][0] from t * , only u x where a is distinct from b * c; truncate only t, u *",
    "update t set a = a + 1, b = 'é' where id = $1 returning a, \"B\"",
    "create table t (id int primary key, a varchar(10) not null default 'x' check (a <> ''), b \
     numeric(12, 2) references u (b), unique (a, b))",
    "create or replace function f(a int, inout b numeric(12,2) default 1.5, c t.x%type) returns \
     record language plpgsql immutable as $x$\n<<l>> declare r record; v int[] := array[1, 2]; \
     begin select x, y into strict r from t where z = a; for i in reverse 10..1 by 2 loop v[i] := \
     case when i > 1 then 2 else 3 end; exit l when i = 3; end loop; if found then raise exception \
     'bad %', a using errcode = 'P0001'; elsif a is null then return; end if; case a when 1, 2 then \
     null; else perform f(1); end case; end l; $x$",
    "create function g(x int) returns table (a int, b text) language sql stable as 'select 1, \
     ''a'' from t where b = x; select 2'",
    "do $$ declare n int; begin foreach n in array array[1, 2] loop update t set a = n returning b \
     into n; end loop; while n < 3 loop n := n + 1; continue; end loop; get diagnostics n = \
     row_count; assert n = 1, 'no'; return; end $$",
    "call f(1, b => array[1, 2], c := null); drop function if exists f(int, out text) cascade; \
     begin; commit; rollback; /* a /* b */ c */ -- d\n explain analyze select 1;",
];

/// Characters that mean something to a scanner.
const MEANINGFUL: &[&str] = &[
    "'",
    "\"",
    "$",
    "$$",
    "$x$",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ".",
    "..",
    ":=",
    "::",
    ":",
    "--",
    "/*",
    "*/",
    "\\",
    "%",
    "E'",
    "U&'",
    "é",
    "\u{0}",
    "\u{feff}",
    "\n",
    "1e",
    "0x",
    "<<",
    ">>",
    "into",
    "end",
    "case",
    "loop",
    "begin",
    "from",
    "select",
    "%type",
    "%rowtype",
    "interval",
    "default",
    "returning",
    "as",
    "in",
    "is",
    "not",
    "{",
    "}",
    "@",
    "`",
];

fn damage(random: &mut Random, seeds: &[String], text: &str) -> String {
    match random.below(7) {
        0 => {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => text
            .chars()
            .take(random.below(text.chars().count() + 1))
            .collect(),
        2 => {
            let at = boundary(random, text);
            let piece = MEANINGFUL[random.below(MEANINGFUL.len())];
            format!("{}{piece}{}", &text[..at], &text[at..])
        }
        3 => {
            let other = &seeds[random.below(seeds.len())];
            let (at, from) = (boundary(random, text), boundary(random, other));
            format!("{}{}", &text[..at], &other[from..])
        }
        kind => {
            let mut words: Vec<&str> = text.split_inclusive(' ').collect();
            let (at, other) = (random.below(words.len()), random.below(words.len()));
            match kind {
                4 => {
                    words.remove(at);
                }
                5 => words.insert(at, words[other]),
                _ => words.swap(at, other),
            }
            words.concat()
        }
    }
}

fn boundary(random: &mut Random, text: &str) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[test]
fn damaged_statements_give_errors_with_a_place() {
    let mut seeds: Vec<String> = SEEDS.iter().map(|seed| (*seed).to_string()).collect();
    for (_, text) in WORKLOADS {
        seeds.extend(
            script(text)
                .iter()
                .map(|one| one.text.to_string())
                .filter(|one| one.len() < 4_000),
        );
    }
    let mut random = Random::from_seed(0x5eed);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..INPUTS {
        let mut text = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(3) {
            if !text.is_empty() {
                text = damage(&mut random, &seeds, &text);
            }
        }
        is_complete(&text);
        for source in script(&text) {
            match statement(&source) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    refused += 1;
                    let position = error
                        .position()
                        .unwrap_or_else(|| panic!("{error} without a place: {text}"));
                    assert!(is_inside(&text, position), "{error} is outside of: {text}");
                }
            }
        }
    }
    // Both must be common, or the damage is too small or too great to find anything.
    assert!(
        accepted > INPUTS / 20 && refused > INPUTS / 4,
        "{accepted} {refused}"
    );
}

/// Words that begin something in one place or another of the SQL parser, and so may recurse.
const WORDS: &str = "select from where group by having order limit ( ) [ ] , . - + * / = <> := :: \
    not and or is null in between like case when then else end cast as int exists any array \
    interval '1' 1 a b join left natural on using with recursive union all values insert into \
    update set delete returning create table index primary key default check references function \
    f( row filter over partition window extract year at time zone collate date trim substring \
    position overlay distinct lateral for unnest $1 || ~ % ^ # timestamp varchar numeric double \
    precision true ceil floor grouping sets rollup cube listagg within respect nulls struct map \
    begin if loop while match_recognize pivot tablesample json_table xmltable";

const PREFIXES: &[&str] = &[
    "select",
    "select * from",
    "select 1 from a where",
    "select * from a join",
    "insert into t",
    "create table t (a",
    "create index i on t (",
    "update t set a =",
    "call f(",
    "drop table",
    "do $$ begin x :=",
    "set a =",
    "with a as",
    "truncate",
    "explain",
    "values (",
    "create function f(a",
];

#[test]
fn repetition_overflows_no_stack() {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut random = Random::from_seed(0x5eed);
    let some_words = |random: &mut Random| -> String {
        (0..=random.below(3))
            .map(|_| format!(" {}", words[random.below(words.len())]))
            .collect()
    };
    for _ in 0..2_000 {
        let repeats = [10, 60, 300, 3_000][random.below(4)];
        let prefix = PREFIXES[random.below(PREFIXES.len())];
        let opening = some_words(&mut random).repeat(repeats);
        let closing = some_words(&mut random).repeat(repeats * random.below(2));
        let text = format!("{prefix}{opening} 1{closing}");
        for source in script(&text) {
            if let Err(error) = statement(&source) {
                assert!(
                    error.position().is_some(),
                    "{error} without a place: {text:.300}"
                );
            }
        }
    }
}
