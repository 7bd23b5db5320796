//! Independent work on several threads, as far as [`Helpers`] are free.

use std::thread;

use ring::cpu::CpuTime;
use ring::helpers::Helpers;

/// Items of a batch for each thread, so that starting threads costs little.
const EACH: usize = 4;

/// How many items [`map`] is best given at once.
pub(crate) fn batch(threads: usize) -> usize {
    if threads < 2 { 1 } else { EACH * threads }
}

/// Maps `items` in their order, on up to `threads` threads, as far as cores are free.
///
/// # Panics
/// When `f` does.
pub fn map<T: Send, U: Send>(threads: usize, items: Vec<T>, f: impl Fn(T) -> U + Sync) -> Vec<U> {
    if threads < 2 || items.len() < 2 {
        return items.into_iter().map(f).collect();
    }
    let helpers = Helpers::take((threads - 1).min(items.len() - 1));
    if helpers.count() == 0 {
        return items.into_iter().map(f).collect();
    }
    let each = items.len().div_ceil(helpers.count() + 1);
    let mut items = items.into_iter();
    let mut parts: Vec<Vec<T>> = Vec::new();
    while items.len() > 0 {
        parts.push(items.by_ref().take(each).collect());
    }
    let mut parts = parts.into_iter();
    let first = parts.next().unwrap_or_default();
    let (f, time) = (&f, &CpuTime::current());
    let run = move |part: Vec<T>| {
        let _counting = time.as_ref().map(CpuTime::count);
        part.into_iter().map(f).collect::<Vec<U>>()
    };
    thread::scope(|scope| {
        let start = |part: Vec<T>| scope.spawn(move || run(part));
        let started: Vec<_> = parts.map(start).collect();
        // The thread that asks does its own part.
        let mut results: Vec<U> = first.into_iter().map(f).collect();
        for thread in started {
            match thread.join() {
                Ok(more) => results.extend(more),
                Err(cause) => std::panic::resume_unwind(cause),
            }
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        for threads in [1, 2, 3, 8, 100] {
            for count in [0, 1, 5, 64] {
                let squares = map(threads, (0..count).collect(), |x: usize| x * x);
                assert_eq!(squares, (0..count).map(|x| x * x).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn panics_come_through() {
        map(2, vec![1, 2], |x| assert!(x == 1, "on purpose"));
    }
}
