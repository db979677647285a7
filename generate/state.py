"""What a prepared kernel keeps of its description: what the scalars of its calls are made of."""
import re
import typing

from generate.families import Scalar
from generate.operators import Given, Operator


def value_of(operator: Operator, scalar: Scalar) -> str:
    """What a scalar of the family is in a call."""
    call = operator.call
    if scalar.name in call.given:
        value = call.given[scalar.name]
        return value if "stride(" in value else f"std::int64_t{{{value}}}"
    argument = next((argument for argument in call.arguments if argument.name == scalar.name), None)
    value = re.sub(r"(?<![\w.])([a-z_]\w*)", r"d.\1", scalar.value)
    if argument is not None:
        return f"stride(args.{scalar.name}, {value})" if scalar.of else f"args.{scalar.name}"
    return scalar.name if scalar.name in call.sizes else value


def needed(operator: Operator) -> typing.Set[str]:
    """Names of the description that a call needs."""
    texts = [value_of(operator, scalar) for scalar in operator.family.scalars]
    return {name for text in texts for name in re.findall(r"\bd\.(\w+)", text)}


def kept(operator: Operator) -> typing.List[Given]:
    """What a kernel object of a simple operator knows of its description: all of it, or, where several operators
    share the object, what their calls need."""
    if operator.family is None:
        return []
    if operator.call.title == operator.title:
        return [Given("description", operator.title, 0, "")]
    return [given for given in operator.fields if given.name in needed(operator)]
