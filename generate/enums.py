"""The one table of every enum that crosses a language: numbers never change their meaning."""
import dataclasses
import typing


@dataclasses.dataclass
class Value:
    word: str  # in problem texts, on the command line and in Python
    c: str  # the enumerator in C
    says: str = ""
    cpp: str = ""  # the enumerator in C++, where that is not the word

    @property
    def name(self) -> str:
        return self.cpp or self.word


@dataclasses.dataclass
class Enum:
    name: str
    c: str
    says: str
    values: typing.List[Value]
    field: str = ""  # what descriptions call it, where that is not `c`


DTYPES = ["fp32", "fp16", "bf16", "int8", "fp8_e4m3"]

# What frameworks call them; the program and Python take both, in any case.
DTYPE_SYNONYMS = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}

ENUMS = {enum.name: enum for enum in [
    Enum("NormOutput", "norm_output",
         "What a norm writes to `out`. Quantized rows are symmetric with one scale each: out * scale approximates y, "
         "and scale = max|y| / 127 (int8) or max|y| / 448 (fp8).",
         [Value("same", "HONE_OUTPUT_SAME", "the operator's dtype"),
          Value("int8", "HONE_OUTPUT_INT8"),
          Value("fp8", "HONE_OUTPUT_FP8", "E4M3")], "output"),
    Enum("Activation", "activation",
         "What becomes of an element of a product.",
         [Value("none", "HONE_ACTIVATION_NONE"),
          Value("gelu_tanh", "HONE_GELU_TANH", "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"),
          Value("gelu_erf", "HONE_GELU_ERF", "0.5 x (1 + erf(x / sqrt(2)))"),
          Value("silu", "HONE_SILU", "x / (1 + exp(-x))"),
          Value("relu", "HONE_RELU"),
          Value("swiglu_oai", "HONE_SWIGLU_OAI",
                "gated experts alone, as gpt-oss has them: g / (1 + exp(-1.702 g)) * (u + 1), where g is the gate's "
                "product, at most 7, and u the other one, from -7 to 7")]),
    Enum("QuantFormat", "quant_format",
         "How a weight is stored: value = (code - zero point) * scale. docs/formats.md says where each bit stands.",
         [Value("w4a16", "HONE_QUANT_W4A16",
                "codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all"),
          Value("w8a16", "HONE_QUANT_W8A16", "codes -127 to 127 in blocks of 64 x 64"),
          Value("w8a8", "HONE_QUANT_W8A8",
                "codes -127 to 127, [out, in]; x is multiplied as such codes, too"),
          Value("fp8", "HONE_QUANT_FP8", "codes are E4M3 numbers, [out, in]; so is x")], "format"),
    Enum("KvDtype", "kv_dtype",
         "What a KV cache holds.",
         [Value("same", "HONE_KV_SAME", "the operator's dtype"),
          Value("fp8_e4m3", "HONE_KV_FP8", "E4M3 codes; code * scale of its kv head approximates the element",
                cpp="fp8")]),
    Enum("RopeStyle", "rope_style",
         "Which elements of a head turn together.",
         [Value("half", "HONE_ROPE_HALF", "i and i + rotary_dim / 2, as in Llama"),
          Value("interleaved", "HONE_ROPE_INTERLEAVED", "2 i and 2 i + 1, as in GPT-J")], "style"),
    Enum("IndexType", "index_type",
         "The type of ids on the device.",
         [Value("int32", "HONE_INDEX_INT32"),
          Value("int64", "HONE_INDEX_INT64")], "index"),
]}


@dataclasses.dataclass
class Status:
    c: str  # without HONE_
    number: int
    cpp: str  # of hone::Status; empty: only functions of C return it
    sentence: str  # hone_status_string()
    says: str  # behind the enumerator
    kind: str = "HoneError"  # Python's exception


STATUSES = [
    Status("OK", 0, "ok", "ok", ""),
    Status("BAD_ROWS", 1, "bad_rows",
           "the number of rows, or a size of the call, is negative or above the prepared maximum",
           "rows, or a size of the call, is negative or above the prepared maximum", "BadArgumentError"),
    Status("NULL_POINTER", 2, "null_pointer", "a tensor that this operator needs is a null pointer",
           "a tensor that this operator needs is {null}", "BadArgumentError"),
    Status("MISALIGNED", 3, "misaligned",
           "a pointer or row stride is not a multiple of the kernel's access width; 16 bytes always are",
           "a pointer or row stride is not a multiple of the kernel's access width", "BadArgumentError"),
    Status("BAD_STRIDE", 4, "bad_stride",
           "a row stride is smaller than a row, or those of k and v differ in a call that needs them alike",
           "a row stride is smaller than a row, or not one that goes with the others", "BadArgumentError"),
    Status("BAD_HANDLE", 5, "not_prepared", "a handle is null, or of another operator than the function's",
           "a handle is {null}, or of another operator than the function's"),
    Status("BAD_STRUCT", 6, "",
           "struct_size is not one that this library knows, or a field that it does not know is set: start from the "
           "header's _INIT macro",
           "struct_size is no size that this library knows, or a later field is set"),
    Status("FORKED", 7, "", "the handle was made before fork(): a child must make its own",
           "the handle was made before fork()", "ForkedError"),
    Status("LAUNCH_FAILED", 8, "launch_failed", "the driver refused the launch", "the driver refused",
           "LaunchError"),
    Status("BAD_EPSILON", 9, "bad_epsilon", "epsilon is negative, infinite or NaN",
           "epsilon is negative, infinite or NaN", "BadArgumentError"),
    Status("BAD_SCALE", 10, "bad_scale", "scale is infinite or NaN, or softcap is not above 0",
           "scale is infinite or NaN, or softcap is not above 0", "BadArgumentError"),
    Status("BAD_LENGTHS", 11, "bad_lengths",
           "a length or position is negative or beyond what there is room for, or starts decrease",
           "checked indices: a length or position past its room, or decreasing starts", "BadArgumentError"),
    Status("BAD_PAGES", 12, "bad_pages", "the cache has no pages, or a page or slot is not within it",
           "a paged cache without pages; checked indices: a page or slot outside", "BadArgumentError"),
    Status("CAPTURING", 13, "capturing",
           "neither can indices be checked nor weights quantized while a stream is captured",
           "checked indices, quantizing weights: not possible under stream capture"),
    Status("BAD_INDICES", 14, "bad_indices",
           "an id or position has no row in its table, or the rows of a routing are not each pair once",
           "checked indices: an id or position without a row in its table, a pair of a routing missing",
           "BadArgumentError"),
    Status("BAD_ARGUMENT", 20, "", "a size, dtype or option that the operator does not take",
           "a size, dtype or option that the operator does not take", "BadArgumentError"),
    Status("NO_GPU", 21, "", "no driver, too old a driver, or no such device",
           "no driver, too old a driver, no such device", "NoGpuError"),
    Status("COMPILE_FAILED", 22, "", "NVRTC is missing or refused the kernel",
           "NVRTC is missing or refused the kernel",
           "CompileError"),
    Status("FROZEN", 23, "", "a compile was needed that is not allowed",
           "a compile was needed that is not allowed",
           "FrozenError"),
    Status("OUT_OF_MEMORY", 24, "", "out of host memory", "host memory is exhausted", "OutOfMemoryError"),
    Status("FAILED", 25, "", "failed", "anything else: a dead device, device memory, ..."),
]
# hone::Status in its own order, whose numbers stay as they are, with what C++ says where that is not the table's.
CPP_STATUSES = "ok bad_rows null_pointer misaligned bad_stride bad_epsilon launch_failed not_prepared bad_scale " \
               "bad_lengths bad_pages capturing bad_indices".split()
CPP_SENTENCES = {
    "launch_failed": "the driver refused the launch; Runtime::last_launch_error() says why",
    "not_prepared": "the kernel object is empty; Runtime::prepare() makes one",
}
CPP_SAYS = {
    "launch_failed": "the driver refused; Runtime::last_launch_error() says what",
    "not_prepared": "the kernel object is empty: default-constructed or moved from",
}
