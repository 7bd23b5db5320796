//! Seeded mutations of a corpus: what replays a fuzz target inside `cargo test`,
//! without a fuzzer. Tests only.

use std::fs;
use std::path::Path;

use crate::random::Random;

/// Bytes and words at which parsers break.
const EDGES: [u64; 8] = [0, 1, 0x7f, 0x80, 0xff, 0xffff_ffff, 1 << 63, u64::MAX];
/// Fragments of JSON numbers and structure.
const WORDS: [&[u8]; 12] = [
    b"-1",
    b"0",
    b"18446744073709551616",
    b"67108864",
    b"1e999",
    b"null",
    b"[]",
    b"{}",
    b"\"\"",
    b"\\u001b",
    b"\xff",
    b"[[[[[[[[",
];

/// Runs `target` on every file of the folder `corpus`, on nothing at all, and on
/// `count` mutations of the files; the environment variable `TACIT_REPLAY` replaces
/// `count` for a long run. Panics where `target` does.
///
/// # Panics
/// When the corpus cannot be read or is empty.
pub fn replay(corpus: &str, count: usize, target: impl Fn(&[u8])) {
    let seeds = read(Path::new(corpus));
    assert!(!seeds.is_empty(), "{corpus} is empty");
    let count = std::env::var("TACIT_REPLAY").ok().and_then(|n| n.parse().ok()).unwrap_or(count);
    target(&[]);
    seeds.iter().for_each(|seed| target(seed));
    let mut rng = Random::seeded(count as u64);
    for round in 0..count {
        let mut bytes = seeds.get(round % seeds.len()).cloned().unwrap_or_default();
        for _ in 0..=below(&mut rng, 3) {
            let other = below(&mut rng, seeds.len());
            mutate(&mut rng, &mut bytes, seeds.get(other).map_or(&[], Vec::as_slice));
        }
        target(&bytes);
    }
}

fn read(folder: &Path) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = files.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

fn below(rng: &mut Random, end: usize) -> usize {
    (rng.word() % end.max(1) as u64) as usize
}

/// One change: a bit, a byte, an edge value, a fragment, a cut, a copy or a splice.
fn mutate(rng: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = below(rng, bytes.len() + 1);
    let end = (at + 1 + below(rng, 16)).min(bytes.len()).max(at);
    match rng.word() % 8 {
        0 => {
            let bit = 1 << below(rng, 8);
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
        }
        1 => {
            let random = rng.word() as u8;
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random);
        }
        2 => {
            let edge = EDGES[below(rng, EDGES.len())].to_le_bytes();
            bytes.iter_mut().skip(at).zip(edge).for_each(|(to, from)| *to = from);
        }
        3 => drop(bytes.splice(at..end, WORDS[below(rng, WORDS.len())].iter().copied())),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => {
            let copy = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, copy));
        }
        _ => {
            bytes.truncate(at);
            bytes.extend(other.iter().skip(below(rng, other.len() + 1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_repeat_and_differ() {
        let run = |seed| {
            let mut rng = Random::seeded(seed);
            let mut bytes = b"{\"a\": [1, 2, 3]}".to_vec();
            (0..50).for_each(|_| mutate(&mut rng, &mut bytes, b"other"));
            bytes
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
