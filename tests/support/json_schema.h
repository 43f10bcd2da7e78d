// SPDX-License-Identifier: BSD-3-Clause
//
// What programs print as JSON against docs/schemas.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace lockstep::test {

/// The first place where `value` breaks `schema`; "" if none does. `where`:
/// what the value is called. Of JSON Schema it knows what docs/schemas uses:
/// type, const, enum, required, properties, additionalProperties and items.
std::string violation(
    const nlohmann::json& value,
    const nlohmann::json& schema,
    const std::string& where);

/// "lockstep.ckpt.ls/1" -> docs/schemas/ckpt.ls.json, from the source folder.
std::string schema_path(const std::string& name);

nlohmann::json read_json(const std::string& path);

/// `violation` of an answer and the schema that it names.
std::string violation_of_its_schema(const nlohmann::json& answer);

} // namespace lockstep::test
