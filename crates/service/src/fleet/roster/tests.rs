use runtime::Reveal;

use super::*;
use crate::tokens::hexadecimal;

fn model(name: &str) -> ModelNews {
    ModelNews {
        name: name.into(),
        graph_digest: String::new(),
        values: 784,
        batch: 1,
        reveals: vec![Reveal::Output],
        budget: None,
    }
}

fn run(number: u8) -> [u8; 16] {
    [number; 16]
}

fn joined(roster: &mut Roster, id: &str, number: u8, models: &[&str], now: Instant) {
    joined_at(roster, (id, number), models, None, now);
}

fn joined_at(
    roster: &mut Roster,
    (id, number): (&str, u8),
    models: &[&str],
    websocket: Option<String>,
    now: Instant,
) {
    let join = Join {
        server: id.into(),
        run: hexadecimal(&run(number)),
        address: format!("10.0.0.{number}:7000"),
        websocket,
        models: models.iter().map(|name| model(name)).collect(),
        limit: 4,
        kept: Vec::new(),
    };
    roster.join(join, now).unwrap();
    beat(roster, id, number, Beat { allowed: 2, ..Beat::default() }, now);
}

fn beat(roster: &mut Roster, id: &str, number: u8, beat: Beat, now: Instant) -> usize {
    roster.beat(id, &run(number), beat, now).unwrap().2
}

fn wanted(name: &str) -> Wanted {
    Wanted { model: runtime::model_name(name), reveal: None, kept: None, browser: false }
}

fn chosen(roster: &Roster, wanted: &Wanted, now: Instant) -> String {
    match roster.choose(wanted, now) {
        Choice::Server(chosen) => chosen.server,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_busy_of_those_that_have_the_model_is_chosen() {
    let (mut roster, now) = (Roster::default(), Instant::now());
    assert_eq!(roster.choose(&wanted("a"), now), Choice::Full, "none has come yet");
    joined(&mut roster, "one", 1, &["a"], now);
    joined(&mut roster, "two", 2, &["a", "b"], now);
    assert_eq!(chosen(&roster, &wanted("b"), now), "two");
    beat(&mut roster, "one", 1, Beat { allowed: 2, running: 1, ..Beat::default() }, now);
    assert_eq!(chosen(&roster, &wanted("a"), now), "two");
    roster.give(("two", &run(2)), [1; 16], now + Duration::from_secs(30));
    roster.give(("two", &run(2)), [2; 16], now + Duration::from_secs(30));
    assert_eq!(chosen(&roster, &wanted("a"), now), "one", "tickets that are out count");
    roster.give(("one", &run(1)), [3; 16], now + Duration::from_secs(30));
    roster.give(("one", &run(1)), [4; 16], now + Duration::from_secs(30));
    roster.give(("two", &run(2)), [5; 16], now + Duration::from_secs(30));
    assert_eq!(roster.choose(&wanted("a"), now), Choice::Full);
    let shown = Beat { allowed: 2, shown: vec![hexadecimal(&[1; 16])], ..Beat::default() };
    assert_eq!(beat(&mut roster, "two", 2, shown, now), 2);
    assert_eq!(chosen(&roster, &wanted("a"), now), "two");
    roster.take_back(&[5; 16]);
    assert_eq!(roster.choose(&wanted("c"), now), Choice::Unknown(vec!["a".into(), "b".into()]));
    let learns = Wanted { reveal: Some(Reveal::Label), ..wanted("a") };
    assert!(matches!(roster.choose(&learns, now), Choice::Unknown(_)));
    let nameless = Wanted { model: [0; 32], ..wanted("a") };
    assert_eq!(roster.choose(&nameless, now), Choice::Full, "only a server with one model counts");
}

#[test]
fn a_server_of_short_sessions_has_one_in_line() {
    let (mut roster, now) = (Roster::default(), Instant::now());
    joined(&mut roster, "one", 1, &["a"], now);
    for (mean, has_room) in [(None, false), (Some(5.0), false), (Some(0.1), true)] {
        let busy = Beat { allowed: 2, running: 3, mean, ..Beat::default() };
        beat(&mut roster, "one", 1, busy, now);
        assert_eq!(matches!(roster.choose(&wanted("a"), now), Choice::Server(_)), has_room);
    }
}

#[test]
fn silent_draining_and_gone_servers_get_nothing() {
    let (mut roster, now) = (Roster::default(), Instant::now());
    joined(&mut roster, "one", 1, &["a"], now);
    let late = now + SILENT + Duration::from_millis(1);
    assert_eq!(roster.choose(&wanted("a"), late), Choice::Full);
    assert!(roster.choose_any(false, late).is_none() && roster.choose_any(false, now).is_some());
    beat(&mut roster, "one", 1, Beat { allowed: 2, ..Beat::default() }, late);
    assert_eq!(chosen(&roster, &wanted("a"), late), "one");
    assert!(roster.drain("one", 5.0) && !roster.drain("none", 5.0));
    assert_eq!(roster.choose(&wanted("a"), late), Choice::Full);
    let told = roster.beat("one", &run(1), Beat { draining: true, ..Beat::default() }, late);
    assert_eq!(told, Some((Some(State::Draining), Some(5.0), 0)));
    // A new run takes the place of the old one, whose news count for nothing.
    joined(&mut roster, "one", 9, &["a"], late);
    assert!(roster.beat("one", &run(1), Beat::default(), late).is_none());
    assert!(!roster.leave("one", &run(1)));
    assert_eq!(chosen(&roster, &wanted("a"), late), "one");
    assert!(roster.leave("one", &run(9)) && !roster.leave("one", &run(9)));
    assert_eq!(roster.choose(&wanted("a"), late), Choice::Full, "it may come back");
}

#[test]
fn a_client_goes_where_its_base_ots_are_while_there_is_room() {
    let (mut roster, now) = (Roster::default(), Instant::now());
    for (id, number) in [("one", 1), ("two", 2)] {
        joined(&mut roster, id, number, &["a"], now);
    }
    let keeps = Beat { allowed: 2, running: 2, kept: vec!["k".into()], ..Beat::default() };
    beat(&mut roster, "two", 2, keeps, now);
    let comes_back = Wanted { kept: Some("k".into()), ..wanted("a") };
    assert_eq!(chosen(&roster, &comes_back, now), "two", "although it has more to do");
    assert_eq!(chosen(&roster, &wanted("a"), now), "one");
    let full = Beat { allowed: 2, running: 3, ..Beat::default() };
    beat(&mut roster, "two", 2, full, now);
    assert_eq!(chosen(&roster, &comes_back, now), "one");
    roster.leave("two", &run(2));
    joined(&mut roster, "two", 3, &["a"], now);
    assert!(roster.kept.is_empty(), "another run keeps nothing of the last one");
}

#[test]
fn browsers_go_to_servers_that_take_websockets() {
    let (mut roster, now) = (Roster::default(), Instant::now());
    joined(&mut roster, "one", 1, &["a"], now);
    let browser = Wanted { browser: true, ..wanted("a") };
    assert_eq!(roster.choose(&browser, now), Choice::NoWebSocket);
    assert!(roster.choose_any(true, now).is_none());
    let address = "a.example.org:7443".to_string();
    joined_at(&mut roster, ("two", 2), &["a"], Some(address.clone()), now);
    let Choice::Server(found) = roster.choose(&browser, now) else { panic!("no server") };
    assert_eq!((found.server.as_str(), &found.address), ("two", &address));
    assert_eq!(roster.choose_any(true, now).unwrap().2, address);
    let busy = Beat { allowed: 2, running: 1, ..Beat::default() };
    beat(&mut roster, "one", 1, busy, now);
    let Choice::Server(found) = roster.choose(&wanted("a"), now) else { panic!("no server") };
    assert_eq!(found.address, "10.0.0.2:7000", "others go to the same server by TCP");
    roster.leave("two", &run(2));
    assert_eq!(roster.choose(&browser, now), Choice::Full, "it may come back");
}
