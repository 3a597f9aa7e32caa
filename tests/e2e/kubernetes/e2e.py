# SPDX-License-Identifier: MIT
"""Does the controller in examples/kubernetes survive a real API server? And what
does it cost, compared with the same controller in Go?

    e2e.py test SERVER WIDGETS                kills, cuts, drains; exit status 0
                                              if nothing was lost
    e2e.py bench SERVER WIDGETS WIDGETS_GO    prints a table

SERVER is the program of server/, WIDGETS the controller."""

import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

from cluster import (Client, Cluster, Controller, Convergence, audit, overlaps,
                     until)

OBJECTS = int(os.environ.get("E2E_OBJECTS", "2000"))
ROUNDS = int(os.environ.get("E2E_ROUNDS", "3"))
NAMES = ["widget-%04d" % i for i in range(OBJECTS)]
BEGIN = time.monotonic()


def say(text):
    print("%6.1f s  %s" % (time.monotonic() - BEGIN, text), flush=True)


def check(condition, what):
    if not condition:
        raise SystemExit("FAILED: " + what)


# ---- the test --------------------------------------------------------------

def harass(cluster, changing):
    """Kills the API server twice, and cuts its connections in between, while
    users go on changing objects."""
    cuts = 0
    for _ in range(2):
        for _ in range(4):
            time.sleep(0.4)
            cluster.cut()
            cuts += 1
        say("kill -9 of the API server")
        cluster.kill()
        time.sleep(1)
        cluster.start()
        say("the API server is back")
    while changing():
        time.sleep(0.4)
        cluster.cut()
        cuts += 1
    return cuts


def change_under_fire(cluster, client):
    """Every object is changed three times, in any order."""
    jobs = [(name, round * 100000 + i) for round in (1, 2, 3)
            for i, name in enumerate(random.sample(NAMES, OBJECTS))]
    changer = threading.Thread(
        target=lambda: client.each(lambda job: client.resize(*job), jobs))
    changer.start()
    cuts = harass(cluster, changer.is_alive)
    changer.join()
    return len(jobs), cuts


def stop_in_the_middle(client, controller, status):
    """SIGTERM while it works; returns how many objects are left."""
    before = controller.reconciles()
    until(lambda: controller.reconciles() > before + OBJECTS // 10, "some runs",
          pause=0.01)
    ended = controller.stop()
    check(ended == status, "it ended with status %d, not %d" % (ended, status))
    return client.differing()


def end_in_the_middle(cluster, client, controller, command):
    """Three ends: while users change objects, with a limit that is too short for
    what there is to do, and with enough time for all of it."""
    changer = threading.Thread(target=lambda: client.each(
        lambda i: client.resize(NAMES[i], 900000 + i), range(OBJECTS)))
    changer.start()
    stop_in_the_middle(client, controller, 0)
    changer.join()
    left = client.differing()
    check(left > 0, "SIGTERM came too late to leave any work")
    say("SIGTERM amid changes: drained; %d of %d objects left" % (
        left, OBJECTS))

    controller = Controller(cluster, command + ["--drain=0.1"], "widgets")
    left = stop_in_the_middle(client, controller, 1)
    check(left > 0, "the limit of the drain was too long")
    say("SIGTERM, 0.1 s to drain: status 1; %d left" % left)

    controller = Controller(cluster, command, "widgets")
    until(controller.is_ready, "the list", pause=0.01)
    left = client.differing()
    check(controller.stop() == 0, "the drain failed")
    check(client.differing() == 0, "the drain left work")
    say("SIGTERM with some %d to do: drained, status 0; none left" % left)
    return Controller(cluster, command, "widgets")


def miss_deletes(cluster, client, controller):
    """Objects that are deleted while the controller sees nothing: it is stopped
    like a process whose machine sleeps."""
    gone = NAMES[::10]
    controller.process.send_signal(signal.SIGSTOP)
    client.each(client.delete, gone)
    cluster.kill()
    cluster.start()
    controller.process.send_signal(signal.SIGCONT)
    until(lambda: controller.metric("widgets_objects") ==
          OBJECTS - len(gone), "the deletes")
    say("%d deletes made while it was stopped were noticed" % len(gone))


def test(cluster, client, widgets):
    # Without a resync, a lost event would stay lost.
    command = [widgets, "--resync=0", "--retry-max=2", "--drain=60"]
    controller = Controller(cluster, command, "widgets")
    client.each(lambda i: client.create(NAMES[i], i), range(OBJECTS))
    until(lambda: client.differing() == 0, "the first sizes", pause=0.5)
    say("%d Widgets created, and converged" % OBJECTS)

    changes, cuts = change_under_fire(cluster, client)
    say("%d changes made, %d attempts to cut watches" % (changes, cuts))
    until(lambda: client.differing() == 0, "the world to converge", pause=0.5)
    say("converged: lists %d, watches %d, events %d, runs %d" % (
        controller.metric("widgets_lists_total"),
        controller.metric("widgets_watches_total"),
        controller.metric("widgets_watch_events_total"),
        controller.reconciles()))

    controller = end_in_the_middle(cluster, client, controller, command)
    until(controller.is_ready, "the list")
    miss_deletes(cluster, client, controller)
    check(controller.stop() == 0, "the last drain")

    writes = audit(cluster)
    twice = overlaps(writes)
    check(not twice, "written twice at once: %r" % twice[:5])
    say("%d writes of a status in the server's log, %d of them refused as "
        "conflicts; none overlaps another of its object" % (
            len(writes), sum(code == 409 for _, _, _, code, _ in writes)))
    print("passed")


# ---- the benchmark ---------------------------------------------------------

def measure(cluster, client, command, name, size):
    """One round: a start with all objects to do, then a change of each."""
    client.each(lambda i: client.resize(NAMES[i], size + i), range(OBJECTS))
    waiting = Convergence(client)
    controller = Controller(cluster, command, name)
    cold = waiting.wait() - controller.begin
    first = controller.reconciles()

    waiting = Convergence(client)
    begin = time.monotonic()
    client.each(lambda i: client.resize(NAMES[i], size + 5000 + i),
                range(OBJECTS))
    live = waiting.wait(OBJECTS) - begin
    time.sleep(0.5)  # the runs for the last events
    result = {"cold": cold, "live": live, "first": first,
              "runs": controller.reconciles(),
              "cpu": controller.cpu_seconds(), "mib": controller.peak_mib(),
              "anonymous": controller.anonymous_mib()}
    check(controller.stop() == 0, name + " did not end")
    return result


def bench(cluster, client, widgets, widgets_go):
    client.each(lambda i: client.create(NAMES[i], i), range(OBJECTS))
    sides = {"C": [widgets], "Go": [widgets_go]}
    results = {side: [] for side in sides}
    for n in range(ROUNDS):
        for side in (list(sides) if n % 2 == 0 else list(sides)[::-1]):
            figures = measure(cluster, client, sides[side], side,
                              10000 * (2 * n + (side == "Go") + 1))
            results[side].append(figures)
            say("%s: %s" % (side, ", ".join(
                "%s %.4g" % item for item in figures.items())))

    def row(title, field, form):
        cells = []
        for side in sides:
            values = [figures[field] for figures in results[side]]
            cells.append("%s (%s to %s)" % tuple(
                form % value for value in (
                    statistics.median(values), min(values), max(values))))
        print("| %s | %s |" % (title, " | ".join(cells)))
    print("\n| %d objects, 4 workers, median of %d rounds (least to most) "
          "| C, wq | Go, client-go |\n|---|--:|--:|" % (OBJECTS, ROUNDS))
    row("start until all have converged, s", "cold", "%.2f")
    row("all changed once more, until converged, s", "live", "%.2f")
    row("reconciles, of both", "runs", "%d")
    row("processor time, of both, s", "cpu", "%.2f")
    row("peak resident memory, MiB", "mib", "%.1f")
    row("at the end without pages of files, MiB", "anonymous", "%.1f")


def main():
    what, server, *programs = sys.argv[1:]
    directory = tempfile.mkdtemp(prefix="wq-e2e-")
    cluster = Cluster(os.path.abspath(server), directory)
    try:
        client = Client(cluster)
        client.define()
        say("etcd and the API server are up")
        {"test": test, "bench": bench}[what](
            cluster, client, *map(os.path.abspath, programs))
    except BaseException:
        cluster.stop()
        print("logs are in", directory)
        raise
    cluster.stop()
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
