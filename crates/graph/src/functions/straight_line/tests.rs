use super::*;

#[test]
fn ranges_hold_and_rings_are_what_readers_need() {
    let mut builder = Builder::new([0, 100]);
    let square = builder.square(0);
    let reached = builder.at_least(square, 5000);
    let chosen = builder.choose(reached, square);
    let sum = builder.affine(&[(chosen, 3), (0, -8)], 7);
    builder.rounded(sum, 4);
    let loose = builder.clone().finish(9).unwrap();
    let tight = builder.finish_over(0..=100, 12).unwrap();
    for x in 0..=100i64 {
        let kept = if x * x >= 5000 { x * x } else { 0 };
        let want = (3 * kept - 8 * x + 7 + 8) >> 4;
        assert_eq!([loose.clear(x), tight.clear(x)], [want; 2]);
        let ranges = [loose.range(), tight.range()];
        assert!(ranges.iter().all(|[low, high]| (*low..=*high).contains(&want)));
    }
    assert!(tight.range()[1] <= loose.range()[1]);
    // The square of 100 and a bit to spare; shares of the result as asked for.
    assert_eq!((loose.bits(), tight.bits()), ([8, 9], [8, 12]));
    assert!(tight.weight() > 0);
}

#[test]
fn programs_that_no_protocol_runs_are_refused() {
    let refused = |make: &dyn Fn(&mut Builder) -> usize| {
        let mut builder = Builder::new([-5, 1 << 30]);
        make(&mut builder);
        builder.finish(8).is_err()
    };
    assert!(refused(&|b| b.square(0)));
    assert!(refused(&|b| {
        let positive = b.affine(&[(0, 1)], 5);
        let square = b.square(positive);
        b.square(square)
    }));
    assert!(refused(&|b| b.lookup(0, vec![1, 2])));
    assert!(refused(&|b| {
        let bit = b.at_least(0, 3);
        b.affine(&[(bit, 1)], 0)
    }));
    assert!(refused(&|b| b.choose(0, 0)));
    assert!(!refused(&|b| {
        let bit = b.at_least(0, 3);
        b.choose(bit, 0)
    }));
}

#[test]
fn an_inlined_program_computes_the_same() {
    let mut inner = Builder::new([1, 9]);
    let square = inner.square(0);
    inner.affine(&[(square, 2), (0, 1)], -1);
    let inner = inner.finish(10).unwrap();
    let mut outer = Builder::new([0, 8]);
    let moved = outer.affine(&[(0, 1)], 1);
    let result = outer.inline(&inner, moved);
    outer.affine(&[(result, 3)], 0);
    let outer = outer.finish(12).unwrap();
    for x in 0..=8 {
        assert_eq!(outer.clear(x), 3 * inner.clear(x + 1));
    }
}
