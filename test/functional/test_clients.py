# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Several tc at once on one block: two put in and take out rules, one flushes, one looks. Rules that nobody
touches are in every dump that was not interrupted, and at the end there is what the last ones left."""

import threading
import time

ROUNDS = 12
RULES = 300
STANDING = 200


def batch(verb, pref, base):
    return "".join(f"filter {verb} dev p0 ingress protocol ip pref {pref} handle {n + 1} flower"
                   + (f" dst_ip 198.18.{base + n // 256}.{n % 256} action drop\n" if verb == "add" else "\n")
                   for n in range(RULES))


def run_batch(program, lines):
    return program.run("tc", "-b", "-", stdin=lines, check=False)


class Client(threading.Thread):
    """Calls step() until it has done so often enough or `stop` is set; keeps what went wrong."""

    def __init__(self, step, rounds=None, stop=None):
        super().__init__()
        self.step, self.rounds, self.stop = step, rounds, stop
        self.done, self.error = 0, None

    def run(self):
        try:
            while self.done != self.rounds and not (self.stop and self.stop.is_set()):
                self.step()
                self.done += 1
        except AssertionError as error:
            self.error = error


def test_insert_delete_flush_dump(running):
    program, stop = running, threading.Event()
    program.tc("qdisc add dev p0 clsact")
    program.run("tc", "-b", "-", stdin="".join(
        f"filter add dev p0 ingress protocol ip pref 50 handle {n + 1} flower src_ip 192.0.2.{n} action ok\n"
        for n in range(STANDING)))
    whole = []

    def churn(pref, base):
        for verb in ("add", "del"):
            result = run_batch(program, batch(verb, pref, base))
            assert result.returncode == 0, result.stderr

    def flush():
        program.tc("filter add dev p0 ingress protocol ip pref 30 matchall action pass")
        assert run_batch(program, batch("add", 31, 64)).returncode == 0
        program.tc("filter del dev p0 ingress protocol ip pref 30")
        program.tc("filter del dev p0 ingress protocol ip pref 31")

    def look():
        result = program.tc("filter show dev p0 ingress")
        if "interrupted" not in result.stderr:
            found = result.stdout.count("  src_ip 192.0.2.")
            assert found == STANDING, f"{found} of {STANDING} rules that nobody touches"
            whole.append(result.stdout.count("handle "))

    writers = [Client(lambda: churn(10, 0), ROUNDS), Client(lambda: churn(20, 32), ROUNDS), Client(flush, ROUNDS)]
    lookers = [Client(look, stop=stop), Client(look, stop=stop)]
    for client in writers + lookers:
        client.start()
    for client in writers:
        client.join()
    stop.set()
    for client in lookers:
        client.join()
    for client in writers + lookers:
        assert client.error is None, client.error
    time.sleep(0.1)
    look()
    assert whole[-1] == STANDING
    assert program.tc("actions ls action gact").stdout.count("action order") == STANDING
    assert sum(client.done for client in lookers) > 0
