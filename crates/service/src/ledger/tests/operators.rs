//! What operators do to a ledger, and who charges it at the same time.

use super::*;

both!(
    an_operator_sets_and_takes_back_and_resets,
    many_open_a_new_ledger_at_once,
    threads_of_several_handles_never_exceed_a_budget,
);

fn an_operator_sets_and_takes_back_and_resets(desk: &Desk) {
    let Desk { ledger, .. } = desk;
    ledger.set(&ward(), "mnist", &total(5)).unwrap();
    let own = Row {
        client: "token:ward-3".into(),
        model: "mnist".into(),
        budget: Some(total(5)),
        used: 0,
        today: 0,
        last_use: None,
    };
    assert_eq!(desk.rows(EVENING), std::slice::from_ref(&own));
    desk.charge(5, &total(1), EVENING).unwrap();
    desk.refused(1, &Budget::default(), EVENING);
    ledger.set(&ward(), "mnist", &per_day(7)).unwrap();
    let used = Row { budget: Some(per_day(7)), used: 5, today: 5, last_use: Some(EVENING), ..own };
    assert_eq!(desk.rows(EVENING), [used]);
    assert!(ledger.unset(&ward(), "mnist").unwrap() && !ledger.unset(&ward(), "mnist").unwrap());
    desk.refused(1, &total(5), EVENING);

    ledger.charge(&ward(), "resnet", 1, &Budget::default(), at(EVENING)).unwrap();
    let chosen = Chosen { client: Some(ward()), model: Some("mnist".into()) };
    assert_eq!(ledger.show(&chosen, at(EVENING)).unwrap().len(), 1);
    assert_eq!(ledger.reset(&chosen).unwrap(), 1);
    desk.charge(5, &total(5), EVENING).unwrap();
    assert_eq!(ledger.reset(&Chosen::default()).unwrap(), 2);
    assert_eq!(desk.rows(EVENING), []);
}

fn threads_of_several_handles_never_exceed_a_budget(desk: &Desk) {
    let second = Ledger::open_existing(desk.path()).unwrap();
    let granted: u64 = std::thread::scope(|scope| {
        let charging = |ledger: &Ledger| {
            let once = || ledger.charge(&ward(), "mnist", 1, &total(100), at(EVENING));
            (0..40).map(|_| u64::from(once().is_ok())).sum::<u64>()
        };
        let ledgers = [&desk.ledger, &second, &desk.ledger, &second];
        let threads = ledgers.map(|ledger| scope.spawn(move || charging(ledger)));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((granted, desk.rows(EVENING)[0].used), (100, 100));
}

fn many_open_a_new_ledger_at_once(desk: &Desk) {
    let place = desk.another();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let ledger = Ledger::open(&place).unwrap();
                ledger.charge(&ward(), "mnist", 1, &total(8), at(EVENING)).unwrap();
            });
        }
    });
    let rows = Ledger::open(&place).unwrap().show(&Chosen::default(), at(EVENING)).unwrap();
    assert_eq!(rows[0].used, 8);
}
