use super::*;

#[test]
fn non_uniform_numbers_stay_in_their_range_and_are_not_uniform() {
    let random = &mut Random::from_seed(1);
    let generator = NonUniform::with_random_constant(1023, random);
    let mut counts = vec![0_u32; 3001];
    for _ in 0..300_000 {
        counts[generator.next(random, 1, 3000) as usize] += 1;
    }
    assert_eq!(counts[0], 0);
    // The bitwise or makes numbers with many ones common: far beyond a uniform 100 each.
    assert!(*counts.iter().max().unwrap() > 600);
    assert!(counts[1..].iter().filter(|count| **count > 0).count() > 2900);
}

#[test]
fn a_range_of_one_number_has_that_number() {
    let random = &mut Random::from_seed(2);
    let generator = NonUniform::with_random_constant(255, random);
    assert_eq!(generator.next(random, 7, 7), 7);
}

#[test]
fn the_run_constant_keeps_its_distance_from_the_load_constant() {
    for seed in 0..2_000 {
        let constants = Constants::from_seed(seed);
        let distance = (constants.last_name.c - constants.load_last_name.c).abs();
        assert!((65..=119).contains(&distance), "seed {seed}: {distance}");
        assert!(distance != 96 && distance != 112, "seed {seed}: {distance}");
        assert!((0..=255).contains(&constants.last_name.c));
        assert_eq!(constants, Constants::from_seed(seed));
    }
}

#[test]
fn last_names_are_three_syllables() {
    let name = |number| {
        let mut out = String::new();
        push_last_name(&mut out, number);
        out
    };
    assert_eq!(name(0), "BARBARBAR");
    assert_eq!(name(371), "PRICALLYOUGHT");
    assert_eq!(name(999), "EINGEINGEING");
    assert!((0..1000).all(|number| name(number).len() <= 16));
}

#[test]
fn strings_have_their_lengths_and_alphabets() {
    let random = &mut Random::from_seed(3);
    let mut lengths = [false; 60];
    for _ in 0..2_000 {
        let mut out = String::new();
        push_alphanumeric(&mut out, random, 8, 16);
        lengths[out.len()] = true;
        assert!(out.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        out.clear();
        push_zip(&mut out, random);
        assert!(out.len() == 9 && out.ends_with("11111"));
        assert!(out.bytes().all(|byte| byte.is_ascii_digit()));
        out.clear();
        push_capitals(&mut out, random, 2);
        assert!(out.len() == 2 && out.bytes().all(|byte| byte.is_ascii_uppercase()));
    }
    let drawn: Vec<usize> = (0..60).filter(|length| lengths[*length]).collect();
    assert_eq!(drawn, (8..=16).collect::<Vec<_>>());
}

#[test]
fn one_in_ten_data_strings_is_original() {
    let random = &mut Random::from_seed(4);
    let mut originals = 0;
    for _ in 0..20_000 {
        let mut out = String::from("kept ");
        push_original_data(&mut out, random);
        assert!(out.starts_with("kept ") && (31..=55).contains(&out.len()));
        originals += u32::from(out.contains("ORIGINAL"));
    }
    assert!((1_800..2_200).contains(&originals), "{originals}");
}

#[test]
fn every_character_is_about_as_common() {
    let random = &mut Random::from_seed(5);
    let mut out = String::new();
    push_random(&mut out, random, ALPHANUMERIC, 620_000);
    for character in ALPHANUMERIC {
        let count = out.bytes().filter(|byte| byte == character).count();
        assert!(
            (9_500..10_500).contains(&count),
            "{}: {count}",
            *character as char
        );
    }
}

#[test]
fn a_permutation_has_every_number_once() {
    let mut numbers = permutation(&mut Random::from_seed(6), 3000);
    assert_ne!(numbers[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=3000).collect::<Vec<_>>());
}

#[test]
fn zipf_frequencies_follow_the_formula() {
    const DRAWS: usize = 400_000;
    for theta in [0.0, 0.1, 0.5, 0.9, 1.0, 1.5] {
        let zipf = Zipf::new(1000, theta);
        let random = &mut Random::from_seed(7);
        let mut counts = vec![0_usize; 1001];
        for _ in 0..DRAWS {
            counts[zipf.next(random) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        let zeta: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).sum();
        for rank in [1, 2, 10, 100, 1000_usize] {
            let expected = (rank as f64).powf(-theta) / zeta * DRAWS as f64;
            // Five standard deviations of a Poisson count.
            let tolerance = 5.0 * expected.sqrt() + 1.0;
            let off = (counts[rank] as f64 - expected).abs();
            assert!(
                off < tolerance,
                "theta {theta}, rank {rank}: {} {expected}",
                counts[rank]
            );
        }
    }
}

#[test]
fn zipf_over_one_rank_is_that_rank() {
    let random = &mut Random::from_seed(8);
    assert!((0..100).all(|_| Zipf::new(1, 0.9).next(random) == 1));
}
