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


DTYPES = ["fp32", "fp16", "bf16", "int8", "fp8_e4m3"]

ENUMS = {enum.name: enum for enum in [
    Enum("NormOutput", "norm_output",
         "What a norm writes to `out`. Quantized rows are symmetric with one scale each: out * scale approximates y, "
         "and scale = max|y| / 127 (int8) or max|y| / 448 (fp8).",
         [Value("same", "HONE_OUTPUT_SAME", "the operator's dtype"),
          Value("int8", "HONE_OUTPUT_INT8"),
          Value("fp8", "HONE_OUTPUT_FP8", "E4M3")]),
    Enum("Activation", "activation",
         "What becomes of an element of a product.",
         [Value("none", "HONE_ACTIVATION_NONE"),
          Value("gelu_tanh", "HONE_GELU_TANH", "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"),
          Value("gelu_erf", "HONE_GELU_ERF", "0.5 x (1 + erf(x / sqrt(2)))"),
          Value("silu", "HONE_SILU", "x / (1 + exp(-x))"),
          Value("relu", "HONE_RELU")]),
    Enum("QuantFormat", "quant_format",
         "How a weight is stored: value = (code - zero point) * scale. docs/formats.md says where each bit stands.",
         [Value("w4a16", "HONE_W4A16", "codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all"),
          Value("w8a16", "HONE_W8A16", "codes -127 to 127 in blocks of 64 x 64"),
          Value("w8a8", "HONE_W8A8", "codes -127 to 127, [out, in]; x is multiplied as such codes, too"),
          Value("fp8", "HONE_FP8", "codes are E4M3 numbers, [out, in]; so is x")]),
    Enum("KvDtype", "kv_dtype",
         "What a KV cache holds.",
         [Value("same", "HONE_KV_SAME", "the operator's dtype"),
          Value("fp8_e4m3", "HONE_KV_FP8", "E4M3 codes; code * scale of its kv head approximates the element",
                cpp="fp8")]),
    Enum("RopeStyle", "rope_style",
         "Which elements of a head turn together.",
         [Value("half", "HONE_ROPE_HALF", "i and i + rotary_dim / 2, as in Llama"),
          Value("interleaved", "HONE_ROPE_INTERLEAVED", "2 i and 2 i + 1, as in GPT-J")]),
]}
