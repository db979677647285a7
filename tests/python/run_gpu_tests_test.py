"""tests/run_gpu_tests.py, with programs of a line in place of tests."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

TREE = Path(__file__).resolve().parents[2]
PROGRAM = TREE / "tests" / "run_gpu_tests.py"
_spec = importlib.util.spec_from_file_location("run_gpu_tests", PROGRAM)
suite_module: Any = importlib.util.module_from_spec(_spec)  # type: ignore[arg-type]
sys.modules["run_gpu_tests"] = suite_module
_spec.loader.exec_module(suite_module)  # type: ignore[union-attr]
Job = suite_module.Job


def shell(name: str, script: str, **options: Any) -> Any:
    return Job(name, ["/bin/sh", "-c", script], **options)


class Suites(unittest.TestCase):
    def setUp(self) -> None:
        self.out = io.StringIO()
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = Path(self.scratch.name)

    def suite(self, jobs: List[Any], places: int = 3, limit: float = 60, within: float = 60) -> Any:
        suite = suite_module.Suite({"C++": places, "Python": places}, limit, self.out)
        suite.run(jobs, within)
        suite.summary()
        return suite

    def verdicts(self, suite: Any) -> dict:
        return {one.job.name: one.verdict for one in suite.ended}

    def test_what_each_came_to(self):
        suite = self.suite([
            shell("good", "echo not shown"), shell("bad", "echo it is wrong; exit 3"), shell("no GPU", "exit 77"), shell("dead", "kill -9 $$")
        ])  # fmt: skip
        self.assertEqual(self.verdicts(suite), {"good": "passed", "bad": "failed", "no GPU": "skipped", "dead": "failed"})
        said = self.out.getvalue()
        self.assertIn("    it is wrong\n    exit code 3\n", said)
        self.assertIn("exit code -9", said)
        self.assertNotIn("not shown", said)
        self.assertRegex(said.splitlines()[-1], r"^1 passed, 1 skipped, 2 failed \((bad; dead|dead; bad)\)$")
        self.assertIn("\nskipped: no GPU\n", said)

    def test_a_file_all_of_whose_tests_were_skipped_is_skipped(self):
        for verdict, test in (("skipped", "raise unittest.SkipTest('no torch')"), ("passed", "self.skipTest('no data')"), ("failed", "1 / 0")):
            file = self.folder / "some_test.py"
            kept = "class A(unittest.TestCase):\n    def test_one(self): pass\n    def test_two(self): " + test
            file.write_text("import unittest\n" + (test if verdict == "skipped" else kept))
            command = [sys.executable, "-B", "-m", "unittest", "discover", "-s", str(self.folder), "-p", file.name]
            (ended,) = self.suite([Job("some", command, "Python")]).ended
            self.assertEqual(ended.verdict, verdict, ended.said)

    def test_time_is_limited_with_all_that_a_job_has_started(self):
        suite = self.suite([shell("slow", f"(sleep 2; touch {self.folder}/late) & sleep 60")], limit=0.3)
        self.assertEqual(self.verdicts(suite), {"slow": "out of time"})
        time.sleep(2.2)
        self.assertFalse((self.folder / "late").exists())

    def test_as_many_side_by_side_as_there_are_places_and_some_alone(self):
        def noted(name: str, **options: Any) -> Any:
            note = f"echo {{}} {name} >> {self.folder}/notes"
            return shell(name, f"{note.format('begin')}; sleep 0.2; {note.format('end')}", **options)

        jobs = [noted("measured", alone=True), noted("also", alone=True), *(noted(f"n{i}") for i in range(7))]
        suite = self.suite(jobs, places=3)
        self.assertEqual(set(self.verdicts(suite).values()), {"passed"})
        running: set = set()
        most = 0
        for line in (self.folder / "notes").read_text().splitlines():
            what, name = line.split()
            (running.add if what == "begin" else running.remove)(name)
            most = max(most, len(running))
            if running & {"measured", "also"}:
                self.assertEqual(len(running), 1)
        self.assertEqual(most, 3)
        self.assertEqual({one.job.name for one in suite.ended[-2:]}, {"measured", "also"})

    def test_seconds_of_a_cpu_are_those_of_all_its_processes(self):
        busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass'"
        (one,) = self.suite([shell("busy", f"{busy} & {busy}; wait")]).ended
        self.assertGreater(one.cpu_seconds, 0.95)

    def test_a_run_that_is_cut_off_says_what_passed(self):
        suite = self.suite([shell("quick", "true"), shell("slow", "sleep 60"), shell("last", "true")], places=1, within=1)
        self.assertEqual(self.verdicts(suite), {"quick": "passed", "slow": "cut off", "last": "cut off"})
        self.assertEqual(self.out.getvalue().splitlines()[-3:], ["cut off: slow", "cut off: last", "1 passed, 2 cut off"])


class Programs(unittest.TestCase):
    """The program itself, with a build folder of scripts."""

    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.build = Path(self.scratch.name)
        for folder in ("tests", "examples"):
            (self.build / folder).mkdir()

    def make(self, name: str, script: str) -> None:
        (self.build / name).write_text("#!/bin/sh\n" + script)
        (self.build / name).chmod(0o755)

    def make_programs(self, cases: str, otherwise: str = "true") -> None:
        script = f'case "$*" in *--list-test-cases*) printf "{cases}";; *) {otherwise};; esac\n'
        for name in ("runtime", "tuner"):
            self.make(f"tests/hone_{name}_tests", script)

    def test_every_file_of_the_tree_is_run_case_by_case(self):
        self.make_programs("[doctest] listing\\n===\\none, and two\\nthree\\n===\\n[doctest] 2 cases\\n")
        jobs = suite_module.cpp_jobs(self.build)
        files = sorted((TREE / "tests").glob("**/*_gpu_test.cpp"))
        self.assertGreater(len(files), 15)
        variants = [job for job in jobs if "variants_gpu_test" in job.name]
        self.assertEqual(len(jobs) - len(variants), 2 * (len(files) - 1))
        self.assertEqual(len(variants), 2 * int(variants[0].environment["HONE_TEST_PART"][2:]))
        self.assertEqual(jobs[0].command[1:], [f"--source-file=*/{files[0].relative_to(TREE)}", "--test-case=one\\, and two"])
        python = suite_module.python_jobs(self.build, self.build)
        self.assertEqual({job.command[-1] for job in python}, {f.name for f in (TREE / "tests/python/gpu").glob("*_test.py")})
        parts = [job.environment["HONE_TEST_PART"] for job in python if job.command[-1] == "decoder_test.py"]
        self.assertEqual(parts, [f"{part}/{len(parts)}" for part in range(1, len(parts) + 1)])
        self.assertGreater(len(parts), 1)
        self.assertEqual(len({job.name for job in python}), len(python))
        alone = {job.name.split(":")[0] for job in jobs + python if job.alone}
        self.assertIn("tests/tuner/planted_gpu_test.cpp", alone)
        self.assertNotIn("tests/runtime/linear_gpu_test.cpp", alone)

    def test_what_takes_longest_is_there(self):
        names = " ".join(" ".join((file.name, re.sub(r'"\s*"', "", file.read_text()))) for file in (TREE / "tests").glob("*/*_gpu_test.cpp"))
        names += " ".join(file.name for file in (TREE / "tests/python/gpu").glob("*_test.py"))
        for part in (*suite_module.LONGEST, *suite_module.SMALL.replace("*", "").split(",")):
            self.assertIn(part, names)

    def test_a_program_without_cases_and_one_that_is_missing_are_errors(self):
        with self.assertRaisesRegex(SystemExit, "hone_runtime_tests is missing: cmake --build "):
            suite_module.cpp_jobs(self.build)
        self.make_programs("[doctest] nothing\\n")
        with self.assertRaisesRegex(SystemExit, "names no cases of tests/"):
            suite_module.cpp_jobs(self.build)

    def test_without_a_gpu_it_is_skipped(self):
        self.make_programs('skipped: no usable GPU\\n"; exit 77; printf "')
        ended = subprocess.run([PROGRAM, self.build, "planted"], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout.splitlines()[0]), (77, "skipped: no usable GPU"))

    def test_names_and_exit_codes(self):
        for otherwise, code, last in (("true", 0, "1 passed"), ("exit 1", 1, "1 failed (tests/tuner/harness_gpu_test.cpp: three)")):
            self.make_programs("three\\n", otherwise)
            ended = subprocess.run([PROGRAM, self.build, "harness"], capture_output=True, text=True)
            self.assertEqual((ended.returncode, ended.stdout.splitlines()[-1]), (code, last), ended.stderr)
        behind = subprocess.run([PROGRAM, self.build, "--within", "60", "harness"], capture_output=True, text=True)
        self.assertEqual((behind.returncode, behind.stdout.splitlines()[-1:]), (1, [last]), behind.stderr)
        ended = subprocess.run([PROGRAM, self.build, "no such name"], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout.splitlines()[-1]), (1, "nothing ran"))

    def test_images_are_kept_where_they_are_asked_for(self):
        self.make_programs("three\n", f"echo $HONE_TEST_CACHE >> {self.build}/seen")
        images = self.build / "some" / "images"
        for options in ((), ("--images", images)):
            subprocess.run([PROGRAM, self.build, "harness", *options], capture_output=True, check=True)
        self.assertEqual((self.build / "seen").read_text(), f"\n{images}/images.db\n")
        self.assertEqual(images.stat().st_mode & 0o777, 0o700)

    def test_a_signal_ends_what_runs_and_the_summary_is_said(self):
        self.make_programs("three\\n", f"touch {self.build}/begun; sleep 60")
        with subprocess.Popen([PROGRAM, self.build, "harness"], stdout=subprocess.PIPE, text=True) as process:
            for _ in range(500):
                if (self.build / "begun").exists():
                    break
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out.splitlines()[-1]), (1, "1 cut off"))
        self.assertIn("cut off: tests/tuner/harness_gpu_test.cpp: three", out.splitlines())

    def test_sanitizers_leave_out_what_racecheck_cannot_see(self):
        jobs = suite_module.sanitizer_jobs(self.build, self.build)
        by_tool = {tool: [job for job in jobs if job.command[2] == tool] for tool in ("memcheck", "synccheck", "initcheck", "racecheck")}
        self.assertEqual(sum(map(len, by_tool.values())), len(jobs))
        self.assertEqual(len(by_tool["initcheck"]), 1)
        self.assertEqual(len(by_tool["memcheck"]), len(by_tool["racecheck"]) + 1)
        for tool, some in by_tool.items():
            for job in some:
                self.assertEqual("HONE_TEST_WITHOUT" in job.environment, tool == "racecheck")
        for source in suite_module.WITHOUT_RACECHECK.split(","):
            self.assertTrue((TREE / "kernel_templates" / source).exists(), source)

    def test_places_are_limited_by_the_memory_of_the_gpu(self):
        self.make("nvidia-smi", "echo 12000\n")
        with mock.patch.dict(os.environ, PATH=f"{self.build}:{os.environ['PATH']}"):
            places = suite_module.places_here()
        self.assertLessEqual(places["C++"], 4)
        self.assertEqual(places["Python"], 1)
        self.assertGreaterEqual(places["C++"], 1)


if __name__ == "__main__":
    unittest.main()
