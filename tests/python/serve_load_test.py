"""bench/serve_load.py against servers that are made up: what it sends, what it measures, and what it says of servers that fail."""

from __future__ import annotations

import asyncio
import json
import sys
import unittest

from fakes import TREE

sys.path.insert(0, str(TREE / "bench"))
import serve_load


def event(data) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def text(piece):
    return event({"choices": [{"text": piece}]})


USAGE = event({"choices": [], "usage": {"completion_tokens": 7, "prompt_tokens": 5}})


class MadeServer:
    """Answers each request with these pieces, with a wait before each."""

    def __init__(self, parts, status=200):
        self.parts = parts
        self.status = status
        self.bodies = []
        self.at_a_time = 0
        self.most_at_a_time = 0

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        self.bodies.append((head.split(" ")[1], json.loads(await reader.readexactly(size))))
        self.at_a_time += 1
        self.most_at_a_time = max(self.most_at_a_time, self.at_a_time)
        writer.write(f"HTTP/1.1 {self.status} x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for wait_s, part in self.parts:
            await asyncio.sleep(wait_s)
            for piece in (part[:9], part[9:]):  # events do not come as they were written
                if piece:
                    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        self.at_a_time -= 1
        writer.close()

    def load(self, requests=3, rate=0.0, concurrency=2, path="", processes=1):
        async def run():
            server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            load = serve_load.Load(f"http://127.0.0.1:{port}{path}", requests, rate, concurrency, 12, 7, processes=processes)
            if processes == 1:
                results, wall_s = await serve_load.run(load)
            else:
                results, wall_s = await asyncio.to_thread(serve_load.run_all, load)
            server.close()
            return serve_load.summary(load, results, wall_s, 1000, 500), results

        return asyncio.run(run())


WHOLE = [(0.05, text("a")), (0.03, text("b")), (0, text("")), (0.03, text("c")), (0, USAGE), (0, event(b"[DONE]"))]


class ServeLoad(unittest.TestCase):
    def test_times_and_tokens_are_what_the_server_did(self):
        made, results = MadeServer(WHOLE).load()
        self.assertEqual((made["requests"], made["failed"], made["tokens"], made["prompt_tokens"]), (3, 0, 21, 15))
        for result in results:
            self.assertGreaterEqual(result.ttft_s, 0.05)
            self.assertEqual(len(result.between_s), 2)
            self.assertTrue(all(between >= 0.02 for between in result.between_s))
            self.assertGreaterEqual(result.end_to_end_s, 0.1)
        self.assertGreaterEqual(made["ttft_ms"]["p50"], 50)
        self.assertIn("goodput", serve_load.table(made))

    def test_requests_are_as_asked_for_and_all_different(self):
        server = MadeServer(WHOLE)
        server.load(requests=4, path="/v1")
        self.assertEqual({path for path, _ in server.bodies}, {"/v1/completions"})
        self.assertEqual(len({body["prompt"] for _, body in server.bodies}), 4)
        for _, body in server.bodies:
            self.assertEqual((body["max_tokens"], body["stream"], body["ignore_eos"]), (7, True, True))
            self.assertEqual(len(body["prompt"].split()), 12)

    def test_with_a_ramp_the_first_requests_are_for_parts_of_the_tokens(self):
        bodies = [json.loads(serve_load.body_of(serve_load.Load("http://x", 90, 0, 60, 3, 1000, ramp=True), i)) for i in range(90)]
        lengths = [body["max_tokens"] for body in bodies]
        self.assertGreater(len(set(lengths[:60])), 50)
        self.assertTrue(all(1 <= length <= 1000 for length in lengths[:60]))
        self.assertEqual(set(lengths[60:]), {1000})

    def test_under_way_the_first_requests_have_what_they_lack_behind_their_prompts(self):
        for prompts in ("text", "ids"):
            load = serve_load.Load("http://x", 90, 0, 60, 300, 1000, prompts=prompts, under_way=True)
            bodies = [json.loads(serve_load.body_of(load, i)) for i in range(90)]
            prompt_tokens = [len(body["prompt"].split() if prompts == "text" else body["prompt"]) for body in bodies]
            lengths = [body["max_tokens"] for body in bodies]
            self.assertGreater(len(set(lengths[:60])), 50)
            self.assertTrue(all(length >= 1 and length + prompt == 1300 for length, prompt in zip(lengths, prompt_tokens)))
            self.assertEqual(set(zip(lengths[60:], prompt_tokens[60:])), {(1000, 300)})

    def test_processes_share_the_requests(self):
        server = MadeServer(WHOLE)
        for processes, rate in ((3, 0.0), (2, 100.0)):
            server.bodies.clear()
            server.most_at_a_time = 0
            made, results = server.load(requests=7, concurrency=4, rate=rate, processes=processes)
            self.assertEqual((made["requests"], made["failed"], made["tokens"]), (7, 0, 49))
            self.assertEqual(len({body["prompt"] for _, body in server.bodies}), 7)
            if rate == 0:
                self.assertEqual(server.most_at_a_time, 4)
            else:
                self.assertEqual(len({result.due_s for result in results}), 7)

    def test_closed_loop_has_as_many_at_a_time_as_asked_for(self):
        server = MadeServer(WHOLE)
        server.load(requests=9, concurrency=3)
        self.assertEqual((server.most_at_a_time, len(server.bodies)), (3, 9))

    def test_open_loop_does_not_wait_for_a_slow_server(self):
        server = MadeServer([(0.4, text("a")), (0, USAGE), (0, event(b"[DONE]"))])
        made, results = server.load(requests=10, rate=200)
        self.assertEqual(server.most_at_a_time, 10)
        due = [result.due_s for result in results]
        self.assertEqual(due, sorted(due))
        self.assertLess(made["wall_s"], 2)

    def test_failures_are_counted_by_their_reason_and_are_no_goodput(self):
        for parts, status, reason in (
            ([(0, b"busy, come again later")], 429, "status 429: busy, come again later"),
            (WHOLE[:2], 200, "the stream broke off"),
            ([(0, event(b"[DONE]"))], 200, "no text came"),
            ([(0, text("a")), (0, event({"error": {"message": "the GPU is gone"}}))], 200, "the GPU is gone"),
        ):
            made, _ = MadeServer(parts, status).load()
            self.assertEqual(made["errors"], {reason: 3})
            self.assertEqual((made["failed"], made["goodput_per_s"], made["good_share"]), (3, 0, 0))
            self.assertIsNone(made["ttft_ms"]["p50"])
            self.assertIn(f"3 x {reason}", serve_load.table(made))

    def test_goodput_counts_what_is_within_both_limits(self):
        def result(ttft_s, *between_s, error=""):
            return serve_load.Result(0, ttft_s, list(between_s), 1, 1, 1, error)

        results = [result(0.1, 0.01, 0.03), result(0.1, 0.01, 0.05), result(0.3, 0.01), result(0.1), result(0.1, error="x")]
        load = serve_load.Load("http://x", 5, 0, 1, 1, 1)
        made = serve_load.summary(load, results, 2.0, 200, 20)
        self.assertEqual((made["goodput_per_s"], made["good_share"], made["failed"]), (1.0, 0.4, 1))

    def test_shares_are_by_the_nearest_rank(self):
        values = list(range(100, 0, -1))
        self.assertEqual([serve_load.at_share(values, share) for share in (0.5, 0.95, 0.99)], [50, 95, 99])
        self.assertIsNone(serve_load.at_share([], 0.5))

    def test_nobody_listens(self):
        load = serve_load.Load("http://127.0.0.1:9", 2, 0, 1, 1, 1)
        results, _ = asyncio.run(serve_load.run(load))
        self.assertTrue(all(result.error for result in results))


if __name__ == "__main__":
    unittest.main()
