// SPDX-License-Identifier: BSD-3-Clause
//
// What commands print with --json: docs/schemas.
#pragma once

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace lockstep {

/// {"schema": ..., "ok": true, "result": ...}
Json answer_json(std::string_view schema, Json result);

/// {"schema": ..., "ok": false, "error": ...}
Json answer_json(std::string_view schema, const Error& error);

/// {"code": "E_CRC", "name": ..., "message": ..., ...}
Json error_json(const Error& error);

} // namespace lockstep
