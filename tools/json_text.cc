// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "tools/text.h"

namespace weft {
namespace {

/// The library would choose the decimals by value, so the text is kept, in a node kind that JSON itself lacks, until
/// write() puts it out as it is.
Json number(std::string text) { return Json::binary(std::vector<std::uint8_t>(text.begin(), text.end())); }

void write(std::string& out, const Json& json, std::size_t indent, bool one_line) {
  const auto line = [&](std::size_t depth) {
    if (!one_line) out += '\n', out.append(2 * depth, ' ');
  };
  if (json.is_binary()) {
    out.append(json.get_binary().begin(), json.get_binary().end());
  } else if (json.is_object() && !json.empty()) {
    char separator = '{';
    for (const auto& [key, value] : json.items()) {
      out += separator;
      if (one_line && separator == ',') out += ' ';
      separator = ',';
      line(indent + 1);
      out += Json(key).dump() + ": ";
      write(out, value, indent + 1, one_line);
    }
    line(indent);
    out += '}';
  } else if (json.is_array() && !json.empty()) {  // a line for each link, flow, ...
    char separator = '[';
    for (const Json& value : json) {
      out += separator;
      if (one_line && separator == ',') out += ' ';
      separator = ',';
      line(indent + 1);
      write(out, value, indent + 1, true);
    }
    line(indent);
    out += ']';
  } else {  // a file name may hold bytes that are no UTF-8
    out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

}  // namespace

Json fixed(double value, int decimals) { return number(fmt::format("{:.{}f}", value, decimals)); }
Json ns(TimePs time) { return number(as_ns(time)); }

std::string json_text(const Json& document) {
  std::string text;
  write(text, document, 0, false);
  text += '\n';
  return text;
}

}  // namespace weft
