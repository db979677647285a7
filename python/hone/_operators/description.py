"""Bases of the descriptions of operators: their checks, their C structs, and what tensors follow from
them."""

from __future__ import annotations

from ctypes import Structure, sizeof
from dataclasses import Field, fields
from typing import Any, ClassVar, Dict, List, Tuple, Type

from .._native import structs
from .._native.integers import integer
from .stored import StoredWeight

# Queries of a sequence that the kernels of attention over a cache take; more are those of a prompt.
MOST_DECODED = 16

# What codes may be, best first: where a library has no fp8, its bytes do.
CODES = {"int8": ("int8",), "fp8": ("fp8_e4m3", "uint8"), "fp8_e4m3": ("fp8_e4m3", "uint8")}


def dtype_name(dtype: Any, field: str = "dtype") -> str:
    """Our name, "bf16", for "bf16", "BF16", "bfloat16" or torch.bfloat16. Raises ValueError."""
    text = str(dtype)
    word = text[len("torch.") :] if text.startswith("torch.") else text.lower()
    name = structs.DTYPE_SYNONYMS.get(word, word)
    return _one_of(field, name if name in structs.DTYPES else dtype, structs.DTYPES)


def _one_of(field: str, value: Any, allowed: Dict[str, int]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{field}: {value!r}; allowed are {', '.join(allowed)}")
    return value


class Description:
    """Base of the descriptions. C_NAME is the middle of its C functions' names: hone_<C_NAME>_prepare."""

    C_NAME: ClassVar[str]
    STRUCT: ClassVar[Type[Structure]]
    SIZES: ClassVar[Tuple[str, ...]]  # fields that are sizes
    LIMIT: ClassVar[str]  # the field that is the most rows of one call
    WORDS: ClassVar[Dict[str, Dict[str, int]]]  # fields that are one of some words, with their numbers in C
    C_FIELDS: ClassVar[Dict[str, str]] = {}  # members of STRUCT that have another name than their field
    CALL_SIZES: ClassVar[Tuple[str, ...]] = ("rows",)  # that say how much one call is of
    # The kernel family whose problem this is, field by field under the names in C; "": none, or several.
    FAMILY: ClassVar[str] = ""
    NOT_IN_FAMILY: ClassVar[Tuple[str, ...]] = ()  # fields that the family's problems lack
    ROWS_ARE_SEQUENCES: ClassVar[bool] = False  # a model's calls have one a sequence, not one a token
    dtype: str

    def __post_init__(self) -> None:
        """Checks types, and brings names into their one form; sizes are libhone's to judge."""
        for field in self.SIZES:
            value = integer(getattr(self, field))
            if value is None:
                raise TypeError(f"{field}: {getattr(self, field)!r}; allowed is an int")
            if not -(2**63) <= value < 2**63:  # ctypes would cut it off
                raise ValueError(f"{field}: {value}; allowed are numbers of 64 bits")
            object.__setattr__(self, field, value)
        for field in (field.name for field in fields(self) if str(field.type) == "bool"):
            if not isinstance(getattr(self, field), bool):
                raise TypeError(f"{field}: {getattr(self, field)!r}; allowed is a bool")
        for field, words in self.WORDS.items():
            if words is structs.DTYPES:
                object.__setattr__(self, field, dtype_name(getattr(self, field), field))
            else:
                _one_of(field, getattr(self, field), words)

    def _set_default(self, field: str, default: int, value: int) -> None:
        """Two descriptions of the same are equal."""
        if getattr(self, field) == default:
            object.__setattr__(self, field, value)

    @property
    def most_rows(self) -> int:
        """Most rows, or tokens, of one call."""
        return getattr(self, self.LIMIT)

    @classmethod
    def of_problem(cls, problem: Dict[str, str], most_rows: int) -> "Description":
        """The description of a problem of FAMILY, {"dtype": "bf16", "residual": "no", ...}, for calls of up
        to `most_rows` rows. What the problem leaves out has its default, as in the text of a problem."""
        given: Dict[str, Any] = {cls.LIMIT: most_rows}
        for field in cls._family_fields():
            text = problem.get(cls.C_FIELDS.get(field.name, field.name))
            if text is None:
                continue
            is_size, is_flag = field.name in cls.SIZES, str(field.type) == "bool"
            given[field.name] = int(text) if is_size else text == "yes" if is_flag else text
        return cls(**given)

    def problem_fields(self) -> Dict[str, Any]:
        """The fields of FAMILY's problem that this is; those of a call are not among them."""
        names = (field.name for field in self._family_fields())
        return {self.C_FIELDS.get(name, name): getattr(self, name) for name in names}

    @classmethod
    def _family_fields(cls) -> List[Field[Any]]:
        return [field for field in fields(cls) if field.name not in (cls.LIMIT, *cls.NOT_IN_FAMILY)]

    def to_struct(self) -> Structure:
        """The C struct of this description."""
        values = {self.C_FIELDS.get(field, field): value for field, value in vars(self).items()}
        for field, words in self.WORDS.items():
            values[field] = words[values[field]]
        return self.STRUCT(struct_size=sizeof(self.STRUCT), **values)


class OfNorm(Description):
    """Base of the norms."""

    output: str

    @property
    def quantized(self) -> bool:
        """Whether out gets codes, with scales."""
        return self.output != "same"

    @property
    def out_dtype(self) -> Tuple[str, ...]:
        """What out may be, best first."""
        return CODES[self.output] if self.quantized else (self.dtype,)


class OfAttention(Description):
    """Base of Attention: of heads, of which k and v have as many as q where nothing else is said."""

    heads: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_default("kv_heads", 0, self.heads)


class OfRopeKvAppend(OfAttention):
    """Base of RopeKvAppend, which turns whole heads where nothing else is said."""

    head_dim: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_default("rotary_dim", -1, self.head_dim)


class OfAttentionAppend(OfRopeKvAppend):
    """Base of AttentionAppend, the same."""


class OfExpertRouting(Description):
    """Base of ExpertRouting."""

    experts: int

    @property
    def starts_shape(self) -> Tuple[bool, Tuple[int, ...]]:
        return False, (self.experts + 1,)


class OfExpertLinear(Description):
    """Base of ExpertLinear."""

    in_features: int
    out_features: int
    experts: int
    top_k: int
    gated: bool
    bias: bool
    gather: bool
    combine: bool

    @property
    def maps_rows(self) -> bool:
        """Whether the call says which token stands at which place."""
        return self.gather or self.combine

    @property
    def gated_bias(self) -> bool:
        return self.gated and self.bias

    @property
    def starts_shape(self) -> Tuple[bool, Tuple[int, ...]]:
        return False, (self.experts + 1,)

    @property
    def x_shape(self) -> Tuple[bool, Tuple[int, ...]]:
        return self._rows_of(self.in_features, self.gather)

    @property
    def out_shape(self) -> Tuple[bool, Tuple[int, ...]]:
        return self._rows_of(self.out_features, self.combine)

    def _rows_of(self, columns: int, by_token: bool) -> Tuple[bool, Tuple[int, ...]]:
        """Rows by place stand as top_k for each token."""
        return True, (columns,) if by_token else (self.top_k, columns)


class OfQuantizedExpertLinear(OfExpertLinear):
    """Base of QuantizedExpertLinear."""

    format: str
    group: int

    def stored(self, rows: int, columns: int) -> StoredWeight:
        """How an expert's weight is stored."""
        return StoredWeight(rows, columns, self.format, self.group)


class _OfQuantized(Description):
    """What operators with quantized weights have in common."""

    format: str
    group: int
    one_scale: bool
    quantized_x: bool
    one_x_scale: bool

    @property
    def columns_in(self) -> int:
        """Elements of a row of x."""
        return getattr(self, self.SIZES[0])

    def stored(self, rows: int, columns: int) -> StoredWeight:
        return StoredWeight(rows, columns, self.format, self.group, self.one_scale)

    @property
    def x_dtype(self) -> Tuple[str, ...]:
        """What x may be, best first."""
        codes = self.stored(1, 1).codes_dtype
        return CODES.get(codes, (codes,)) if self.quantized_x else (self.dtype,)

    @property
    def x_scales_shape(self) -> Tuple[bool, Tuple[int, ...]]:
        """Whether there are some for each token, and how many."""
        if self.group:
            return True, (self.columns_in // self.group,)
        return (False, (1,)) if self.one_x_scale else (True, ())


class OfQuantizedLinear(_OfQuantized):
    """Base of QuantizedLinear."""

    in_features: int
    out_features: int

    @property
    def stored_weight(self) -> StoredWeight:
        return self.stored(self.out_features, self.in_features)


class OfQuantizedFfn(_OfQuantized):
    """Base of QuantizedFfn."""

    hidden: int
    intermediate: int

    @property
    def stored_up(self) -> StoredWeight:
        """How up and gate are stored."""
        return self.stored(self.intermediate, self.hidden)

    @property
    def stored_down(self) -> StoredWeight:
        return self.stored(self.hidden, self.intermediate)
