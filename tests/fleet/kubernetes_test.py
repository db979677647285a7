"""examples/kubernetes: what its files ask of a cluster, and what their commands do where a pod would run them."""

from __future__ import annotations

import re
import subprocess
import unittest
from typing import Any, Dict

from fleet import MODEL, PROBLEMS, TREE, FleetTest

try:
    import yaml
except ImportError:  # Debian: python3-yaml
    yaml = None

EXAMPLES = TREE / "examples" / "kubernetes"


def document(name: str) -> Dict[str, Any]:
    (read,) = yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8"))
    return read


@unittest.skipIf(yaml is None, "needs python3-yaml")
class Files(FleetTest):
    def pod_of(self, name: str) -> Dict[str, Any]:
        job = document(name)
        self.assertEqual((job["apiVersion"], job["kind"]), ("batch/v1", "Job"))
        return job["spec"]["template"]["spec"]

    def container_of(self, name: str) -> Dict[str, Any]:
        (container,) = self.pod_of(name)["containers"]
        return container

    def values(self, name: str) -> Dict[str, str]:
        return {variable["name"]: variable["value"] for variable in self.container_of(name)["env"]}

    def run_pod(self, name: str, **variables: str) -> str:
        container = self.container_of(name)
        ended = subprocess.run([*container["command"], *container["args"]], capture_output=True, text=True,
                               env={**self.environment, **variables}, timeout=120, check=False)
        self.assertEqual((name, ended.returncode, ended.stderr[-2000:] if ended.returncode else ""), (name, 0, ""))
        return ended.stdout

    def test_there_are_as_many_pods_as_shards_each_with_a_gpu(self) -> None:
        spec = document("tune.yaml")["spec"]
        self.assertEqual(spec["completionMode"], "Indexed")
        self.assertEqual(str(spec["completions"]), self.values("tune.yaml")["SHARDS"])
        self.assertEqual(self.container_of("tune.yaml")["resources"]["limits"]["nvidia.com/gpu"], 1)
        self.assertNotIn("resources", self.container_of("merge.yaml"))

    def test_the_jobs_share_the_volume_and_nothing_of_the_cluster(self) -> None:
        volume = document("volume.yaml")
        self.assertEqual(volume["kind"], "PersistentVolumeClaim")
        self.assertEqual(volume["spec"]["accessModes"], ["ReadWriteMany"])
        for name in ("tune.yaml", "merge.yaml"):
            pod = self.pod_of(name)
            self.assertEqual(pod["restartPolicy"], "Never")
            self.assertIs(pod["automountServiceAccountToken"], False)
            (mounted,) = pod["volumes"]
            self.assertEqual(mounted["persistentVolumeClaim"]["claimName"], volume["metadata"]["name"])
            (mount,) = self.container_of(name)["volumeMounts"]
            self.assertEqual(mount["name"], mounted["name"])
            self.assertTrue(self.values(name)["FLEET"].startswith(mount["mountPath"] + "/"))

    def test_the_pods_commands_tune_every_problem_once_and_merge(self) -> None:
        self.assertEqual(self.values("tune.yaml")["FLEET"], self.values("merge.yaml")["FLEET"])
        # A container has one word for the model; these are the test's options beside it.
        self.environment["PATH"] = f"{self.wrapper()}:{self.environment['PATH']}"
        counts = []
        for index in range(3):
            said = self.run_pod("tune.yaml", MODEL=MODEL[0], SHARDS="3", JOB_COMPLETION_INDEX=str(index))
            counts += re.findall(rf"shard {index + 1} of 3: (\d+) of {PROBLEMS} problems", said)
        self.assertEqual((len(counts), sum(map(int, counts))), (3, PROBLEMS))
        self.run_pod("merge.yaml")
        winners = self.winners(self.fleet / "cache.db")
        self.assertEqual(set(winners), set(self.problems_of_one_run()))
        self.assertTrue((self.fleet / "winners.json").is_file())

    def wrapper(self) -> str:
        """A folder with a `hone` that tunes fewer problems."""
        folder = self.folder / "bin"
        folder.mkdir()
        program = folder / "hone"
        options = " ".join(MODEL[1:])
        program.write_text('#!/bin/sh\n[ "$1" = tune ] && set -- "$@" ' + options +
                           f'\nexec "{self.environment["HONE_PROGRAM"]}" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        return str(folder)


if __name__ == "__main__":
    unittest.main()
