//! Limits, their texts, and the days and minutes in which they count.

use super::*;

both!(
    a_total_is_used_up_for_ever,
    days_roll_over_at_midnight_in_utc,
    minutes_roll_over,
    of_several_limits_the_one_that_holds_longest_is_told,
    clients_and_models_are_counted_apart,
    a_clock_that_is_put_back_frees_nothing,
    numbers_saturate,
);

fn a_total_is_used_up_for_ever(desk: &Desk) {
    let charged = desk.charge(97, &total(100), EVENING).unwrap();
    assert_eq!(charged, Charged { used: 97, today: 97, left: Some(3) });
    let refused = desk.refused(10, &total(100), EVENING);
    assert_eq!((refused.left(), refused.wait, refused.limit), (3, None, Limit::Total));
    assert_eq!(
        refused.to_string(),
        "the budget of client `ward-3` for model `mnist` has no room for 10 inputs: 97 of 100 \
         inputs in all; ask the operator"
    );
    desk.charge(3, &total(100), EVENING).unwrap();
    assert_eq!(
        desk.refused(1, &total(100), EVENING + 100 * DAY).to_string(),
        "the budget of client `ward-3` for model `mnist` is used up: 100 of 100 inputs in all; \
         ask the operator"
    );
    assert_eq!(desk.rows(EVENING)[0].used, 100);
}

fn days_roll_over_at_midnight_in_utc(desk: &Desk) {
    desk.charge(20, &per_day(20), EVENING).unwrap();
    let refused = desk.refused(1, &per_day(20), EVENING);
    assert_eq!(refused.wait, Some(Duration::from_secs(5 * 3600)));
    assert_eq!(
        refused.to_string(),
        "the budget of client `ward-3` for model `mnist` is used up: 20 of 20 inputs today; \
         again in 5 h"
    );
    let late = desk.refused(1, &per_day(20), EVENING + 5 * 3600 - 1);
    assert!(late.to_string().ends_with("; again in 1 s"), "{late}");
    let charged = desk.charge(4, &per_day(20), EVENING + 5 * 3600).unwrap();
    assert_eq!(charged, Charged { used: 24, today: 4, left: Some(16) });
    assert_eq!((desk.rows(EVENING + DAY)[0].today, desk.rows(EVENING + 3 * DAY)[0].today), (4, 0));
}

fn minutes_roll_over(desk: &Desk) {
    desk.charge(10, &per_minute(10), EVENING + 48).unwrap();
    let refused = desk.refused(2, &per_minute(10), EVENING + 48);
    assert!(
        refused.to_string().ends_with("10 of 10 inputs in this minute; again in 12 s"),
        "{refused}"
    );
    desk.charge(10, &per_minute(10), EVENING + 60).unwrap();
}

fn of_several_limits_the_one_that_holds_longest_is_told(desk: &Desk) {
    let all = Budget { total: Some(30), per_day: Some(20), per_minute: Some(10) };
    let never = desk.refused(11, &all, EVENING);
    assert_eq!((never.limit, never.wait), (Limit::Minute, None));
    assert_eq!(
        never.to_string(),
        "the budget of client `ward-3` for model `mnist` never has room for 11 inputs at once: \
         10 inputs a minute; ask for fewer at once"
    );
    assert_eq!(desk.charge(10, &all, EVENING).unwrap().left, Some(0));
    assert_eq!(desk.refused(1, &all, EVENING).limit, Limit::Minute);
    desk.charge(10, &all, EVENING + 60).unwrap();
    assert_eq!(desk.refused(1, &all, EVENING + 60).limit, Limit::Day);
    assert!(desk.refused(21, &all, EVENING).to_string().contains("20 of 30 inputs in all"));
    desk.charge(10, &all, EVENING + DAY).unwrap();
    assert_eq!(desk.refused(1, &all, EVENING + DAY).limit, Limit::Total);
    assert_eq!(desk.rows(EVENING)[0].used, 30);
}

fn clients_and_models_are_counted_apart(desk: &Desk) {
    desk.charge(1, &total(1), EVENING).unwrap();
    let ledger = &desk.ledger;
    ledger.charge(&ward(), "resnet", 1, &total(1), at(EVENING)).unwrap();
    let certificate = Client::Certificate("ward-3".into());
    ledger.charge(&certificate, "mnist", 1, &total(1), at(EVENING)).unwrap();
    desk.refused(1, &total(1), EVENING);
    assert_eq!(desk.rows(EVENING).len(), 3);
}

fn a_clock_that_is_put_back_frees_nothing(desk: &Desk) {
    desk.charge(20, &per_day(20), EVENING).unwrap();
    let refused = desk.refused(1, &per_day(20), EVENING - 3 * DAY);
    assert_eq!(refused.wait, Some(Duration::from_secs(3 * DAY + 5 * 3600)));
    desk.charge(1, &total(50), EVENING - DAY).unwrap();
    assert_eq!(desk.rows(EVENING)[0].last_use, Some(EVENING));
    let early = UNIX_EPOCH - Duration::from_secs(1);
    assert!(desk.ledger.charge(&ward(), "mnist", 1, &per_day(20), early).is_err());
}

fn numbers_saturate(desk: &Desk) {
    let none = Budget::default();
    let most = i64::MAX.unsigned_abs();
    assert_eq!(desk.charge(0, &total(0), EVENING).unwrap().left, Some(0));
    assert_eq!(desk.rows(EVENING), []);
    assert_eq!(desk.refused(1, &per_day(0), EVENING).wait, None);
    assert_eq!(desk.charge(u64::MAX, &none, u64::MAX >> 1).unwrap().left, None);
    desk.charge(u64::MAX, &none, EVENING).unwrap();
    assert_eq!(desk.rows(EVENING)[0].used, most);
    desk.refused(1, &total(most), EVENING);
    desk.refused(u64::MAX, &per_day(u64::MAX), EVENING);
    desk.ledger.set(&ward(), "mnist", &total(u64::MAX)).unwrap();
    assert_eq!(desk.rows(EVENING)[0].budget, Some(total(most)));
}
