"""RMSNorm from Python: tune once, prepare once, call often; every result is held against PyTorch's.

    python3 examples/python/rmsnorm.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone


def quick_start() -> None:
    x = torch.randn(16, 4096, dtype=torch.bfloat16, device="cuda")
    weight = torch.randn(4096, dtype=torch.bfloat16, device="cuda")

    hone.tune("llama-3-8b")  # once per GPU and model; later processes know the winners

    llama = hone.prepare("llama-3-8b")  # at start-up: loads or compiles
    y = llama["rmsnorm"](x, weight)  # from then on: launches, on the current stream

    check(y, x, weight)
    print(f"{llama} on {hone.device_name()}")


def one_operator() -> None:
    x = torch.randn(300, 4096, dtype=torch.float16, device="cuda")
    residual = torch.randn(300, 4096, dtype=torch.float16, device="cuda")
    weight = torch.randn(4096, dtype=torch.float16, device="cuda")
    total = x + residual

    norm = hone.prepare(hone.RmsNorm(hidden=4096, max_rows=512, dtype="fp16", residual=True))
    hone.freeze()  # from here on nothing compiles
    y, residual = norm(x, weight, residual, sum=residual, epsilon=1e-5)

    check(y, total, weight)
    print(norm.report_text(), end="")


def check(y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    """Holds y against an RMSNorm in fp32."""
    wanted = torch.nn.functional.rms_norm(x.float(), (4096,), weight.float(), 1e-5)
    torch.testing.assert_close(y.float(), wanted, rtol=1.6e-2, atol=1e-2)


if __name__ == "__main__":
    quick_start()
    one_operator()
