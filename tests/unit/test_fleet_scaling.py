"""How many servers a fleet has, which start and which drain: the rules, without Ray."""

import random

import pytest
from tacit.fleet.config import Scaling
from tacit.fleet.rolling import DRAINING, READY, STARTING, View, reconcile
from tacit.fleet.scaling import Backoff, Load, Scaler

RULES = Scaling(load=0.5, after=2.0, cool_down=60.0)


def scaler(least=1, most=10):
    return Scaler(RULES, least, most, sessions=4)


def test_more_sessions_need_more_servers_soon():
    rule = scaler()
    assert rule.decide(Load(1, running=2, allowed=4), 0.0) == 1
    crowd = Load(1, running=4, waiting=8, allowed=4)
    assert [rule.decide(crowd, now) for now in (1.0, 2.0, 3.0)] == [1, 1, 6]


def test_a_moment_s_crowd_starts_no_server():
    rule = scaler()
    assert rule.decide(Load(1, running=4, waiting=9, allowed=4), 0.0) == 1
    assert rule.decide(Load(1, running=1, allowed=4), 1.0) == 1
    assert rule.decide(Load(1, running=4, waiting=9, allowed=4), 2.5) == 1


def test_fewer_servers_only_after_the_cool_down():
    rule = scaler()
    rule.wanted = 4
    idle = Load(4, allowed=16)
    assert {rule.decide(idle, float(now)) for now in range(60)} == {4}
    assert rule.decide(Load(4, running=5, allowed=16), 61.0) == 3
    assert rule.decide(idle, 90.0) == 3
    assert [rule.decide(idle, float(now)) for now in (120, 151)] == [3, 1]


def test_the_bounds_hold_whatever_the_load():
    rule = scaler(2, 3)
    assert rule.decide(Load(0), 0.0) == 2
    for now in range(100):
        wanted = rule.decide(Load(2, running=8, waiting=100, allowed=8), float(now))
    assert wanted == 3


def test_stores_that_run_dry_need_another_server():
    rule = scaler()
    assert rule.need(Load(2, running=2, allowed=8, dry=1)) == 3
    assert rule.need(Load(3, running=2, allowed=12, dry=1)) == 1


def test_an_operator_s_number_holds_until_it_is_given_back():
    rule = scaler()
    rule.fixed = 7
    assert rule.decide(Load(1), 0.0) == 7
    rule.fixed = None
    assert rule.decide(Load(7), 1.0) == 7
    assert rule.decide(Load(7), 62.0) == 1


def test_servers_that_fail_at_once_start_again_after_longer_and_longer():
    rule = Backoff(longest=5.0)
    pauses = []
    for _ in range(6):
        rule.failed(100.0, ready_for=0.0)
        pauses.append(rule.waits(100.0))
    assert pauses == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert rule.waits(105.0) == 0
    rule.failed(200.0, ready_for=3600.0)
    assert rule.waits(200.0) == 0


def test_gaps_are_filled_and_the_idle_leave_first():
    ready = View("a", "1", READY)
    assert reconcile([ready], 3, "1", 1).start == 2
    busy, idle, coming = View("b", "1", READY, 5), View("c", "1", READY, 1), View("d", "1", STARTING)
    assert reconcile([busy, idle, coming], 1, "1", 1).drain == ("d", "c")
    assert reconcile([busy, View("e", "1", DRAINING)], 1, "1", 1) == reconcile([busy], 1, "1", 1)


@pytest.mark.parametrize("surge", [0, 1, 3])
@pytest.mark.parametrize("want", [1, 2, 5])
def test_a_replaced_model_rolls_and_keeps_its_servers(want, surge):
    views = {f"old{at}": View(f"old{at}", "1", READY, at) for at in range(want)}
    draw, number = random.Random(want * 10 + surge), 0
    for _ in range(200):
        alive = [view for view in views.values() if view.state in (READY, STARTING)]
        ready = [view for view in views.values() if view.state == READY]
        assert len(alive) <= want + surge
        assert len(ready) >= want - (surge == 0)
        actions = reconcile(list(views.values()), want, "2", surge)
        for id in actions.drain:
            views[id] = View(id, views[id].generation, DRAINING)
        for _ in range(actions.start):
            number += 1
            views[f"new{number}"] = View(f"new{number}", "2", STARTING)
        for view in list(views.values()):
            if view.state == STARTING and draw.random() < 0.3:
                views[view.id] = View(view.id, view.generation, READY)
            if view.state == DRAINING and draw.random() < 0.3:
                del views[view.id]
    assert {(view.generation, view.state) for view in views.values()} == {("2", READY)}
    assert len(views) == want
