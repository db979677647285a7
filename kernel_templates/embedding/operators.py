from generate.declare import *

embedding = family(
    "embedding",
    says="rows of a table by the tokens' ids, with or without a scale and added positions",
    problem="EmbeddingProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the tables and of out"),
        choice("index", "int32 int64", "type of the ids", default="int32", enum="Index"),
        flag("scale", "multiplies the table's row by a number"),
        flag("positions", "adds a row of a second table"),
        extent("hidden", 1, 262144, "elements a row"),
        dynamic("tokens", 1, 2**24, "tokens of a call"),
        free("vocabulary", 1, 2**31 - 1, "rows of the table", default=32768),
        free("position_rows", 1, 2**31 - 1, "rows of the table of positions", default=1024),
    ],
    pointers=[
        read("ids", "tokens, 1", "p.index_type()", fill=permutation("p.step(vocabulary)")),
        weight("table", "vocabulary, hidden", strided=True),
        read("position_ids", "tokens, 1", "p.index_type()", when="positions",
             fill=permutation("p.step(position_rows)")),
        weight("position_table", "position_rows, hidden", strided=True, when="positions"),
        write("out", "tokens, hidden", strided=True),
    ],
    scalars=[size("tokens"), size("vocabulary"), size("position_rows"), strides(), real("scale", 1.5)],
)
