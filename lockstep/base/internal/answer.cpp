// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/answer.h"

#include <utility>

namespace lockstep {

Json answer_json(std::string_view schema, Json result) {
  return Json::object()
      .set("schema", schema)
      .set("ok", true)
      .set("result", std::move(result));
}

Json answer_json(std::string_view schema, const Error& error) {
  return Json::object()
      .set("schema", schema)
      .set("ok", false)
      .set("error", error_json(error));
}

Json error_json(const Error& error) {
  const ErrorInfo& info = error_info(error.code);
  return Json::object()
      .set("code", error.detail.empty() ? info.name : error.detail)
      .set("name", info.name)
      .set("op", error.op)
      .set("message", error.message)
      .set("path", error.path)
      .set("record", error.record)
      .set("offset", error.offset ? Json(*error.offset) : Json())
      .set("hint", error.hint);
}

} // namespace lockstep
