"""The simulator of a fleet against closed formulas of queueing theory, conservation laws and the gate in Rust."""

import json
from dataclasses import replace
from math import comb, factorial, log
from random import Random

import numpy as np
import pytest
from simpy import Environment, Event
from tacit.errors import MisuseError
from tacit.fleet.simulation import arrivals, sizing
from tacit.fleet.simulation.arrivals import DAY, Closed, Open, Recorded
from tacit.fleet.simulation.costs import LEAST_CONTENTION, LOOPBACK, Costs, Phase, of, read
from tacit.fleet.simulation.door import Door, DoorSettings
from tacit.fleet.simulation.gate import Limits, Server
from tacit.fleet.simulation.model import Fleet, run, slices
from tacit.fleet.simulation.prices import Prices
from tacit.fleet.simulation.sharing import Sharing, User
from tacit.session.network import Network, parse

JOBS = 40_000
QUANTILES = 10_000
EXPONENTIAL = tuple(-log(1 - (at + 0.5) / QUANTILES) for at in range(QUANTILES))
AT_ONCE = DoorSettings(queue=10**9, heartbeat_seconds=0.0, ahead=0)


def job(server=1.0, client=0.0, both=0.0, idle=0.0, factors=(1.0,)):
    return Costs("job", 1, (Phase(server, client, both, idle, 0, 0),), 0, None, factors)


def fleet(servers=1, cores=1, **given):
    return Fleet(servers=servers, cores=cores, door=AT_ONCE, door_seconds=0.0, **given)


def erlang_c(servers, load):
    """Probability that a job of M/M/c waits (Erlang 1917), for a load of jobs that are served at a time."""
    busy = load**servers / factorial(servers) * servers / (servers - load)
    return busy / (sum(load**n / factorial(n) for n in range(servers)) + busy)


@pytest.mark.parametrize(("servers", "usage"), [(1, 0.6), (4, 0.75), (20, 0.85)])
def test_one_queue_before_many_servers_is_m_m_c(servers, usage):
    load = servers * usage
    outcome = run(job(factors=EXPONENTIAL), fleet(servers, sessions=1), Open(JOBS, JOBS / load), seed=1, warm=200)
    waits = erlang_c(servers, load)
    assert (outcome.waits > 1e-9).mean() == pytest.approx(waits, rel=0.1)
    assert outcome.waits.mean() == pytest.approx(waits / (servers - load), rel=0.15)
    # The tail of the wait is exponential: half of those that wait do so longer than this.
    late = log(2) / (servers - load)
    assert (outcome.waits > late).mean() == pytest.approx(waits / 2, rel=0.2)
    assert outcome.cores == pytest.approx(usage, rel=0.03)


@pytest.mark.parametrize("usage", [0.5, 0.8])
def test_jobs_of_one_length_are_m_d_1(usage):
    outcome = run(job(), fleet(sessions=1), Open(JOBS, JOBS / usage), seed=2, warm=200)
    assert outcome.waits.mean() == pytest.approx(usage / (2 * (1 - usage)), rel=0.1)
    assert outcome.durations.mean() == pytest.approx(1 + usage / (2 * (1 - usage)), rel=0.02)


@pytest.mark.parametrize("factors", [(1.0,), EXPONENTIAL, (0.2, 1.8)], ids=["one", "exponential", "two"])
def test_shared_processors_make_jobs_take_as_long_whatever_their_lengths(factors):
    """M/G/1 with processor sharing: the mean is s / (1 - usage) for every distribution (Kleinrock 1976, 4.4)."""
    outcome = run(job(factors=factors), fleet(paced=False, sessions=10**6), Open(JOBS, JOBS / 0.7), seed=3, warm=200)
    assert outcome.durations.mean() == pytest.approx(1 / 0.3, rel=0.1)
    assert outcome.waits.max() == 0


def test_shared_cores_hold_as_many_jobs_as_m_m_c():
    outcome = run(
        job(factors=EXPONENTIAL), fleet(cores=4, paced=False, sessions=10**6), Open(JOBS, JOBS / 3.2), seed=4, warm=200
    )
    assert outcome.durations.mean() == pytest.approx(1 + erlang_c(4, 3.2) / 0.8, rel=0.1)


def test_clients_that_come_back_are_the_machine_repair_model():
    clients, think = 6, 3.0
    load = Closed(clients, 20_000, think)
    outcome = run(job(factors=EXPONENTIAL), fleet(paced=False, sessions=100), load, seed=5, warm=200)
    idle = 1 / sum(comb(clients, n) * factorial(n) / think**n for n in range(clients + 1))
    assert outcome.cores == pytest.approx(1 - idle, rel=0.02)
    assert outcome.finished / load.seconds == pytest.approx(1 - idle, rel=0.02)


def test_nothing_is_lost_and_nothing_is_made():
    costs = Costs("x", 1, (Phase(0.3, 0.2, 0.1, 0.05, 10_000, 4), Phase(0.5, 0.5, 0.2, 0.0, 0, 0)), 5_000)
    for balance in ("door", "random", "turns"):
        outcome = run(costs, Fleet(servers=3, balance=balance, queue=2, door=DoorSettings(queue=2)), Open(9_000, 900))
        assert outcome.begun == outcome.finished + outcome.refused
        assert outcome.refused > 0
        assert outcome.finished == len(outcome.records)
        assert outcome.core_seconds == pytest.approx(0.8 * outcome.finished, rel=1e-6)
        assert outcome.cores <= 1 + 1e-9
        assert outcome.waits.min() >= 0
        assert outcome.durations.min() >= costs.seconds() - 1e-9


def test_clients_on_the_same_cores_are_counted_there():
    costs = job(0.3, 0.5, 0.2, 0.1)
    alone = run(costs, fleet(cores=2, clients_share_cores=True, sessions=9), Open(50, 50_000), seed=6)
    # Nobody meets another: what both do at the same time takes no longer.
    assert np.median(alone.durations) == pytest.approx(costs.seconds())
    assert alone.core_seconds == pytest.approx(0.8 * alone.finished)
    single = run(costs, fleet(cores=1, clients_share_cores=True, sessions=9), Open(50, 50_000), seed=6)
    assert np.median(single.durations) == pytest.approx(0.9)


def test_a_party_that_is_woken_waits_for_a_core_only_while_all_are_busy():
    # Messages wake the server, which receives every other of them, six times.
    costs = Costs("job", 1, (Phase(1.0, 0.0, 0.0, 0.0, 0, 12),), 0)
    moments = tuple(10.0 * at + late for at in range(2_000) for late in (0.0, 0.5))
    alone = run(costs, fleet(cores=2, paced=False, sessions=9, wake_seconds=0.1), Recorded(moments, 2e4), seed=7)
    assert alone.durations == pytest.approx(np.ones(4_000))
    outcome = run(costs, fleet(paced=False, sessions=9, wake_seconds=0.1), Recorded(moments, 2e4), seed=7)
    assert outcome.core_seconds == pytest.approx(4_000)
    # Of each of the six pieces that finds the core busy the wait is 0.05 to 0.15 s, and the other goes on meanwhile:
    # the core is idle only where one of a pair still waits after the other has gone.
    ends = outcome.records[:, 0] + outcome.durations
    last = ends[np.argsort(outcome.records[:, 0])].reshape(-1, 2).max(axis=1) - np.arange(0, 2e4, 10)
    assert 2.0 - 1e-9 <= last.min() < last.max() <= 2.15
    assert 2.0 < last.mean() < 2.1


def test_the_same_seed_gives_the_same_sessions():
    first, second, other = (
        run(job(factors=EXPONENTIAL), fleet(3), Open(2_000, 1_000), seed=seed) for seed in (7, 7, 8)
    )
    assert np.array_equal(first.records, second.records)
    assert not np.array_equal(first.records[:100], other.records[:100])


def test_tasks_divide_a_capacity_evenly():
    env = Environment()
    machine = Sharing(env, 2)
    mine, ended = User(machine), []
    for seconds, user in ((1.0, mine), (2.0, None), (2.0, mine), (4.0, None)):
        machine.work(seconds, user).callbacks.append(lambda _: ended.append(env.now))
    env.run()
    # Four at half speed until 2, three at two thirds until 3.5, then one alone for what is left of it.
    assert ended == pytest.approx([2.0, 3.5, 3.5, 5.5])
    assert mine.used() == pytest.approx(3.0)
    assert machine.busy() == pytest.approx(9.0)


def test_tasks_that_run_together_slow_each_other():
    env = Environment()
    machine = Sharing(env, 3, contention=1.4)
    mine, ended = User(machine), []
    for seconds, user in ((1.0, mine), (1.0, None), (2.0, None), (2.0, None)):
        machine.work(seconds, user).callbacks.append(lambda _: ended.append(env.now))
    env.run()
    # Four on three cores at 1 / 1.4 for two units of work in all four, then two at 1 / 1.2.
    first = 4 / 3 * 1.4
    assert ended == pytest.approx([first, first, first + 1.2, first + 1.2])
    # Cores count as long as they are busy.
    assert mine.used() == pytest.approx(1.4)
    assert machine.busy() == pytest.approx(4 * 1.4 + 2 * 1.2)


def test_contention_is_what_sessions_take_more_on_busy_cores():
    costs = job(0.3, 0.5, 0.2, 0.1)
    # Of 0.8 s of both processors 0.4 pass while both compute, and are slowed already.
    slowed = costs.contended(1.0)
    assert slowed.contention == pytest.approx(1.5)
    busy = slowed.contention * (0.8 - 0.4 + 0.4 / slowed.contention)
    assert busy == pytest.approx(1.0)
    # Sessions among others may take less than one alone, which has to wake the cores, but not anything less.
    assert costs.contended(0.7).contention == pytest.approx(0.75)
    assert costs.contended(0.5).contention == LEAST_CONTENTION
    alone = run(slowed, fleet(cores=2, clients_share_cores=True, sessions=9), Open(50, 50_000), seed=6)
    assert np.median(alone.durations) == pytest.approx(costs.seconds())
    many = run(slowed, fleet(cores=2, clients_share_cores=True, sessions=9), Closed(8, 2_000.0), seed=6)
    assert many.core_seconds / many.finished == pytest.approx(1.0, rel=0.01)


def gate(cores, sessions):
    env = Environment()
    return Server(env, Sharing(env, cores), Limits(cores, sessions))


def test_the_gate_decides_as_the_server_does():
    """The numbers of the tests of crates/service/src/pace.rs."""
    server = gate(2, 16)
    assert server.allowed == 3
    for _ in range(9):
        server.decide(1.0, 0.1)
    assert server.allowed == 3
    assert gate(2, 1).allowed == 1
    seen = []
    server.queue.append(server.env.event())
    for _ in range(4):
        server.decide(0.6, 1.2)
        seen.append(server.allowed)
    assert seen == [6, 12, 16, 16]
    server.queue.clear()
    server.peak = server.running = 16
    server.decide(0.6, 1.2)
    assert server.allowed == 16
    server.peak, server.running = 9, 0
    seen = []
    for _ in range(3):
        server.decide(0.6, 1.2)
        seen.append(server.allowed)
    assert seen == [10, 3, 3]


def test_the_door_gives_the_least_full_server_and_then_a_place_in_its_queue():
    env = Environment()
    servers = [Server(env, Sharing(env, 1), Limits(1, 4, paced=True)) for _ in range(2)]
    door = Door(env, servers, DoorSettings(queue=1, heartbeat_seconds=0.2), Random(0))
    # Two are allowed and one more has room, so that the server notices.
    given = [door.ask() for _ in range(6)]
    assert [servers.index(server) for server in given] == [0, 1, 0, 1, 0, 1]
    waiting = door.ask()
    assert door.ask() is None
    door.told(servers[1])
    assert waiting.triggered and waiting.value is servers[1]
    last = door.ask()
    servers[0].allowed = 3
    door.changed(servers[0])
    assert not last.triggered
    env.run(until=0.2)
    assert last.value is servers[0]
    # More than the limit is never given.
    servers[0].allowed = 4
    door.hear(0)
    assert (door.known, door.room) == ([4, 3], [4, 3])
    assert isinstance(door.ask(), Event)


def test_servers_that_allow_more_get_more_unless_the_limit_counts():
    env = Environment()
    given = []
    for by_limit in (False, True):
        servers = [Server(env, Sharing(env, 1), Limits(1, 16)) for _ in range(2)]
        servers[0].allowed = 11
        door = Door(env, servers, DoorSettings(heartbeat_seconds=0.0, by_limit=by_limit), Random(0))
        given.append([servers.index(door.ask()) for _ in range(5)].count(0))
    assert given == [4, 3]


def test_sessions_that_wait_for_their_links_make_room_for_others():
    """On a slow link processors have little to do: more than one session a core and one runs, and few wait."""
    costs = Costs("slow", 1, (Phase(0.01, 0.0, 0.0, 0.0, 0, 50),), 0)
    slow = Fleet(cores=2, door_seconds=0.0, link=Network(0.04, 1e9), door=DoorSettings(heartbeat_seconds=0.0))
    outcome = run(costs, slow, Open(20_000, 2_000), seed=9, warm=100)
    assert outcome.most_inside > 3
    assert outcome.fields()["wait"]["p50"] == 0
    assert outcome.fields()["session"]["p50"] == pytest.approx(costs.seconds(slow.link) + 5 * 0.04, rel=0.01)


def test_a_network_card_is_shared():
    costs = Costs("big", 1, (Phase(0.0, 0.0, 0.0, 0.0, 12_500_000, 0),), 0)
    narrow = fleet(cores=8, sessions=64, link=Network(0.0, 1e9), card=2e9)
    outcome = run(costs, narrow, Open(30_000, 2_000), seed=10, warm=100)
    # 1.5 transfers of 0.1 s at full speed on a card for two: M/D/2 with processor sharing holds 3.43 of M/M/2.
    assert outcome.cards == pytest.approx(0.75, rel=0.03)
    assert outcome.durations.mean() == pytest.approx(0.1 * (1 + erlang_c(2, 1.5) / 0.5), rel=0.1)


def test_a_day_has_its_hours():
    load = Open(240_000, DAY, arrivals.profile("day"))
    times = load.times(np.random.default_rng(0))
    hours = np.bincount((times // 3600).astype(int), minlength=24)
    assert (np.diff(times) >= 0).all()
    wanted = 240_000 * np.array(load.weights) / sum(load.weights)
    assert (np.abs(hours - wanted) < 5 * np.sqrt(wanted)).all()
    assert load.peak_rate == pytest.approx(max(wanted) / 3600)


def test_the_smallest_fleet_that_meets_a_target_is_found():
    """On average 4.2 jobs of a second run at a time: 3 servers of 2 cores have too long a tail, and 100 are enough."""
    small, load, target = Fleet(door_seconds=0.0), Open(360_000, DAY), sizing.Target(1.5)
    found = sizing.servers(job(), small, load, target, seed=11)
    assert 3 < found < 20
    short = sizing.trial(job(), small, load)
    tails = [
        run(job(), replace(small, servers=count), short, 11).fields()["session"]["p99"] for count in (found - 1, found)
    ]
    assert tails[0] > target.seconds >= tails[1]


def test_no_fleet_is_enough_for_sessions_that_are_too_long():
    with pytest.raises(MisuseError, match="idle server"):
        sizing.servers(job(factors=EXPONENTIAL), Fleet(), Open(100, 1000), sizing.Target(4.0))


def test_searches_find_the_first_number():
    for wanted in (1, 2, 3, 17, 100):
        for low in (1, 2, wanted):
            assert sizing.first(lambda at, wanted=wanted: at >= wanted, low, 100) == max(low, wanted)
    assert sizing.first(lambda _: False, 5, 100) is None


REPORT = {
    "model": "build/mnist.tacit",
    "inputs": 2,
    "threads": 1,
    "seconds": 1.0,
    "all_seconds": [0.9, 1.0, 1.2],
    "network": None,
    "bytes": {"client_to_server": 700, "server_to_client": 300},
    "cpu_seconds": {"client": 0.8, "server": 0.6},
    "phases": {
        name: {"bytes": {"client_to_server": 70, "server_to_client": 30}, "rounds": rounds, "seconds": seconds}
        for name, rounds, seconds in (("setup", 6, 0.2), ("offline", 2, 0.3), ("online", 40, 0.5))
    },
}


def test_costs_are_read_from_a_bench(tmp_path):
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(REPORT))
    costs = read(path)
    assert (costs.model, costs.inputs, costs.rounds, costs.egress_bytes) == ("mnist", 2, 48, 300)
    # Of three runs of 0.9, 1.0 and 1.2 s: processor time is their mean, and so are all seconds.
    mean = 3.1 / 3
    assert costs.seconds() == pytest.approx(mean)
    assert (costs.server_seconds, costs.client_seconds) == (pytest.approx(0.6), pytest.approx(0.8))
    assert costs.factors == pytest.approx((0.9 / mean, 1.0 / mean, 1.2 / mean))
    assert costs.phases[0].both == pytest.approx(0.2 * (1.4 - mean))
    assert costs.seconds(parse("20ms,100")) == pytest.approx(mean + 48 * 0.01 + 8 * 300 / 1e8)
    pieces = slices(costs, Fleet())
    assert sum(piece.server for piece in pieces) == pytest.approx(0.6)
    assert sum(piece.away for piece in pieces) == pytest.approx(mean - 0.6)
    outcome = run(costs, fleet(cores=2), Open(300, 300_000), seed=11)
    assert np.median(outcome.durations) == pytest.approx(1.0)


def test_costs_of_a_slow_link_are_told_apart_from_processor_time():
    slow = {**REPORT, "network": "10ms,1000", "cpu_seconds": {"client": 0.3, "server": 0.4}}
    costs = of(slow)
    wire = 48 * 0.005 + 8 * 300 / 1e9
    assert sum(phase.idle for phase in costs.phases) == pytest.approx(1.0 - 0.7 - wire, abs=0.08)
    assert costs.seconds(parse("10ms,1000")) == pytest.approx(1.0, rel=0.1)


def test_what_is_sent_while_a_party_computes_takes_no_time_of_its_own():
    busy = {**REPORT, "network": "1ms,0.01", "cpu_seconds": {"client": 0.2, "server": 0.9}, "all_seconds": [1.0]}
    costs, link = of(busy), parse("1ms,0.01")
    assert sum(phase.wire(link) for phase in costs.phases) == pytest.approx(0.264)
    assert costs.seconds(link) == pytest.approx(1.0)
    for card in (0.1e6, 1e12):
        outcome = run(costs, fleet(cores=2, link=link, card=card), Open(20, 20_000), seed=12)
        # Two round trips of the connection come before, and two and one more at the door.
        assert np.median(outcome.durations) == pytest.approx(1.0 + 0.005, rel=1e-3)


def test_a_plan_has_costs_too(tmp_path):
    planned = {name: value for name, value in REPORT.items() if name not in ("cpu_seconds", "all_seconds", "threads")}
    costs = of(planned)
    assert costs.server_seconds == costs.client_seconds == pytest.approx(1.0)
    assert costs.seconds(LOOPBACK) == pytest.approx(1.0)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"network_seconds": 0.24, **{key: planned[key] for key in planned if key != "network"}}))
    with pytest.raises(MisuseError, match="say --network"):
        read(path)
    costs = read(path, "10ms,1000")
    assert costs.seconds(parse("10ms,1000")) == pytest.approx(1.0)
    assert costs.server_seconds == pytest.approx(1.0 - 0.24, abs=1e-4)


@pytest.mark.parametrize("broken", [{"threads": 2}, {"phases": {}}, {"seconds": None}, {"all_seconds": [0.0]}])
def test_files_without_costs_are_refused(broken):
    with pytest.raises(MisuseError, match=r"bench model|--threads 1"):
        of({**REPORT, **broken})


def test_dollars():
    costs = Costs("x", 2, (), 500_000_000)
    dollars = Prices(0.05, 0.1).of(40, 7200, 100, costs)
    assert (dollars["core_hours"], dollars["egress_gb"]) == (80, 50)
    assert (dollars["cores"], dollars["egress"], dollars["total"]) == (
        pytest.approx(4),
        pytest.approx(5),
        pytest.approx(9),
    )
    assert dollars["per_million"] == pytest.approx(45_000)
