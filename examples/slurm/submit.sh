#!/bin/sh
# Tunes a model on many GPUs at once, as a job array, and merges what they learnt:
#
#     FLEET=/shared/hone SHARDS=8 examples/slurm/submit.sh llama-3-8b --effort standard
#
# The words are those of `hone tune`. FLEET is a folder that all nodes see; each shard has a cache of its own in it, and the
# merge step leaves cache.db and winners.json there. Submitting again does only what is missing. Prints both jobs' numbers.
set -eu

: "${FLEET:?set FLEET to a folder that all nodes see}"
export FLEET SHARDS="${SHARDS:-8}"
here=$(dirname "$(realpath "$0")")
mkdir -p -m 700 "$FLEET"

tune=$(sbatch --parsable --array="1-$SHARDS" --output="$FLEET/tune-%a.log" "$here/tune.sbatch" "$@")
# Whatever became of the shards: a union may be made again when the lost ones have run.
merge=$(sbatch --parsable --dependency="afterany:$tune" --output="$FLEET/merge.log" "$here/merge.sbatch")
echo "$tune $merge"
