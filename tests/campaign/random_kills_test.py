"""SIGKILL at random moments of tuning runs, twenty on one cache, with nobody else who opens it in between.

After each kill the first to open the cache is an engine, which only reads: it comes up in bounded time with
every winner that was committed. Then the cache is sound, and no row of it that was seen before is gone.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
import unittest

import sandbox
from sandbox import ENGINE, HONE, Points, quantile, report, tune

READY_MS = 1000  # for a machine with much else to do; the campaign reports the 99th percentile
KILLS_OF_A_RELEASE = 2500
KILLS_OF_A_CACHE = 20


class RandomKills(sandbox.Case):
    def kill_soon(self, box: sandbox.Box, seconds: float) -> bool:
        """Whether the run was still under way."""
        process = subprocess.Popen(tune(4096, "--retune"), cwd=box.folder, env=box.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        running = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        return running

    def test_a_release(self) -> None:
        chosen = random.Random(16)
        whole = self.must(self.fresh().run(tune(4096, "--retune"))).seconds
        ready: list[float] = []
        killed = 0
        wanted = -(-KILLS_OF_A_RELEASE // sandbox.SHARDS)
        for count, _ in enumerate(Points(2 * KILLS_OF_A_RELEASE, 20)):  # some runs end by themselves
            if killed == wanted:
                break
            if count % KILLS_OF_A_CACHE == 0:
                box = self.fresh()
                seen = box.rows()
            killed += self.kill_soon(box, chosen.random() * whole)
            ended = self.must(box.run([ENGINE]))
            told = json.loads(ended.out)
            self.assertEqual(told["exact"], 2, ended.words)
            self.assertLess(told["ready_ms"], READY_MS, f"kill {count}")
            ready.append(told["ready_ms"])
            self.must(box.run([HONE, "cache", "verify"]))
            now = box.rows()
            self.assertLessEqual(seen, now, f"rows are lost at kill {count}")
            seen = now
        self.assertGreater(killed, 0)
        report(3, "random_kills_test", "random kills of tuning runs", killed, total=KILLS_OF_A_RELEASE,
               ready_ms_p99=quantile(ready, 0.99), ready_ms_max=max(ready))


if __name__ == "__main__":
    unittest.main()
