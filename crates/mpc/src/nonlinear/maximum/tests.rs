use super::*;
use crate::testing::{both, split};
use ring::Random;
use ring::word::signed;

fn finds_maxima(rng: &mut Random, values: &[i64], windows: &[Vec<usize>], bits: u32) {
    let (client, server) = split(rng, values, bits);
    let tournament = Tournament::new(values.len(), windows).unwrap();
    let plan = Maximum::new(tournament, bits, None, Radix::Four).unwrap();
    let (c, s) = both(
        rng,
        &plan.demand(),
        |ch, ots| run(ch, &plan, &client, None, ots),
        |ch, ots| run(ch, &plan, &server, None, ots),
    );
    assert_eq!(c.cost, plan.cost());
    let (ours, theirs) = (c.value.unwrap(), s.value.unwrap());
    let got = Share::reconstruct(&ours[0], &theirs[0]);
    let want = windows.iter().map(|w| w.iter().map(|i| values[*i]).max().unwrap());
    assert_eq!(got, want.collect::<Vec<_>>());
}

#[test]
fn windows_of_any_size_find_their_maximum() {
    let mut rng = Random::seeded(7);
    let bits = 9;
    let mut values: Vec<i64> =
        rng.uniform(60, bits - 1).iter().map(|w| signed(*w, bits - 1)).collect();
    values.extend([127, -128, -128, 127, 0, 0]);
    let windows: Vec<Vec<usize>> =
        vec![vec![0, 1, 2, 3], vec![60, 61, 62], vec![5], (6..60).collect(), vec![62, 63]];
    finds_maxima(&mut rng, &values, &windows, bits);
}

#[test]
fn windows_that_overlap_share_their_rows() {
    // 3x3 windows, two apart, on a 7x7 image: 7*3 rows of two comparisons, then two
    // for each of 9 windows, instead of eight for each.
    let window = |at: usize| {
        let (top, left) = (at / 3 * 2, at % 3 * 2);
        (0..9).map(|i| (top + i / 3) * 7 + left + i % 3).collect()
    };
    let windows: Vec<Vec<usize>> = (0..9).map(window).collect();
    let tournament = Tournament::new(49, &windows).unwrap();
    assert_eq!(
        (tournament.pairs().sum::<usize>(), tournament.levels.len()),
        (7 * 3 * 2 + 9 * 2, 4)
    );
    let mut rng = Random::seeded(8);
    let words: Vec<u64> = rng.uniform(49, 6);
    let values: Vec<i64> = words.iter().map(|w| *w as i64).collect();
    finds_maxima(&mut rng, &values, &windows, 8);
}

#[test]
fn copies_are_as_windows_of_all_inputs() {
    // 2x2 windows, one apart, on three images of 3x4, whose rows are shared, and a window of one.
    let window = |at: usize| {
        let at = at / 3 * 4 + at % 3;
        vec![at, at + 1, at + 4, at + 5]
    };
    let windows: Vec<Vec<usize>> = (0..6).map(window).chain([vec![11]]).collect();
    let (mut rng, bits) = (Random::seeded(9), 8);
    let values: Vec<i64> = rng.uniform(36, bits - 1).iter().map(|w| signed(*w, bits - 1)).collect();
    let (client, server) = split(&mut rng, &values, bits);
    let moved = |copy: usize| {
        let moved = move |window: &Vec<usize>| window.iter().map(|i| 12 * copy + i).collect();
        windows.iter().map(moved)
    };
    let all: Vec<Vec<usize>> = (0..3).flat_map(moved).collect();
    let draws =
        [Tournament::new(12, &windows).unwrap().copies(3), Tournament::new(36, &all).unwrap()];
    let transcripts = draws.map(|draw| {
        let plan = Maximum::new(draw, bits, None, Radix::Four).unwrap();
        let (c, s) = both(
            &mut Random::seeded(10),
            &plan.demand(),
            |ch, ots| run(ch, &plan, &client, None, ots),
            |ch, ots| run(ch, &plan, &server, None, ots),
        );
        assert_eq!(c.cost, plan.cost());
        (c.cost, c.value.unwrap(), s.value.unwrap())
    });
    let [(_, ours, theirs), _] = &transcripts;
    let got = Share::reconstruct(&ours[0], &theirs[0]);
    let want = all.iter().map(|w| w.iter().map(|i| values[*i]).max().unwrap());
    assert_eq!(got, want.collect::<Vec<_>>());
    assert_eq!(transcripts[0].0, transcripts[1].0);
    assert_eq!(transcripts[0].1[0].words(), transcripts[1].1[0].words());
}

/// Every pair of values whose difference fits, under every share of each.
#[test]
fn every_pair_of_small_values_and_shares() {
    let (mut rng, bits) = (Random::seeded(17), 4);
    let pairs: Vec<[i64; 2]> = (-8..8i64)
        .flat_map(|a| (-8..8i64).map(move |b| [a, b]))
        .filter(|[a, b]| (-8..8).contains(&(a - b)))
        .collect();
    for masks in 0..1u64 << (2 * bits) {
        let words = pairs.iter().flat_map(|_| [masks & mask(bits), masks >> bits]);
        let client = Share::new(words.collect(), bits);
        let values = pairs.iter().flatten().zip(client.words());
        let server = values.map(|(v, c)| (*v as u64).wrapping_sub(*c)).collect();
        let server = Share::new(server, bits);
        let windows: Vec<_> = (0..pairs.len()).map(|i| vec![2 * i, 2 * i + 1]).collect();
        let tournament = Tournament::new(client.len(), &windows).unwrap();
        let plan = Maximum::new(tournament, bits, None, Radix::Four).unwrap();
        let (c, s) = both(
            &mut rng,
            &plan.demand(),
            |ch, ots| run(ch, &plan, &client, None, ots),
            |ch, ots| run(ch, &plan, &server, None, ots),
        );
        let got = Share::reconstruct(&c.value.unwrap()[0], &s.value.unwrap()[0]);
        assert!(got.iter().eq(pairs.iter().map(|[a, b]| a.max(b))));
    }
}

#[test]
fn bad_windows_are_refused() {
    assert!(Tournament::new(3, &[vec![]]).is_err());
    assert!(Tournament::new(3, &[vec![3]]).is_err());
}

#[test]
fn levels_of_chained_digits_take_two_rounds_each() {
    for (members, levels) in [(2, 1), (4, 2), (9, 4), (16, 4)] {
        let tournament = Tournament::new(members, &[(0..members).collect()]).unwrap();
        let plan = Maximum::new(tournament, 12, None, Radix::Chain).unwrap();
        assert_eq!(plan.cost().rounds, 2 * levels + 1);
    }
}
