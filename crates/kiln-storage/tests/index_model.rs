//! Both indexes against the standard library's maps, with seeded random operations.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use kiln_platform::random::Random;
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::index::{
    ByteKey, HashIndex, Insertion, Key, LeafBatch, Lookup, NodeVersion, OrderedIndex,
};

fn participant() -> Participant {
    Epochs::new(1).register().expect("the only participant")
}

/// Keys of a kind, from numbers: order-preserving, and spread over all words.
trait FromNumber: Key {
    fn from_number(number: u64) -> Self;
}

impl FromNumber for u64 {
    fn from_number(number: u64) -> Self {
        number
    }
}

impl FromNumber for u128 {
    fn from_number(number: u64) -> Self {
        u128::from(number >> 4) << 64 | u128::from(number & 15) << 3
    }
}

impl<const W: usize> FromNumber for ByteKey<W> {
    fn from_number(number: u64) -> Self {
        let mut words = [7; W];
        words[W / 2] = number >> 4;
        words[W - 1] = number & 15;
        ByteKey(words)
    }
}

fn inserted(insertion: Insertion) -> bool {
    matches!(insertion, Insertion::Inserted(_))
}

/// All payloads of a scan, and the guards of its leaves.
fn scan<K: Key>(
    index: &OrderedIndex<K>,
    lower: Bound<K>,
    upper: Bound<K>,
    reverse: bool,
) -> (Vec<u64>, Vec<NodeVersion>) {
    let (mut payloads, mut guards) = (Vec::new(), Vec::new());
    let mut cursor = index.cursor(lower, upper, reverse);
    let mut batch = LeafBatch::new();
    while cursor.next_leaf(&mut batch) {
        payloads.extend_from_slice(batch.payloads());
        guards.push(batch.version);
    }
    assert!(!cursor.next_leaf(&mut batch), "an ended scan stays ended");
    (payloads, guards)
}

fn random_bound<K: FromNumber>(random: &mut Random, keys: usize) -> Bound<K> {
    let key = K::from_number(random.below(keys) as u64);
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

/// What the model has between two bounds; `BTreeMap::range` panics on some empty ranges.
fn model_range<K: Key>(
    model: &BTreeMap<K, u64>,
    lower: Bound<K>,
    upper: Bound<K>,
    reverse: bool,
) -> Vec<u64> {
    let mut payloads: Vec<u64> = model
        .iter()
        .filter(|(key, _)| match lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => **key >= lower,
            Bound::Excluded(lower) => **key > lower,
        })
        .filter(|(key, _)| match upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => **key <= upper,
            Bound::Excluded(upper) => **key < upper,
        })
        .map(|(_, &payload)| payload)
        .collect();
    if reverse {
        payloads.reverse();
    }
    payloads
}

fn ordered_against_model<K: FromNumber>(seed: u64, bits: u32, keys: usize, operations: usize) {
    let participant = participant();
    let index = OrderedIndex::<K>::with_prefix_bits(bits);
    let mut model = BTreeMap::new();
    let mut random = Random::from_seed(seed);
    for step in 1..=operations as u64 {
        // Phases of growth and of shrinking, so that leaves fill, split, empty and merge.
        let growing = (step * 6 / operations as u64).is_multiple_of(2);
        let key = K::from_number(random.below(keys) as u64);
        match random.below(100) {
            roll if (roll < 70) == growing => match index.insert(&key, step, &participant) {
                Insertion::Inserted(effect) => {
                    assert_eq!(model.insert(key, step), None);
                    assert_ne!(effect.before, effect.after);
                    let guard = NodeVersion {
                        node: effect.node,
                        observed: effect.after,
                    };
                    assert!(guard.is_current());
                    assert!(effect.splits.iter().flatten().all(NodeVersion::is_current));
                }
                Insertion::Exists(payload) => assert_eq!(model.get(&key), Some(&payload)),
            },
            roll if roll % 10 < 9 => {
                if let Some(&payload) = model.get(&key) {
                    assert!(!index.remove(&key, payload + 1, &participant));
                    assert!(index.remove(&key, payload, &participant));
                    model.remove(&key);
                } else {
                    assert!(!index.remove(&key, step, &participant));
                }
            }
            _ => {
                let (lower, upper) = (
                    random_bound(&mut random, keys),
                    random_bound(&mut random, keys),
                );
                let reverse = random.below(2) == 0;
                let (payloads, guards) = scan(&index, lower, upper, reverse);
                assert_eq!(payloads, model_range(&model, lower, upper, reverse));
                assert!(guards.iter().all(NodeVersion::is_current));
            }
        }
        match index.get(&key) {
            Lookup::Found(payload) => assert_eq!(model.get(&key), Some(&payload)),
            Lookup::Missing(guard) => {
                assert!(!model.contains_key(&key));
                assert!(guard.is_current());
            }
        }
    }
    let mut entries = Vec::new();
    index.for_each(|key, payload| entries.push((key, payload)));
    assert_eq!(
        entries,
        model.iter().map(|(&k, &p)| (k, p)).collect::<Vec<_>>()
    );
    assert_eq!(index.len(), model.len());
}

#[test]
fn ordered_index_of_words_equals_a_map() {
    for seed in 0..3 {
        ordered_against_model::<u64>(seed, 0, 300, 10_000);
        ordered_against_model::<u64>(seed, 0, 20_000, 60_000);
        ordered_against_model::<u64>(seed, 56, 5_000, 40_000);
        ordered_against_model::<u64>(seed, 63, 2_000, 30_000);
        ordered_against_model::<u64>(seed, 64, 500, 10_000);
    }
}

#[test]
fn ordered_index_of_longer_keys_equals_a_map() {
    ordered_against_model::<u128>(1, 0, 10_000, 40_000);
    ordered_against_model::<u128>(2, 60, 10_000, 40_000);
    ordered_against_model::<u128>(2, 64, 3_000, 30_000);
    ordered_against_model::<ByteKey<8>>(3, 0, 5_000, 30_000);
    ordered_against_model::<ByteKey<8>>(4, 5 * 64 - 4, 5_000, 30_000);
    ordered_against_model::<ByteKey<32>>(5, 0, 3_000, 15_000);
}

fn hash_against_model<K: FromNumber + std::hash::Hash>(seed: u64, keys: usize, operations: usize) {
    hash_like_model(HashIndex::<K>::with_capacity(0), seed, keys, operations);
}

fn hash_like_model<K: FromNumber + std::hash::Hash>(
    index: HashIndex<K>,
    seed: u64,
    keys: usize,
    operations: usize,
) {
    let participant = participant();
    let mut model = HashMap::new();
    let mut random = Random::from_seed(seed);
    for step in 1..=operations as u64 {
        let growing = (step * 4 / operations as u64).is_multiple_of(2);
        let key = K::from_number(random.below(keys) as u64);
        if (random.below(100) < 75) == growing {
            match index.insert(&key, step, &participant) {
                Insertion::Inserted(effect) => {
                    assert_eq!(model.insert(key, step), None);
                    let guard = NodeVersion {
                        node: effect.node,
                        observed: effect.after,
                    };
                    assert_ne!(effect.before, effect.after);
                    assert!(guard.is_current());
                }
                Insertion::Exists(payload) => assert_eq!(model.get(&key), Some(&payload)),
            }
        } else if let Some(&payload) = model.get(&key) {
            assert!(!index.remove(&key, payload + 1, &participant));
            assert!(index.remove(&key, payload, &participant));
            model.remove(&key);
        } else {
            assert!(!index.remove(&key, step, &participant));
        }
        let key = K::from_number(random.below(keys) as u64);
        match index.get(&key) {
            Lookup::Found(payload) => assert_eq!(model.get(&key), Some(&payload)),
            Lookup::Missing(guard) => {
                assert!(!model.contains_key(&key));
                assert!(guard.is_current());
            }
        }
    }
    let mut entries = HashMap::new();
    index.for_each(|key, payload| assert_eq!(entries.insert(key, payload), None));
    assert_eq!(entries, model);
    assert_eq!(index.len(), model.len());
}

#[test]
fn hash_index_equals_a_map() {
    for seed in 0..3 {
        hash_against_model::<u64>(seed, 500, 20_000);
        hash_against_model::<u64>(seed, 50_000, 200_000);
    }
    hash_against_model::<u128>(4, 20_000, 100_000);
    hash_against_model::<ByteKey<8>>(5, 10_000, 50_000);
    hash_against_model::<ByteKey<32>>(6, 3_000, 15_000);
    // Split by the end of the key, by what is the same in all keys, and by neither.
    for bits in [64, 20, 52] {
        hash_like_model(HashIndex::<u64>::split_by(0, bits), 7, 50_000, 100_000);
        hash_like_model(HashIndex::<u128>::split_by(0, bits), 8, 5_000, 20_000);
        hash_like_model(HashIndex::<ByteKey<8>>::split_by(0, bits), 9, 5_000, 20_000);
    }
}

#[test]
fn parts_of_a_split_hash_index_share_no_bucket() {
    let participant = participant();
    let index = HashIndex::<u64>::split_by(0, 48);
    let mut random = Random::from_seed(12);
    let mut part_of = HashMap::new();
    let mut insert = |part: u64, step: u64, random: &mut Random| {
        let key = part << 16 | random.below(1 << 16) as u64;
        if let Insertion::Inserted(effect) = index.insert(&key, step, &participant) {
            assert_eq!(*part_of.entry(effect.node).or_insert(part), part);
        }
    };
    for step in 1..60_000 {
        insert(step % 64, step, &mut random);
    }
    let absent = |part: u64| {
        let keys = (0..1_u64 << 16).map(|key| part << 16 | key);
        let guards = keys.filter_map(|key| match index.get(&key) {
            Lookup::Missing(guard) => Some(guard),
            Lookup::Found(_) => None,
        });
        guards.collect::<Vec<NodeVersion>>()
    };
    let before: Vec<_> = (0..64).map(absent).collect();
    // An insertion into one part changes no guard of another part, also where segments are split.
    for step in 60_000..300_000 {
        insert(step % 32 * 2, step, &mut random);
    }
    for (part, guards) in before.iter().enumerate() {
        let current = guards.iter().all(NodeVersion::is_current);
        assert_eq!(current, part % 2 == 1, "part {part}");
    }
}

#[test]
fn an_insertion_fails_the_guard_of_its_gap_and_a_removal_fails_none() {
    let participant = participant();
    let index = OrderedIndex::<u64>::new();
    for key in (0..1000).step_by(10) {
        assert!(inserted(index.insert(&key, key + 1, &participant)));
    }
    let Lookup::Missing(gap) = index.get(&505) else {
        panic!("505 was never inserted");
    };
    let (_, guards) = scan(&index, Bound::Included(500), Bound::Excluded(510), false);
    assert_eq!(guards, [gap]);
    assert!(index.remove(&510, 511, &participant));
    assert!(gap.is_current(), "removals fail no guard");
    assert!(inserted(index.insert(&505, 1, &participant)));
    assert!(!gap.is_current());

    let index = HashIndex::<u64>::with_capacity(100);
    let Lookup::Missing(gap) = index.get(&5) else {
        panic!("5 was never inserted");
    };
    let Insertion::Inserted(effect) = index.insert(&5, 1, &participant) else {
        panic!("5 was not there");
    };
    assert_eq!((effect.node, effect.before), (gap.node, gap.observed));
    assert!(!gap.is_current());
}

/// A transaction's own insertions must not fail its scan: what `InsertEffect` says suffices to
/// keep guards of the scanned range current, whatever splits.
#[test]
fn an_entry_whose_record_moved_fails_the_guards_of_its_leaf() {
    let participant = participant();
    let index = OrderedIndex::<u64>::new();
    for key in [10, 20, 30] {
        assert!(inserted(index.insert(&key, key, &participant)));
    }
    let guard_of_leaf = || match index.get(&25) {
        Lookup::Missing(guard) => guard,
        Lookup::Found(_) => panic!("25 is not there"),
    };
    let guard = guard_of_leaf();
    assert!(index.replace(&10, 10, 11));
    assert!(guard.is_current());
    assert!(index.replace_moved(&10, 11, 12));
    assert!(!guard.is_current());
    let guard = guard_of_leaf();
    assert!(!index.remove_moved(&20, 21, &participant));
    assert!(guard.is_current(), "nothing was removed");
    assert!(index.remove_moved(&20, 20, &participant));
    assert!(!guard.is_current());
}

#[test]
fn insert_effects_keep_a_scan_guarded_through_splits() {
    for bits in [0, 52, 60] {
        let participant = participant();
        let index = OrderedIndex::<u64>::with_prefix_bits(bits);
        let mut random = Random::from_seed(u64::from(bits));
        let (_, guards) = scan(&index, Bound::Unbounded, Bound::Unbounded, false);
        let mut guards: HashMap<_, _> = guards.iter().map(|g| (g.node, g.observed)).collect();
        for step in 1..5_000_u64 {
            let Insertion::Inserted(effect) =
                index.insert(&(random.next_u64() >> 48), step, &participant)
            else {
                continue;
            };
            assert_eq!(guards.get(&effect.node), Some(&effect.before));
            guards.insert(effect.node, effect.after);
            for split in effect.splits.into_iter().flatten() {
                assert_eq!(guards.insert(split.node, split.observed), None);
            }
            if step.is_multiple_of(100) {
                let (_, now) = scan(
                    &index,
                    Bound::Unbounded,
                    Bound::Unbounded,
                    step.is_multiple_of(200),
                );
                let now: HashMap<_, _> = now.iter().map(|g| (g.node, g.observed)).collect();
                assert_eq!(now, guards);
            }
        }
    }
}

#[test]
fn a_scan_inside_one_prefix_shares_no_leaf_with_other_prefixes() {
    let participant = participant();
    let index = OrderedIndex::<u64>::with_prefix_bits(48);
    let mut random = Random::from_seed(9);
    for step in 1..20_000 {
        let key = (random.below(20) as u64) << 16 | random.below(1 << 16) as u64;
        index.insert(&key, step, &participant);
    }
    let leaves = |prefix: u64| {
        let (lower, upper) = (prefix << 16, prefix << 16 | 0xffff);
        let forward = scan(
            &index,
            Bound::Included(lower),
            Bound::Included(upper),
            false,
        )
        .1;
        let mut reverse = scan(&index, Bound::Included(lower), Bound::Included(upper), true).1;
        reverse.reverse();
        assert_eq!(forward, reverse);
        forward
    };
    let before: Vec<_> = (0..20).map(leaves).collect();
    let mut nodes: Vec<_> = before.iter().flatten().map(|guard| guard.node).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), before.iter().map(Vec::len).sum::<usize>());
    // Insert into every second prefix, and into prefixes that are new: the others stay current.
    for step in 1..20_000 {
        let prefix = random.below(20) as u64;
        let prefix = if prefix.is_multiple_of(2) {
            prefix
        } else {
            prefix + 20
        };
        let key = prefix << 16 | random.below(1 << 16) as u64;
        index.insert(&key, step, &participant);
    }
    for (prefix, guards) in before.iter().enumerate() {
        let current = guards.iter().all(NodeVersion::is_current);
        assert_eq!(current, prefix % 2 == 1, "prefix {prefix}");
    }
}

/// TPC-C's new_order: insertions at the right end of each prefix, deletions at its left end.
#[test]
fn a_queue_neither_leaks_nor_leaves_empty_leaves_behind() {
    for (bits, prefixes) in [(0, 1), (0, 10), (56, 1), (56, 10), (56, 200)] {
        let participant = participant();
        let index = OrderedIndex::<u64>::with_prefix_bits(bits);
        let key = |prefix: u64, order: u64| prefix << 56 | order;
        let mut random = Random::from_seed(prefixes);
        let mut queues = vec![(0_u64, 0_u64); prefixes as usize];
        let mut bytes_settled = 0;
        let operations = 200_000;
        for operation in 0..operations {
            let prefix = random.below(prefixes as usize);
            let (first, next) = &mut queues[prefix];
            let prefix = prefix as u64;
            if *next - *first < 300 || random.below(2) == 0 {
                assert!(inserted(index.insert(
                    &key(prefix, *next),
                    *next + 1,
                    &participant
                )));
                *next += 1;
            }
            if *next - *first > 300 {
                let mut cursor = index.cursor(
                    Bound::Included(key(prefix, 0)),
                    Bound::Excluded(key(prefix + 1, 0)),
                    false,
                );
                let (mut batch, mut leaves) = (LeafBatch::new(), 0);
                while cursor.next_leaf(&mut batch) && batch.count == 0 {
                    leaves += 1;
                }
                assert_eq!(batch.payloads[0], *first + 1);
                assert!(leaves <= 2, "{leaves} empty leaves before the first entry");
                assert!(index.remove(&key(prefix, *first), *first + 1, &participant));
                *first += 1;
            }
            if operation == operations / 2 {
                bytes_settled = index.bytes();
            }
        }
        assert!(
            index.bytes() <= bytes_settled * 5 / 4,
            "{} bytes grew to {}",
            bytes_settled,
            index.bytes()
        );
        assert_eq!(
            index.len() as u64,
            queues.iter().map(|(first, next)| next - first).sum::<u64>()
        );
    }
}

#[test]
fn an_emptied_tree_is_a_single_leaf_again() {
    for bits in [0, 56] {
        let participant = participant();
        let index = OrderedIndex::<u64>::with_prefix_bits(bits);
        let mut keys: Vec<u64> = (0..100_000).collect();
        let mut random = Random::from_seed(4);
        for removal in ["ascending", "descending", "random"] {
            for &key in &keys {
                assert!(inserted(index.insert(&key, key + 1, &participant)));
            }
            assert!(index.height() >= 2);
            match removal {
                "ascending" => keys.sort_unstable(),
                "descending" => keys.sort_unstable_by(|left, right| right.cmp(left)),
                _ => random.shuffle(&mut keys),
            }
            for key in &keys {
                assert!(index.remove(key, key + 1, &participant));
            }
            assert!(index.is_empty());
            let (_, guards) = scan(&index, Bound::Unbounded, Bound::Unbounded, false);
            assert_eq!(
                (index.height(), guards.len()),
                (0, 1),
                "after {removal} removal"
            );
        }
    }
}

#[test]
fn merging_leaves_keeps_prefixes_apart() {
    let participant = participant();
    let index = OrderedIndex::<u64>::with_prefix_bits(56);
    let mut random = Random::from_seed(12);
    let mut present = vec![false; 64 << 8];
    for step in 0..300_000_u64 {
        let position = random.below(present.len());
        let key = position as u64;
        // Prefixes fill and empty in turn, so that leaves merge next to full ones.
        let fills = (key >> 8) % 3 != (step / 40_000) % 3;
        if fills != present[position] {
            if fills {
                assert!(inserted(index.insert(&key, key + 1, &participant)));
            } else {
                assert!(index.remove(&key, key + 1, &participant));
            }
            present[position] = fills;
        }
        if step % 10_000 == 9_999 {
            let mut owners = HashMap::new();
            for prefix in 0..64_u64 {
                let bounds = (
                    Bound::Included(prefix << 8),
                    Bound::Included(prefix << 8 | 255),
                );
                let (payloads, guards) = scan(&index, bounds.0, bounds.1, prefix.is_multiple_of(2));
                if payloads.is_empty() {
                    continue;
                }
                for guard in guards {
                    assert_eq!(owners.insert(guard.node, prefix), None, "a shared leaf");
                }
            }
        }
    }
}
