#!/usr/bin/env python3
"""Loads any server that speaks OpenAI's completions with streaming, and says how it held.

    bench/serve_load.py http://127.0.0.1:8000 --requests 200 --rate 4            # open loop: Poisson arrivals, 4 a second
    bench/serve_load.py http://127.0.0.1:8000 --requests 200 --concurrency 16    # closed loop: 16 at a time
    ... --prompt-tokens 512 --tokens 128 --ttft-ms 500 --tbt-ms 50 --json results.json

TTFT is the time to the first piece of text, TBT the time between two pieces, both as a client sees them, from the moment
at which the request was due: in the open loop, a server that is late is not asked more slowly. Goodput counts requests a
second that came to their end within the limits: TTFT within --ttft-ms, and the mean TBT within --tbt-ms. Many clients are too much for one process, whose lateness would
count as the server's: --processes shares them out. The standard library alone.
"""

import argparse
import asyncio
import dataclasses
import gc
import json
import math
import multiprocessing
import random
import sys
import time
import urllib.parse

WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or had an they".split()


@dataclasses.dataclass
class Load:
    url: str
    requests: int
    rate: float  # a second; 0: as `concurrency` says
    concurrency: int
    prompt_tokens: int
    tokens: int
    model: str = ""
    prompts: str = "text"  # or "ids"
    seed: int = 0
    timeout_s: float = 600
    processes: int = 1
    ramp: bool = False  # the first request of each client is for a part of the tokens
    under_way: bool = False  # and its prompt is longer by the others, as if they had been said


@dataclasses.dataclass
class Result:
    due_s: float
    ttft_s: float = 0
    between_s: list = dataclasses.field(default_factory=list)
    end_to_end_s: float = 0
    tokens: int = 0  # as the server counts them, or pieces where it does not
    prompt_tokens: int = 0
    error: str = ""

    def is_good(self, ttft_s, tbt_s):
        mean = sum(self.between_s) / len(self.between_s) if self.between_s else 0
        return not self.error and self.ttft_s <= ttft_s and mean <= tbt_s


def body_of(load, number):
    """The request with this number: prompts differ, so that no server has seen one before."""
    chance = random.Random(f"{load.seed} {number}")
    is_first = (load.ramp or load.under_way) and number < load.concurrency
    tokens = chance.randint(1, load.tokens) if is_first else load.tokens
    prompt_tokens = load.prompt_tokens + (load.tokens - tokens if load.under_way else 0)
    if load.prompts == "ids":
        prompt = [chance.randrange(100, 10_000) for _ in range(prompt_tokens)]
    else:
        prompt = " ".join(chance.choice(WORDS) for _ in range(prompt_tokens))
    body = {
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if load.model:
        body["model"] = load.model
    return json.dumps(body).encode()


async def read_head(reader):
    """Status and lower-case headers of a reply."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return int(lines[0].split(" ")[1]), headers


async def pieces(reader, headers):
    """The body, in the pieces in which it comes."""
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readline()
        return
    left = int(headers.get("content-length", -1))
    while left != 0:
        piece = await reader.read(left if 0 < left < 65536 else 65536)
        if not piece:
            return
        left -= len(piece) if left > 0 else 0
        yield piece


async def events(reader, headers):
    """The data of a stream's events, as they come."""
    waiting = b""
    async for piece in pieces(reader, headers):
        waiting += piece
        while b"\n\n" in waiting:
            event, waiting = waiting.split(b"\n\n", 1)
            if event.startswith(b"data: "):
                yield event[6:]


def take_event(data, result, last, now):
    """What an event adds to the result; returns when the latest text came."""
    event = json.loads(data)
    if "error" in event:
        raise ConnectionError(event["error"].get("message", "an error in the stream"))
    if usage := event.get("usage"):
        result.tokens = usage["completion_tokens"]
        result.prompt_tokens = usage["prompt_tokens"]
    if not any(choice.get("text") for choice in event["choices"]):
        return last
    if last is None:
        result.ttft_s = now
    else:
        result.between_s.append(now - last)
    return now


async def exchange(load, number, result, start):
    url = urllib.parse.urlsplit(load.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port or 80, limit=1 << 20)
    try:
        body = body_of(load, number)
        path = url.path.rstrip("/").removesuffix("/v1") + "/v1/completions"
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        status, headers = await read_head(reader)
        if status != 200:
            text = b"".join([piece async for piece in pieces(reader, headers)])
            raise ConnectionError(f"status {status}: {text[:200].decode(errors='replace')}")
        last = None
        done = False
        async for data in events(reader, headers):
            done = done or data == b"[DONE]"
            if not done:
                last = take_event(data, result, last, time.monotonic() - start)
        if not done or last is None:
            raise ConnectionError("the stream broke off" if not done else "no text came")
        result.tokens = result.tokens or len(result.between_s) + 1
    finally:
        writer.close()


async def ask(load, number, due_s, begin):
    result = Result(due_s)
    start = begin + due_s
    try:
        await asyncio.wait_for(exchange(load, number, result, start), load.timeout_s)
    except (OSError, ValueError, KeyError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError) as error:
        result.error = str(error) or type(error).__name__
    result.end_to_end_s = time.monotonic() - start
    return result


def arrivals(load):
    """When each request is due, in seconds: at random in the open loop."""
    chance = random.Random(load.seed)
    due, times = 0.0, []
    for _ in range(load.requests):
        times.append(due)
        due += chance.expovariate(load.rate)
    return times


async def open_loop(load, begin, numbers):
    due, tasks = arrivals(load), []
    for number in numbers:
        await asyncio.sleep(max(0.0, begin + due[number] - time.monotonic()))
        tasks.append(asyncio.create_task(ask(load, number, due[number], begin)))
    return await asyncio.gather(*tasks)


async def closed_loop(load, begin, numbers, clients):
    left = iter(numbers)
    results = []

    async def client():
        for number in left:
            results.append(await ask(load, number, time.monotonic() - begin, begin))

    await asyncio.gather(*(client() for _ in range(clients)))
    return results


async def run(load, begin=None, part=0):
    """All results of one process's share of the requests, and the seconds that they took together."""
    begin = time.monotonic() if begin is None else begin
    numbers = range(part, load.requests, load.processes)
    if load.rate > 0:
        results = await open_loop(load, begin, numbers)
    else:
        results = await closed_loop(load, begin, numbers, len(range(part, load.concurrency, load.processes)))
    return results, time.monotonic() - begin


def run_part(load, begin, part):
    gc.disable()  # a collection is a pause that the server did not make
    return asyncio.run(run(load, begin, part))


def run_all(load):
    """All results, and the seconds that they took together."""
    if load.processes == 1:
        return run_part(load, time.monotonic(), 0)
    with multiprocessing.get_context("fork").Pool(load.processes) as pool:
        begin = time.monotonic()  # the clock is the machine's
        shares = pool.starmap(run_part, [(load, begin, part) for part in range(load.processes)], chunksize=1)
    return [result for results, _ in shares for result in results], max(wall_s for _, wall_s in shares)


def at_share(values, share):
    """By the nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def shares_ms(values):
    return {f"p{int(share * 100)}": None if not values else 1e3 * at_share(values, share) for share in (0.5, 0.95, 0.99)}


def summary(load, results, wall_s, ttft_ms, tbt_ms):
    fine = [result for result in results if not result.error]
    good = [result for result in fine if result.is_good(ttft_ms / 1e3, tbt_ms / 1e3)]
    errors = {}
    for result in results:
        if result.error:
            errors[result.error] = errors.get(result.error, 0) + 1
    return {
        "load": dataclasses.asdict(load),
        "requests": len(results),
        "failed": len(results) - len(fine),
        "errors": errors,
        "wall_s": wall_s,
        "requests_per_s": len(fine) / wall_s,
        "tokens_per_s": sum(result.tokens for result in fine) / wall_s,
        "prompt_tokens": sum(result.prompt_tokens for result in fine),
        "tokens": sum(result.tokens for result in fine),
        "ttft_ms": shares_ms([result.ttft_s for result in fine]),
        "tbt_ms": shares_ms([between for result in fine for between in result.between_s]),
        "end_to_end_ms": shares_ms([result.end_to_end_s for result in fine]),
        "limits_ms": {"ttft": ttft_ms, "tbt": tbt_ms},
        "goodput_per_s": len(good) / wall_s,
        "good_share": len(good) / len(results) if results else 0,
    }


def table(made):
    def row(name, shares):
        cells = ["-" if shares[share] is None else f"{shares[share]:.1f}" for share in ("p50", "p95", "p99")]
        return f"{name:<16}" + "".join(f"{cell:>12}" for cell in cells)

    lines = [
        f"{made['requests']} requests in {made['wall_s']:.1f} s, {made['failed']} failed; "
        f"{made['requests_per_s']:.2f} requests/s, {made['tokens_per_s']:.1f} tokens/s",
        f"{'ms':<16}{'p50':>12}{'p95':>12}{'p99':>12}",
        row("TTFT", made["ttft_ms"]),
        row("TBT", made["tbt_ms"]),
        row("end to end", made["end_to_end_ms"]),
        f"goodput {made['goodput_per_s']:.2f} requests/s ({100 * made['good_share']:.1f} %) within TTFT "
        f"{made['limits_ms']['ttft']:g} ms and a mean TBT of {made['limits_ms']['tbt']:g} ms",
    ]
    return "\n".join(lines + [f"{count} x {error}" for error, count in made["errors"].items()])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0, help="requests a second, at random (Poisson)")
    parser.add_argument("--concurrency", type=int, default=8, help="requests at a time, without --rate")
    parser.add_argument("--prompt-tokens", type=int, default=128, help="about; words, or ids with --prompts ids")
    parser.add_argument("--prompts", choices=("text", "ids"), default="text")
    parser.add_argument("--tokens", type=int, default=64, help="new ones, of each request")
    parser.add_argument("--ramp", action="store_true",
                        help="the first request of each client is for 1 to --tokens, so that ends come as in a server that has run for long")
    parser.add_argument("--under-way", action="store_true",
                        help="likewise, and its prompt has the others behind it, so that the texts at work are at once as long as they will stay")
    parser.add_argument("--model", default="", help="its name, where the server wants one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="that share the requests; as many as 10,000 tokens/s each need")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a request")
    parser.add_argument("--ttft-ms", type=float, default=1000)
    parser.add_argument("--tbt-ms", type=float, default=100)
    parser.add_argument("--json", default="", help="a file for the results")
    return parser.parse_args()


def main():
    asked = arguments()
    load = Load(asked.url, asked.requests, asked.rate, asked.concurrency, asked.prompt_tokens, asked.tokens, asked.model,
                asked.prompts, asked.seed, asked.timeout, asked.processes, asked.ramp, asked.under_way)
    results, wall_s = run_all(load)
    made = summary(load, results, wall_s, asked.ttft_ms, asked.tbt_ms)
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(made, file, indent=1)
            file.write("\n")
    print(table(made))
    return 1 if made["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
