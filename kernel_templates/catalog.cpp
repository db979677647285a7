#include "kernel_templates/catalog.h"

#include <algorithm>

namespace hone {

const Family* find_family(std::string_view name) {
    const auto found = std::ranges::find(families(), name, &Family::name);
    return found == families().end() ? nullptr : *found;
}

const Variant* find_variant(const Family& family, std::string_view name) {
    const auto found = std::ranges::find(family.variants, name, &Variant::name);
    return found == family.variants.end() ? nullptr : *found;
}

const EmbeddedSource* find_source(std::string_view path) {
    const auto found = std::ranges::find(embedded_sources(), path, &EmbeddedSource::path);
    return found == embedded_sources().end() ? nullptr : &*found;
}

std::string_view template_hash(const Variant& variant) {
    const EmbeddedSource* source = find_source(variant.source);
    return source == nullptr ? std::string_view{} : source->hash;
}

}  // namespace hone
