//! GROUPING SETS, ROLLUP and CUBE.
//!
//! A query that groups in several ways is one query for each grouping set over the same rows, put
//! behind each other as UNION ALL does. Each gives all keys, with NULL for those that its set does
//! not have, the aggregates, and what GROUPING says of it. The query itself is a SELECT over that:
//! its output, HAVING, ORDER BY and window functions find there what they ask for.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::bound::{
    AggregateCall, Body, Bound, BoundQuery, Builtin, ColumnMeta, FromItem, Grouping, ItemKind,
    Kind, Operation, OrderKey, Select, SetOperation, SourceId, conjuncts, rewrite_in_place,
};
use super::expression::Call;
use super::order::{Needs, class_in};
use super::scope::AggregatePolicy;
use super::{Compiler, Position, fail, position_of, unsupported};

/// The most grouping sets of a query: each is a part of its program.
const SETS_MAX: usize = 64;

/// What a GROUP BY asks for.
#[derive(Default)]
pub(super) struct GroupBy {
    pub keys: Vec<Bound>,
    /// Which output each key is, if it is one. Among several sets, outputs that are written alike
    /// are keys apart.
    pub outputs: Vec<Option<usize>>,
    /// The positions of the keys of each grouping set, where there are several sets, or one that is
    /// written as such.
    pub sets: Option<Vec<Vec<usize>>>,
}

impl GroupBy {
    /// The position of a key, which becomes one if it is none. Where there are several sets, keys
    /// are told apart by the outputs that they are.
    pub fn add(&mut self, bound: Bound, output: Option<usize>, by_output: bool) -> usize {
        let mut known = self.keys.iter().zip(&self.outputs);
        let found = known.position(|(key, known)| match by_output {
            true => *known == output && (output.is_some() || *key == bound),
            false => *key == bound,
        });
        found.unwrap_or_else(|| {
            self.keys.push(bound);
            self.outputs.push(output);
            self.keys.len() - 1
        })
    }
}

/// Which outputs the expressions of ORDER BY and DISTINCT ON are, where they are some.
#[derive(Default)]
pub(super) struct Named {
    pub order: Vec<Option<usize>>,
    pub distinct_on: Vec<Option<usize>>,
}

/// The grouping sets that a list of GROUP BY stands for; `None` for one of expressions alone.
///
/// # Errors
/// 54011 and 0A000 for too many.
pub(super) fn sets_of(items: &[Expr]) -> Result<Option<Vec<Vec<&Expr>>>> {
    if !items.iter().any(is_of_sets) {
        return Ok(None);
    }
    let mut sets: Vec<Vec<&Expr>> = vec![Vec::new()];
    for item in items {
        let own = sets_of_item(item)?;
        check_count(sets.len() * own.len(), item)?;
        let product = sets
            .iter()
            .flat_map(|set| own.iter().map(move |own| [&set[..], own].concat()));
        sets = product.collect();
    }
    Ok(Some(sets))
}

fn check_count(count: usize, item: &Expr) -> Result<()> {
    match count > SETS_MAX {
        true => Err(unsupported(
            format!("more than {SETS_MAX} grouping sets"),
            position_of(item),
        )),
        false => Ok(()),
    }
}

fn is_of_sets(item: &Expr) -> bool {
    match item {
        Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_) => true,
        Expr::Tuple(elements) => elements.is_empty(),
        _ => false,
    }
}

fn sets_of_item(item: &Expr) -> Result<Vec<Vec<&Expr>>> {
    match item {
        Expr::Rollup(elements) => rollup(&by_element(elements), item),
        Expr::Cube(elements) => cube(&by_element(elements), item),
        Expr::GroupingSets(elements) => {
            let mut sets = Vec::new();
            for element in elements {
                match element.as_slice() {
                    [one] if is_of_sets(one) => sets.extend(sets_of_item(one)?),
                    // The library reads one within another as a call.
                    [one] => sets.extend(sets_of_call(one)?.unwrap_or_else(|| vec![vec![one]])),
                    several => sets.push(several.iter().collect()),
                }
                check_count(sets.len(), item)?;
            }
            Ok(sets)
        }
        Expr::Tuple(elements) => Ok(vec![elements.iter().collect()]),
        other => Ok(vec![vec![other]]),
    }
}

fn by_element(elements: &[Vec<Expr>]) -> Vec<Vec<&Expr>> {
    let elements = elements.iter();
    elements
        .map(|element| element.iter().flat_map(parts).collect())
        .collect()
}

/// The expressions of an element that is several in parentheses.
fn parts(element: &Expr) -> Vec<&Expr> {
    match element {
        Expr::Tuple(parts) => parts.iter().collect(),
        other => vec![other],
    }
}

/// The sets of `ROLLUP (…)` or `CUBE (…)` that was read as the call of a function.
fn sets_of_call(item: &Expr) -> Result<Option<Vec<Vec<&Expr>>>> {
    let Expr::Function(function) = item else {
        return Ok(None);
    };
    let name = function.name.to_string().to_lowercase();
    let FunctionArguments::List(list) = &function.args else {
        return Ok(None);
    };
    let elements = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(parts(expr)),
        _ => None,
    });
    let elements: Option<Vec<Vec<&Expr>>> = elements.collect();
    match (name.as_str(), elements) {
        ("rollup", Some(elements)) => rollup(&elements, item).map(Some),
        ("cube", Some(elements)) => cube(&elements, item).map(Some),
        _ => Ok(None),
    }
}

/// All elements, then without the last, and so on to none.
fn rollup<'e>(elements: &[Vec<&'e Expr>], item: &Expr) -> Result<Vec<Vec<&'e Expr>>> {
    check_count(elements.len() + 1, item)?;
    let counts = (0..=elements.len()).rev();
    Ok(counts.map(|count| elements[..count].concat()).collect())
}

/// All subsets of the elements.
fn cube<'e>(elements: &[Vec<&'e Expr>], item: &Expr) -> Result<Vec<Vec<&'e Expr>>> {
    if elements.len() > 12 {
        let message = "CUBE is limited to 12 elements";
        return Err(fail(SqlState::TOO_MANY_COLUMNS, message, position_of(item)));
    }
    let count = 1 << elements.len();
    check_count(count, item)?;
    let subset = |without: usize| {
        let elements = elements.iter().enumerate();
        let kept = elements.filter(|(at, _)| without & 1 << at == 0);
        kept.flat_map(|(_, element)| element.iter().copied())
            .collect()
    };
    Ok((0..count).map(subset).collect())
}

/// What stands for a call of GROUPING until its query is grouped.
const GROUPING: Builtin = Builtin {
    name: "grouping",
    function: |_, _| {
        Err(kiln_storage::error::Error::internal(
            "GROUPING is known when a query is bound",
        ))
    },
    volatile: false,
};

/// The positions of the keys that a call of GROUPING names; `None` for anything else, and an error
/// for an argument that is no key.
pub(super) fn grouping_of<'k>(
    bound: &Bound,
    keys: impl Iterator<Item = &'k Bound> + Clone,
) -> Option<Result<Vec<usize>>> {
    let Kind::Operation(Operation::Call(builtin), operands) = &bound.kind else {
        return None;
    };
    if builtin.name != GROUPING.name {
        return None;
    }
    let positions = operands.iter().map(|operand| {
        keys.clone().position(|key| key.is_key_of(operand)).ok_or_else(|| {
            let message = "arguments to GROUPING must be grouping expressions of the associated \
                           query level";
            fail(SqlState::GROUPING_ERROR, message, operand.position)
        })
    });
    Some(positions.collect())
}

/// What a query asks for besides its keys.
enum Wanted {
    Aggregate(Box<AggregateCall>),
    /// Which of these keys are not among those of the set.
    Grouping(Vec<usize>),
}

impl Compiler<'_> {
    /// Binds a call of GROUPING.
    ///
    /// # Errors
    /// 42803 where aggregates may not be called.
    pub(super) fn bind_grouping(&mut self, call: &Call<'_>) -> Result<Bound> {
        let position = call.position;
        let Some(level) = self.levels.last().cloned() else {
            return Err(unsupported("GROUPING outside of a query", position));
        };
        let refused = match level.aggregates {
            AggregatePolicy::Allowed => None,
            AggregatePolicy::Inside => Some("aggregate functions".to_owned()),
            AggregatePolicy::Refused(clause) => Some(clause.to_owned()),
        };
        if let Some(clause) = refused {
            let message = format!("grouping operations are not allowed in {clause}");
            return Err(fail(SqlState::GROUPING_ERROR, message, position));
        }
        if call.arguments.len() > 31 {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(fail(SqlState::TOO_MANY_ARGUMENTS, message, position));
        }
        let arguments = call.arguments.iter();
        let operands = arguments
            .map(|argument| self.bind(argument))
            .collect::<Result<Vec<Bound>>>()?;
        self.aggregated.insert(level.number);
        let kind = Kind::Operation(Operation::Call(GROUPING), operands);
        Ok(Bound::new(kind, DataType::Integer, position))
    }

    /// Groups the rows of a SELECT by several sets of its keys.
    pub(super) fn group_by_sets(
        &mut self,
        select: &mut Select,
        (by, sets): (&GroupBy, &[Vec<usize>]),
        mut having: Option<Bound>,
        (order, named): (&mut [OrderKey], &Named),
        level: usize,
    ) -> Result<()> {
        let keys = by.keys.as_slice();
        for key in keys {
            class_in("GROUP BY", Needs::Equality, &key.data_type, key.position)?;
        }
        let is_volatile = keys.iter().chain(&select.filters).any(Bound::is_volatile)
            || select.items.iter().any(|item| item.kind.calls_volatile());
        if is_volatile {
            let what = "a volatile function in the rows of several grouping sets";
            return Err(unsupported(what, keys.first().and_then(|key| key.position)));
        }
        let of_rows: Vec<SourceId> = select.items.iter().map(|item| item.source).collect();
        let source = self.add_derived_source("", &[], None);
        let (mut wanted, mut failed) = (Vec::<Wanted>::new(), None);
        let mut replace = |bound: &Bound| -> Option<Bound> {
            let column = |at: usize| {
                let kind = Kind::Column {
                    source,
                    column: at as u16,
                };
                Some(Bound::new(kind, bound.data_type.clone(), bound.position))
            };
            if let Some(at) = keys.iter().position(|key| key.is_key_of(bound)) {
                return column(at);
            }
            let mut find = |is_it: &dyn Fn(&Wanted) -> bool, new: Wanted| {
                let at = wanted.iter().position(is_it).unwrap_or_else(|| {
                    wanted.push(new);
                    wanted.len() - 1
                });
                column(keys.len() + at)
            };
            match grouping_of(bound, keys.iter()) {
                Some(Ok(positions)) => {
                    let is_it =
                        |known: &Wanted| matches!(known, Wanted::Grouping(it) if *it == positions);
                    return find(&is_it, Wanted::Grouping(positions.clone()));
                }
                Some(Err(error)) => {
                    failed.get_or_insert(error);
                    return Some(Bound::null(DataType::Integer, bound.position));
                }
                None => {}
            }
            match &bound.kind {
                Kind::Aggregate(call) if call.level == level => {
                    let is_it = |known: &Wanted| matches!(known, Wanted::Aggregate(it) if it.is_same(call, false));
                    find(&is_it, Wanted::Aggregate(call.clone()))
                }
                _ => None,
            }
        };
        let outputs = (0..select.outputs.len()).map(Some);
        let named = (named.distinct_on.iter().chain(&named.order)).copied();
        let mut outputs = outputs.chain(named);
        let all = select.output_expressions_mut(order).into_iter();
        for bound in all.chain(&mut having) {
            // The key that an output is, not another one that is written alike.
            let output = outputs.next().flatten();
            let key = output.and_then(|output| {
                let mut keys = by.outputs.iter();
                keys.position(|key| *key == Some(output))
            });
            match key {
                Some(at) => {
                    let column = at as u16;
                    bound.kind = Kind::Column { source, column };
                }
                None => rewrite_in_place(bound, &mut replace),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let all = select.output_expressions(order).into_iter();
        self.refuse_stray(all.chain(&having), &of_rows)?;
        let columns = columns_of(keys, &wanted);
        let mut query: Option<BoundQuery> = None;
        for set in sets {
            let branch = self.branch(select, keys, set, &wanted, &columns);
            query = Some(match query {
                None => branch,
                Some(left) => BoundQuery {
                    with: Vec::new(),
                    body: Body::Set {
                        operation: SetOperation::Union,
                        left: Box::new(left),
                        right: Box::new(branch),
                        all: true,
                    },
                    columns: columns.clone(),
                    order: Vec::new(),
                    limit: None,
                    offset: None,
                },
            });
        }
        let known = self.source_mut(source);
        known.columns = columns
            .iter()
            .map(|column| (column.name.clone(), column.data_type.clone()))
            .collect();
        known.visible = columns.len();
        if let Some(query) = query {
            select.items = vec![FromItem {
                source,
                kind: ItemKind::Derived(Box::new(query)),
                left: None,
            }];
        }
        select.filters.clear();
        if let Some(having) = having {
            conjuncts(having, &mut select.filters);
        }
        Ok(())
    }

    /// The query of one grouping set.
    fn branch(
        &mut self,
        select: &Select,
        keys: &[Bound],
        set: &[usize],
        wanted: &[Wanted],
        columns: &[ColumnMeta],
    ) -> BoundQuery {
        let slot = |number: usize, data_type: &DataType| {
            Bound::new(Kind::Slot(number), data_type.clone(), None)
        };
        let (mut grouped, mut aggregates, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for (at, key) in keys.iter().enumerate() {
            if set.contains(&at) {
                let number = self.new_slot();
                grouped.push((key.clone(), number));
                outputs.push(slot(number, &key.data_type));
            } else {
                outputs.push(Bound::null(key.data_type.clone(), None));
            }
        }
        for wanted in wanted {
            match wanted {
                Wanted::Aggregate(call) => {
                    let number = self.new_slot();
                    outputs.push(slot(number, &call.data_type));
                    aggregates.push(((**call).clone(), number));
                }
                Wanted::Grouping(positions) => {
                    let bits = positions.iter().fold(0, |bits, position| {
                        bits << 1 | i32::from(!set.contains(position))
                    });
                    let bits = Value::Integer(bits);
                    outputs.push(Bound::constant(bits, DataType::Integer, None));
                }
            }
        }
        // A query of no column else.
        outputs.push(Bound::boolean(true));
        let branch = Select {
            items: select.items.clone(),
            filters: select.filters.clone(),
            outputs,
            grouping: Some(Grouping {
                keys: grouped,
                aggregates,
                having: None,
            }),
            ..Select::default()
        };
        BoundQuery {
            columns: columns.to_vec(),
            ..BoundQuery::of(branch)
        }
    }

    /// Refuses a column of the rows that were grouped in what is computed after that.
    ///
    /// # Errors
    /// 42803.
    pub(super) fn refuse_stray<'b>(
        &self,
        bounds: impl Iterator<Item = &'b Bound>,
        sources: &[SourceId],
    ) -> Result<()> {
        for bound in bounds {
            let mut stray: Option<(SourceId, u16, Position)> = None;
            bound.visit(&mut |node| {
                if let Kind::Column { source, column } = node.kind
                    && sources.contains(&source)
                    && stray.is_none()
                {
                    stray = Some((source, column, node.position));
                }
            });
            if let Some((source, column, position)) = stray {
                let source = self.source(source);
                return Err(fail(
                    SqlState::GROUPING_ERROR,
                    format!(
                        "column \"{}.{}\" must appear in the GROUP BY clause or be used in an \
                         aggregate function",
                        source.name, source.columns[column as usize].0
                    ),
                    position,
                ));
            }
        }
        Ok(())
    }
}

fn columns_of(keys: &[Bound], wanted: &[Wanted]) -> Vec<ColumnMeta> {
    let keys = keys.iter().map(|key| key.data_type.clone());
    let wanted = wanted.iter().map(|wanted| match wanted {
        Wanted::Aggregate(call) => call.data_type.clone(),
        Wanted::Grouping(_) => DataType::Integer,
    });
    let types = keys.chain(wanted).chain([DataType::Boolean]);
    let columns = types.enumerate().map(|(at, data_type)| ColumnMeta {
        name: format!("column{at}"),
        data_type,
        origin: None,
    });
    columns.collect()
}
