#!/usr/bin/env bash
# Everything that the campaign has, at full scale, within a budget (default an hour): tests/campaign.sh BUILD_FOLDER
# [--budget SECONDS] [--out FOLDER] [--jobs N] [--only PART ...] [--coverage FILE] [--sanitized FILE]. BUILD_FOLDER is a finished
# build of the release preset; one of the preset fuzz beside it is used, too. N processes share the points of a test (default: half
# of the cores). Writes FOLDER/results.json, a log of each test beside it, and puts what the parts reached into docs/reliability.json
# and the document beside it, where the other parts stay; ends with 1 when anything failed.
set -euo pipefail
exec nice -n 10 python3 -B "$(dirname "${BASH_SOURCE[0]}")/campaign/campaign.py" "$@"
