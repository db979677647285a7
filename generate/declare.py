"""What kernel_templates/<folder>/operators.py declares with: families, and the public operators on them."""
from generate.families import (choice, constant, drawn, dtype, dynamic, epsilon, extent, family, flag, free,
                               normal,
                               number, permutation, ramp, read, real, shared, size, stride, strides, uneven_ramp,
                               uniform,
                               weight,
                               workspace, write)
from generate.operators import (call, choice_field, dtype_field, flag_field, integer, largest,
                                number_argument,
                                operator, part, real_argument, strides_argument, taken, tensor, torch_call,
                                weight_argument, workspace_argument)

__all__ = [name for name in dir() if not name.startswith("_") and name != "generate"]
