//! By which path the rows of a table are read: whole unique keys, ranges of an index, everything.

use kiln_procedure::ir::{Class, Comparison};
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;
use kiln_storage::types::DataType;

use super::bound::{
    Bound, Builtin, FromItem, ItemKind, Kind, Operation, OrderKey, SourceId, Subquery,
};
use super::{Compiler, functions};

/// How a source is read.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// By a whole unique key.
    Lookup { index: u16, key: Vec<Bound> },
    /// By a range of an ordered index.
    Scan {
        index: u16,
        range: KeyRange,
        reverse: bool,
    },
    /// Not a table.
    Rows,
}

#[derive(Clone, Debug, Default)]
pub(super) struct KeyRange {
    pub prefix: Vec<Bound>,
    pub lower: Option<(Bound, bool)>,
    pub upper: Option<(Bound, bool)>,
}

/// A key column that takes several values one after the other: `column IN (…)`. Equal ones count
/// once.
#[derive(Clone, Debug)]
pub(super) struct Each {
    /// The position of the column in the key.
    place: usize,
    /// What the key names the value by.
    pub slot: usize,
    pub data_type: DataType,
    pub class: Class,
    pub values: Values,
}

/// Where the values of a key column come from.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// They are written out.
    List(Vec<Bound>),
    /// The elements of an array.
    Array(Bound),
    /// The rows of a subquery, and the columns of sources before that it names.
    Rows(Box<Subquery>, Vec<Bound>),
}

/// A path with what it makes superfluous.
pub(super) struct Candidate {
    pub access: Access,
    /// Runs the access once for each combination of their values.
    pub each: Vec<Each>,
    /// Better is smaller: the kind of path, then what is not fixed of it.
    pub cost: (u8, i32),
    /// The conjuncts that the path itself guarantees.
    pub implied: Vec<usize>,
    pub known: Vec<(u16, Bound)>,
    pub ordered: bool,
}

/// `column <op> value`, with the column on the left.
pub(super) struct Restriction<'b> {
    /// The conjunct that says so; none where it follows from several.
    conjunct: Option<usize>,
    pub column: u16,
    pub comparison: Comparison,
    pub class: Class,
    pub value: &'b Bound,
}

/// `column IN (value, …)`, or the same as equalities with OR between them, or `column IN (SELECT
/// …)`.
struct List {
    conjunct: usize,
    column: u16,
    class: Class,
    /// What holds all values.
    data_type: DataType,
    values: Values,
    /// As far as it is known.
    count: usize,
}

/// What fixes a key column.
enum Fixed<'r, 'b> {
    Value(&'r Restriction<'b>),
    Each(&'r List),
}

/// The first part of the cost of reading all rows; see [`Candidate::cost`].
pub(super) const FULL: u8 = 3;

/// How much less a few whole keys cost than a range of an index.
const LISTED: i32 = 1_000;

/// The most combinations of values for which an index is searched, where several columns have a
/// list.
const COMBINATIONS_MAX: usize = 256;

impl Candidate {
    /// Gives the values of its lists their names.
    pub(super) fn name_values(&mut self, compiler: &mut Compiler<'_>) {
        let key = match &mut self.access {
            Access::Lookup { key, .. } => key,
            Access::Scan { range, .. } => &mut range.prefix,
            Access::Rows => return,
        };
        for each in &mut self.each {
            each.slot = compiler.new_slot();
            key[each.place].kind = Kind::Slot(each.slot);
        }
    }
}

impl Compiler<'_> {
    /// The best path to `item` when `joined` are there.
    pub(super) fn candidate(
        &self,
        item: &FromItem,
        conjuncts: &[Bound],
        own: &[SourceId],
        joined: &[SourceId],
        order: &[OrderKey],
        limited: bool,
    ) -> Candidate {
        let ItemKind::Table(table) = &item.kind else {
            let rank = match &item.kind {
                kind if kind.gives_one_row() => 0,
                // The rows of one round, and not those of all.
                ItemKind::With(reference) if reference.is_recursive() => 1,
                _ => FULL,
            };
            return Candidate {
                access: Access::Rows,
                each: Vec::new(),
                cost: (rank, 0),
                implied: Vec::new(),
                known: Vec::new(),
                ordered: false,
            };
        };
        let is_there = |bound: &Bound| {
            !bound.is_volatile()
                && bound
                    .sources()
                    .iter()
                    .all(|source| joined.contains(source) || !own.contains(source))
        };
        let (mut restrictions, mut lists) = (Vec::new(), Vec::new());
        let over_computed = conjuncts
            .iter()
            .map_while(|bound| self.over_computed(item.source, bound));
        let over_computed: Vec<Bound> = over_computed.collect();
        let named = match over_computed.is_empty() {
            true => conjuncts,
            false => over_computed.as_slice(),
        };
        for (conjunct, bound) in named.iter().enumerate() {
            restrictions.extend(restriction(item.source, conjunct, bound, &is_there));
            lists.extend(list(item.source, conjunct, bound, &is_there));
        }
        let truth = Bound::boolean(true);
        let predicates = self.implied_predicates(item.source, table, conjuncts);
        restrictions.extend(predicates.into_iter().map(|column| Restriction {
            conjunct: None,
            column,
            comparison: Comparison::Equal,
            class: Class::Integer,
            value: &truth,
        }));
        let mut best: Option<Candidate> = None;
        for number in 0..table.indexes().len() {
            let candidate = self.index_candidate(
                item.source,
                table,
                number,
                (&restrictions, &lists),
                order,
                limited,
            );
            let Some(candidate) = candidate else {
                continue;
            };
            if best.as_ref().is_none_or(|best| candidate.cost < best.cost) {
                best = Some(candidate);
            }
        }
        best.unwrap_or_else(|| Candidate {
            access: Access::Scan {
                index: 0,
                range: KeyRange::default(),
                reverse: false,
            },
            each: Vec::new(),
            cost: (FULL, 0),
            implied: Vec::new(),
            known: Vec::new(),
            ordered: false,
        })
    }

    /// The path through one index; `None` when it is of no use.
    fn index_candidate(
        &self,
        source: SourceId,
        table: &Table,
        number: usize,
        (restrictions, lists): (&[Restriction<'_>], &[List]),
        order: &[OrderKey],
        limited: bool,
    ) -> Option<Candidate> {
        let index = &table.indexes()[number];
        let definition = index.definition();
        let is_primary = !table.schema().primary_key.is_empty()
            && definition.columns == table.schema().primary_key;
        let equal = |column: ColumnId| {
            restrictions
                .iter()
                .find(|one| one.column == column.0 && one.comparison == Comparison::Equal)
        };
        let mut combinations = 1_usize;
        let mut one_of = |column: ColumnId| {
            let list = lists.iter().find(|list| list.column == column.0)?;
            let is_first = combinations == 1;
            combinations = combinations.saturating_mul(list.count);
            (is_first || combinations <= COMBINATIONS_MAX).then_some(list)
        };
        let fixed: Vec<Fixed<'_, '_>> = definition
            .columns
            .iter()
            .map_while(|column| {
                let value = equal(*column).map(Fixed::Value);
                value.or_else(|| one_of(*column).map(Fixed::Each))
            })
            .collect();
        // An index leads to no record without these values: the attempt's own moves are resolved,
        // and who met an entry of a record that another attempt moved looks again, or fails.
        let mut implied: Vec<usize> = fixed.iter().filter_map(Fixed::conjunct).collect();
        let mut known = Vec::new();
        for one in fixed.iter().filter_map(Fixed::value) {
            let declared = &table.schema().columns[one.column as usize].data_type;
            // A wider integer is equal, but its register is too wide for the column's uses.
            let fits = one.class == Class::Integer
                && (one.value.data_type == *declared
                    || matches!(
                        (&one.value.data_type, declared),
                        (DataType::SmallInt, DataType::Integer | DataType::BigInt)
                            | (DataType::Integer, DataType::BigInt)
                    ));
            if fits {
                known.push((one.column, one.value.clone()));
            }
        }
        let key: Vec<Bound> = fixed.iter().map(Fixed::bound).collect();
        let each: Vec<Each> = fixed
            .iter()
            .enumerate()
            .filter_map(|(place, one)| one.each(place))
            .collect();
        let is_hash = definition.kind.is_hash();
        let number = number as u16;
        if index.supports_lookup() && fixed.len() == definition.columns.len() && !key.is_empty() {
            let detail = if is_hash { 0 } else { 1 };
            let is_one = each.is_empty();
            return Some(Candidate {
                access: Access::Lookup { index: number, key },
                each,
                // Several keys are better than what is between two.
                cost: if is_one {
                    (0, detail)
                } else {
                    (1, detail - LISTED)
                },
                implied,
                known,
                ordered: is_one,
            });
        }
        if is_hash {
            return None;
        }
        let mut range = KeyRange {
            prefix: key,
            lower: None,
            upper: None,
        };
        if let Some(next) = definition.columns.get(fixed.len()) {
            for one in restrictions.iter().filter(|one| one.column == next.0) {
                let bound = match one.comparison {
                    Comparison::Greater | Comparison::GreaterOrEqual => &mut range.lower,
                    Comparison::Less | Comparison::LessOrEqual => &mut range.upper,
                    _ => continue,
                };
                if bound.is_some() {
                    continue;
                }
                let inclusive = matches!(
                    one.comparison,
                    Comparison::GreaterOrEqual | Comparison::LessOrEqual
                );
                *bound = Some((one.value.clone(), inclusive));
                // A number between two keys widens the range.
                if one.class != Class::Decimal {
                    implied.extend(one.conjunct);
                }
            }
        }
        let bounds = i32::from(range.lower.is_some()) + i32::from(range.upper.is_some());
        let direction = self.index_order(
            source,
            table,
            number as usize,
            fixed.len(),
            restrictions,
            order,
        );
        // The predicate of a partial index leaves out rows, but fixes none of its key.
        let is_partial = definition.partial && !fixed.is_empty();
        let prefix = fixed.len() as i32 - i32::from(is_partial);
        // A key that is fixed to its end is better than a longer one that is not.
        let rank = match (prefix, bounds) {
            (0, 0) if is_partial => 2,
            (0, 0) => 3,
            (0, _) => 2,
            _ => 1,
        };
        // The ranges of several values come one after the other.
        let direction = direction.filter(|_| each.is_empty() || order.is_empty());
        let useful_order = direction.is_some() && !order.is_empty();
        let rank = if rank == 3 && useful_order && limited {
            2
        } else {
            rank
        };
        let access = Access::Scan {
            index: number,
            range,
            reverse: direction == Some(true),
        };
        let cost = (
            rank,
            -(prefix * 8
                + bounds * 2
                + i32::from(useful_order)
                + i32::from(is_primary)
                + 2 * i32::from(is_partial))
                + 4 * i32::from(!each.is_empty()),
        );
        if rank == 3 && number != 0 && !useful_order {
            return None;
        }
        Some(Candidate {
            access,
            each,
            cost,
            implied,
            known,
            ordered: direction.is_some(),
        })
    }

    /// Whether the index gives the wanted order when its first `prefix` columns are fixed, and
    /// then whether it must be read backwards.
    fn index_order(
        &self,
        source: SourceId,
        table: &Table,
        number: usize,
        prefix: usize,
        restrictions: &[Restriction<'_>],
        order: &[OrderKey],
    ) -> Option<bool> {
        let definition = table.indexes()[number].definition();
        let is_fixed = |column: u16| {
            restrictions
                .iter()
                .any(|one| one.column == column && one.comparison == Comparison::Equal)
        };
        let mut columns = definition.columns[prefix..]
            .iter()
            .map(|column| column.0)
            .peekable();
        let mut reverse = None;
        for key in order {
            let column = self.column_with(source, &key.bound)?;
            if is_fixed(column) {
                continue;
            }
            while columns.peek().is_some_and(|next| is_fixed(*next)) {
                columns.next();
            }
            if columns.next() != Some(column) {
                return None;
            }
            // The index has NULLs last, and first when it is read backwards.
            let never_null = table.schema().columns[column as usize].not_null;
            if !never_null && key.nulls_first != key.descending {
                return None;
            }
            if *reverse.get_or_insert(key.descending) != key.descending {
                return None;
            }
        }
        Some(reverse.unwrap_or(false))
    }
}

impl<'b> Fixed<'_, 'b> {
    fn conjunct(&self) -> Option<usize> {
        match self {
            Fixed::Value(restriction) => restriction.conjunct,
            Fixed::Each(list) => Some(list.conjunct),
        }
    }

    fn value(&self) -> Option<&Restriction<'b>> {
        match self {
            Fixed::Value(restriction) => Some(restriction),
            Fixed::Each(_) => None,
        }
    }

    /// What stands in the key; see [`Candidate::name_values`].
    fn bound(&self) -> Bound {
        match self {
            Fixed::Value(restriction) => restriction.value.clone(),
            Fixed::Each(list) => Bound::new(Kind::Slot(0), list.data_type.clone(), None),
        }
    }

    fn each(&self, place: usize) -> Option<Each> {
        match self {
            Fixed::Value(_) => None,
            Fixed::Each(list) => Some(Each {
                place,
                slot: 0,
                data_type: list.data_type.clone(),
                class: list.class,
                values: list.values.clone(),
            }),
        }
    }
}

/// What a path computes before it reads.
pub(super) fn candidate_expressions<'p>(access: &'p Access, each: &'p [Each]) -> Vec<&'p Bound> {
    let values = each.iter().flat_map(|each| match &each.values {
        Values::List(values) | Values::Rows(_, values) => values.as_slice(),
        Values::Array(array) => std::slice::from_ref(array),
    });
    let mut all: Vec<&Bound> = values.collect();
    all.extend(access_expressions(access));
    all
}

fn access_expressions(access: &Access) -> Vec<&Bound> {
    match access {
        Access::Lookup { key, .. } => key.iter().collect(),
        Access::Scan { range, .. } => {
            let bounds = range
                .lower
                .iter()
                .chain(&range.upper)
                .map(|(bound, _)| bound);
            range.prefix.iter().chain(bounds).collect()
        }
        Access::Rows => Vec::new(),
    }
}
/// The conjunct as a restriction of a column of `source` by something that is there.
pub(super) fn restriction<'b>(
    source: SourceId,
    conjunct: usize,
    bound: &'b Bound,
    is_there: &dyn Fn(&Bound) -> bool,
) -> Option<Restriction<'b>> {
    let Kind::Operation(Operation::Compare(comparison, class), operands) = &bound.kind else {
        return None;
    };
    let [left, right] = operands.as_slice() else {
        return None;
    };
    let flipped = match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Equal => Comparison::Equal,
        _ => return None,
    };
    let of = |side: &Bound| match side.kind {
        Kind::Column { source: of, column } if of == source => Some(column),
        _ => None,
    };
    let class = *class;
    if let Some(column) = of(left)
        && !right.sources().contains(&source)
        && is_there(right)
    {
        let comparison = *comparison;
        return Some(Restriction {
            conjunct: Some(conjunct),
            column,
            comparison,
            class,
            value: right,
        });
    }
    if let Some(column) = of(right)
        && !left.sources().contains(&source)
        && is_there(left)
    {
        return Some(Restriction {
            conjunct: Some(conjunct),
            column,
            comparison: flipped,
            class,
            value: left,
        });
    }
    None
}

/// The conjunct as a list of what a column of `source` may equal.
fn list(
    source: SourceId,
    conjunct: usize,
    bound: &Bound,
    is_there: &dyn Fn(&Bound) -> bool,
) -> Option<List> {
    let operands = match &bound.kind {
        Kind::Or(operands) => operands,
        Kind::Subquery(subquery) => return rows_as_list(source, conjunct, subquery, is_there),
        Kind::Operation(Operation::Call(builtin), operands) => {
            return array_as_list(source, conjunct, builtin, operands, is_there);
        }
        _ => return None,
    };
    let equalities: Option<Vec<Restriction<'_>>> = operands
        .iter()
        .map(|operand| {
            restriction(source, conjunct, operand, is_there)
                .filter(|one| one.comparison == Comparison::Equal)
        })
        .collect();
    let equalities = equalities?;
    let first = equalities.first()?;
    let (column, class) = (first.column, first.class);
    let mut data_type = first.value.data_type.clone();
    for one in &equalities {
        if one.column != column || one.class != class {
            return None;
        }
        data_type = holding_both(data_type, &one.value.data_type)?;
    }
    let values = equalities.iter().map(|one| one.value.clone()).collect();
    Some(List {
        conjunct,
        column,
        class,
        data_type,
        values: Values::List(values),
        count: equalities.len(),
    })
}

/// `column = ANY (array)` as a list, when the array is there.
fn array_as_list(
    source: SourceId,
    conjunct: usize,
    builtin: &Builtin,
    operands: &[Bound],
    is_there: &dyn Fn(&Bound) -> bool,
) -> Option<List> {
    let [left, array] = operands else {
        return None;
    };
    let column = match left.kind {
        Kind::Column { source: of, column } if of == source => column,
        _ => return None,
    };
    let DataType::Array(element) = &array.data_type else {
        return None;
    };
    let class = Class::of(element)?;
    let (name, _) = functions::any_of(Comparison::Equal, class)?;
    let names_source = array.sources().contains(&source);
    (builtin.name == name && !names_source && is_there(array)).then(|| List {
        conjunct,
        column,
        class,
        data_type: (**element).clone(),
        values: Values::Array(array.clone()),
        count: usize::MAX,
    })
}

/// `column IN (SELECT …)` as a list, when all is there that the subquery names.
fn rows_as_list(
    source: SourceId,
    conjunct: usize,
    subquery: &Subquery,
    is_there: &dyn Fn(&Bound) -> bool,
) -> Option<List> {
    let search = subquery.search()?;
    if subquery.query.is_volatile() {
        return None;
    }
    let column = match search.left.kind {
        Kind::Column { source: of, column } if of == source => column,
        _ => return None,
    };
    let mut named = Vec::new();
    let mut all_there = true;
    subquery.query.visit(&mut |node| {
        if let Kind::Column { source, .. } = node.kind
            && !subquery.own_sources.contains(&source.0)
        {
            all_there &= is_there(node);
            named.push(node.clone());
        }
    });
    all_there.then(|| List {
        conjunct,
        column,
        class: search.class,
        data_type: search.right.data_type.clone(),
        values: Values::Rows(Box::new(subquery.clone()), named),
        count: usize::MAX,
    })
}

/// A type whose registers hold the values of both types as they are.
fn holding_both(one: DataType, other: &DataType) -> Option<DataType> {
    let width = |data_type: &DataType| match data_type {
        DataType::SmallInt => Some(2),
        DataType::Integer => Some(4),
        DataType::BigInt => Some(8),
        _ => None,
    };
    match (width(&one), width(other)) {
        (Some(mine), Some(others)) if mine < others => Some(other.clone()),
        (Some(_), Some(_)) => Some(one),
        _ if one.is_string() && other.is_string() => Some(DataType::Text),
        _ if one.without_modifier() == other.without_modifier() => Some(one.without_modifier()),
        _ => None,
    }
}
