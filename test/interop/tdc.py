#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
"""Runs the Linux tree's own tc cases against millrace.

The tree tests tc with JSON files (tools/testing/selftests/tc-testing/tc-tests): each case runs a
command, compares its exit status, and counts a pattern in what another command prints. The files
are not part of this project: give the directory of a copy with --cases or MILLRACE_TDC.

    tdc.py --build BUILD --cases DIR [-v] [FILE | ID ...]

Without FILE the ones that millrace answers for are run, but filters/concurrency.json, a million rules by
ten tc at once, which takes minutes: name it. Exits 0 if every case behaves as Linux
expects or is listed in EXCEPTIONS (and really differs), 77 if there are no case files.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FILES = [
    'actions/csum.json', 'actions/gact.json', 'actions/mirred.json', 'actions/pedit.json',
    'actions/police.json', 'actions/skbedit.json', 'actions/vlan.json', 'filters/matchall.json',
    'filters/tests.json', 'qdiscs/fifo.json', 'qdiscs/ingress.json', 'qdiscs/mq.json', 'qdiscs/pfifo_fast.json',
    'qdiscs/prio.json',
]

# Cases that end otherwise than Linux expects, and why that is right or not done.
BFIFO = 'bfifo is refused: limits in bytes are not supported'
PTYPE = 'skbedit ptype is refused: there is no host stack to look at it'
OVERHEAD = 'police knows the frame as it is: overhead and linklayer atm are refused'
QUEUES_MAX = 64
EXCEPTIONS = {
    'a519': BFIFO, 'a86e': BFIFO, '9ac8': BFIFO, 'c4b6': BFIFO, '1298': BFIFO, '4d39': BFIFO,
    '224f': PTYPE, 'd1a3': PTYPE, '464a': PTYPE, '5172': PTYPE, '1b2b': PTYPE, '630c': PTYPE,
    '706d': PTYPE,
    'f057': OVERHEAD, '3dda': OVERHEAD,
    '2f82': 'wants 256 Tx queues, of which the program takes %d' % QUEUES_MAX,
}

PORTS = ['v0p0', 'v0p1', 'v0p2', 'dummy1', 'eth0', 'lo']

# Making and removing devices is the host's business; the ports are there all the time.
HOST = re.compile(
    r'^(modprobe|echo ".*" > /sys/bus/netdevsim/|'
    r'\$IP (netns|link add|link del|addr (add|del)))')


class Millrace:
    """The program on ports that lead nowhere, and tools that reach it."""

    def __init__(self, build, cases, queues):
        self.scripts = os.path.dirname(os.path.abspath(cases))
        self.dir = tempfile.mkdtemp(prefix='tdc-')
        self.socket = os.path.join(self.dir, 'ctl')
        self.exec = os.path.join(build, 'exec/millrace-exec')
        argv = [os.path.join(build, 'app/millrace'), '--no-huge', '-m', '256', '--no-shconf',
                '--no-pci', '--no-telemetry', '--file-prefix=tdc%d' % os.getpid()]
        for i in range(len(PORTS)):
            argv += ['--vdev', 'net_null%d' % i]
        argv += ['--', '-i', '--ctl=' + self.socket, '--txq=%d' % queues, '--rxq=1',
                 '--total-num-mbufs=8192']
        argv += ['--port-name=%d,%s' % port for port in enumerate(PORTS)]
        self.log = open(os.path.join(self.dir, 'log'), 'w+')
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=self.log,
                                     stderr=subprocess.STDOUT,
                                     env=dict(os.environ, XDG_RUNTIME_DIR=self.dir))
        for _ in range(300):
            if os.path.exists(self.socket):
                return
            if self.proc.poll() is not None:
                break
            time.sleep(0.1)
        self.log.seek(0)
        raise SystemExit('millrace did not start:\n' + self.log.read())

    def names(self):
        tool = '%s -s %s ' % (self.exec, self.socket)
        return {'TC': tool + shutil.which('tc'), 'IP': tool + shutil.which('ip'),
                'DEV0': 'v0p0', 'DEV1': 'v0p1', 'DEV2': 'v0p2', 'DUMMY': 'dummy1', 'ETH': 'eth0',
                'BATCH_FILE': os.path.join(self.dir, 'batch'), 'BATCH_DIR': os.path.join(self.dir, 'batches'),
                'NS': 'tcut', 'EBPFDIR': './'}

    def run(self, command):
        for name, value in self.names().items():
            command = re.sub(r'\$\{?%s\b\}?' % name, value, command)
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, cwd=self.scripts,
                              stderr=subprocess.PIPE, timeout=300, universal_newlines=True)
        if self.proc.poll() is not None:
            raise SystemExit('millrace died (%d) after: %s' % (self.proc.returncode, command))
        return done.returncode, done.stdout, done.stderr

    def reset(self):
        """Back to what a case expects to find: nothing."""
        shutil.rmtree(os.path.join(self.dir, 'batches'), ignore_errors=True)
        lines = []
        for port in PORTS:
            lines += ['qdisc del dev %s %s' % (port, where)
                      for where in ('root', 'clsact', 'ingress')]
        for kind in ('gact', 'csum', 'mirred', 'skbedit', 'pedit', 'police', 'vlan'):
            lines.append('actions flush action ' + kind)
        subprocess.run([self.exec, '-s', self.socket, 'tc', '-force', '-b', '-'],
                       input='\n'.join(lines) + '\n', stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, universal_newlines=True)

    def close(self):
        self.proc.send_signal(signal.SIGINT)
        try:
            status = self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            status = 'a timeout'
        if status != 0:
            self.log.seek(0)
            raise SystemExit('millrace ended with %s:\n%s' % (status, self.log.read()[-4000:]))
        shutil.rmtree(self.dir)


def run_step(millrace, step):
    """A setup or teardown step: a command, or a list with the exit statuses that will do."""
    command, good = (step[0], step[1:]) if isinstance(step, list) else (step, [0])
    if HOST.match(command):
        return None
    status, out, err = millrace.run(command)
    if status not in good:
        return '"%s" ended with %d: %s' % (command, status, (err or out).strip())
    return None


def check_output(millrace, case):
    if not case.get('verifyCmd'):
        return None
    status, out, err = millrace.run(case['verifyCmd'])
    text = err if status != 0 and err else out
    if 'matchJSON' in case:
        return None if json.loads(out or '[]') == case['matchJSON'] else 'JSON differs: ' + out
    n = len(re.findall(case['matchPattern'], text, re.DOTALL | re.MULTILINE))
    if n != int(case['matchCount']):
        return '%d matches instead of %s of %s in:\n%s' % (
            n, case['matchCount'], case['matchPattern'], text)
    return None


def run_case(millrace, case):
    """None if it behaves, else what was different."""
    millrace.reset()
    for step in case.get('setup', []):
        trouble = step and run_step(millrace, step)
        if trouble:
            return 'setup: ' + trouble
    status, out, err = millrace.run(case['cmdUnderTest'])
    if status != int(case['expExitCode']):
        return 'exit %d instead of %s: %s' % (status, case['expExitCode'], (err or out).strip())
    trouble = check_output(millrace, case)
    if trouble:
        return trouble
    for step in case.get('teardown', []):
        trouble = step and run_step(millrace, step)
        if trouble:
            return 'teardown: ' + trouble
    return None


def queues_of(case):
    """How many Tx queues the case's device has: the third number that netdevsim is given."""
    for step in case.get('setup', []):
        command = step[0] if isinstance(step, list) else step
        made = re.match(r'echo "\d+ \d+ (\d+)" > /sys/bus/netdevsim/new_device', command)
        if made:
            return min(int(made.group(1)), QUEUES_MAX)
    return 1


def load(directory, wanted):
    files = [w for w in wanted if w.endswith('.json')] or FILES
    ids = {w for w in wanted if not w.endswith('.json')}
    for name in files:
        with open(os.path.join(directory, name)) as f:
            for case in json.load(f):
                if not ids or case['id'] in ids:
                    yield name, case


def report(name, case, trouble, verbose):
    expected = EXCEPTIONS.get(case['id'])
    verdict = 'ok'
    if trouble and expected:
        verdict = 'exception'
    elif trouble:
        verdict = 'FAILED'
    elif expected:
        verdict = 'FAILED'
        trouble = 'listed as an exception, but behaves'
    if verbose or verdict != 'ok':
        print('%-9s %s %s: %s' % (verdict, case['id'], name, case['name']))
    if verdict == 'FAILED' or (verbose and trouble):
        print('          ' + trouble.replace('\n', '\n          '))
    if verdict == 'exception':
        print('          ' + expected)
    return verdict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('MILLRACE_BUILD', 'build'))
    parser.add_argument('--cases', default=os.environ.get('MILLRACE_TDC', ''))
    parser.add_argument('-v', '--verbose', action='store_true')
    parser.add_argument('wanted', nargs='*')
    args = parser.parse_args()
    if not os.path.isdir(args.cases):
        print('skipped: no case files (set MILLRACE_TDC to a tc-tests directory of the Linux tree)')
        return 77
    count = {'ok': 0, 'exception': 0, 'FAILED': 0}
    cases = list(load(args.cases, args.wanted))
    for queues in sorted({queues_of(case) for _, case in cases}):
        millrace = Millrace(os.path.abspath(args.build), args.cases, queues)
        try:
            for name, case in cases:
                if queues_of(case) == queues:
                    trouble = run_case(millrace, case)
                    count[report(name, case, trouble, args.verbose)] += 1
        finally:
            millrace.close()
    print('%(ok)d as Linux, %(exception)d listed exceptions, %(FAILED)d failed' % count)
    return 1 if count['FAILED'] else 0


if __name__ == '__main__':
    sys.exit(main())
