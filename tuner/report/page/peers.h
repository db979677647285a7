// What other libraries take for the same work: the results of bench/compare_torch.py (hone.compare/1), as
// `hone report --peers` takes them.
#pragma once

#include <filesystem>

#include "tuner/report/report_json.h"

namespace hone::tuner {

/// {name, date, machine, cases: [{op, sizes, hone_us, peers: [{name, us}]}]}; `machine` is one text,
/// `hone_us` is null where Hone failed, a peer that failed is left out. Throws InputError with file and
/// member for what is not such a file; regular files of at most 64 MiB.
[[nodiscard]] Json read_peers(const std::filesystem::path& file);
/// The same of a text; `file_name` is for messages.
[[nodiscard]] Json peers_from_json(const std::string& text, const std::string& file_name);

}  // namespace hone::tuner
