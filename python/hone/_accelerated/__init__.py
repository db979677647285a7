"""What hone.accelerate() puts into a model of transformers: how it is built, its layers as Hone's operators, a cache, and graphs
of the decode step."""
