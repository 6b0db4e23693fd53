// SPDX-License-Identifier: BSD-3-Clause
#include "tools/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/png.h"

namespace weft {
namespace {

constexpr double font = 12, line_height = 18;  // CSS pixels
constexpr std::size_t colours = 6;

/// As wide as the widest of the usual fonts (DejaVu Sans) draws it.
double text_width(const std::string& text) {
  double width = 0;
  for (const char c : text) {
    const bool wide = c == '%' || c == 'm' || c == 'M' || c == 'w' || c == 'W';
    const bool slim = c == 'i' || c == 'l' || c == 'j' || c == ':' || c == '.' || c == ',' || c == ' ' || c == '/';
    width += wide ? 11.6 : slim ? 4.3 : 7.8;
  }
  return width;
}

/// "3.5", without zeros that say nothing.
std::string px(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* style = "t") {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", style, px(x), px(y), anchor,
                     escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", style, px(x1), px(y1), px(x2),
                     px(y2));
}

std::string open_svg(const std::string& title, double width, double height) {
  return fmt::format(
      "<svg class=\"plot\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
      "width=\"{}\" height=\"{}\">",
      escaped(title), px(width), px(height), px(width), px(height));
}

/// A step of 1, 2 or 5 times a power of ten (binary: a power of two) that gives at most `ticks` of them.
double tick_step(double most, double ticks, bool binary) {
  const double least = most / std::max(ticks, 1.0);
  if (least <= 0) return 1;
  if (binary) return std::exp2(std::ceil(std::log2(least)));
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= least * 0.999999) return step * power;
  return 10 * power;
}

std::vector<double> ticks_of(const Axis& axis, double count, double& end) {
  std::vector<double> ticks;
  if (axis.logarithmic) {
    end = std::max(axis.most, axis.least * 1.01);
    const bool fine = 3 * std::log10(end / axis.least) <= count;
    for (double power = std::pow(10, std::floor(std::log10(axis.least))); power <= end; power *= 10)
      for (const double step : {1.0, 2.0, 5.0})
        if ((step == 1.0 || fine) && step * power >= axis.least * 0.999999 && step * power <= end * 1.000001)
          ticks.push_back(step * power);
    while (static_cast<double>(ticks.size()) > std::max(count, 2.0)) {  // every other one
      std::vector<double> kept;
      for (std::size_t i = 0; i < ticks.size(); i += 2) kept.push_back(ticks[i]);
      ticks = kept;
    }
    return ticks;
  }
  const double most = axis.most > 0 ? axis.most : 1;
  const double step = tick_step(most, count, axis.binary);
  // Up to `most`, or to the first tick that is not below it.
  const double last = axis.ends_at_most ? most : most + step * 0.999;
  for (double tick = 0; tick <= last; tick += step) ticks.push_back(tick);
  end = axis.ends_at_most ? most : ticks.back();
  return ticks;
}

/// Names beside samples of their lines, in as many lines as they need.
std::string legend_of(const std::vector<Legend>& legend, double left, double width, bool bars, double& y) {
  std::string svg;
  double x = left;
  for (const Legend& entry : legend) {
    const double needed = 26 + text_width(entry.name) + 14;
    if (x > left && x + needed > width) x = left, y += line_height;
    const std::size_t colour = entry.series % colours;
    if (bars)
      svg += fmt::format("<rect class=\"f{}\" x=\"{}\" y=\"{}\" width=\"14\" height=\"10\"/>", colour, px(x + 4),
                         px(y - 9));
    else
      svg += line_at(x, y - 4, x + 22, y - 4, fmt::format("s{}{}", colour, entry.thin ? " thin" : "").c_str());
    svg += text_at(x + 26, y, "start", entry.name);
    x += needed;
  }
  y += line_height;
  return svg;
}

struct Scale {
  double from, to, begin, end;
  bool logarithmic;
  [[nodiscard]] double operator()(double value) const {
    const double share = logarithmic ? std::log(std::max(value, begin) / begin) / std::log(end / begin)
                                     : (value - begin) / (end - begin);
    return from + std::clamp(share, 0.0, 1.0) * (to - from);
  }
};

/// Below its tick, or as near to it as the edge allows.
std::string tick_label(const std::string& text, double x, double y, double edge) {
  const bool at_end = x + text_width(text) / 2 > edge;
  return text_at(at_end ? edge : x, y, at_end ? "end" : "middle", text);
}

/// Grid lines and numbers along the bottom, and the axis' name below them.
std::string bottom_axis(const Axis& axis, const std::vector<double>& ticks, const Scale& x, double top, double bottom) {
  std::string svg;
  for (const double tick : ticks) {
    svg += line_at(x(tick), top, x(tick), bottom, "g");
    svg += tick_label(axis.text(tick), x(tick), bottom + 16, x.to + 14);
  }
  return svg + text_at((x.from + x.to) / 2, bottom + 34, "middle", axis.label, "m");
}

std::string path_of(const Curve& curve, const Scale& x, const Scale& y) {
  std::string path;
  double before = 0;
  for (const auto& [at, value] : curve.points) {
    const double px_x = x(at), px_y = y(value);
    if (path.empty())
      path = fmt::format("M{} {}", px(px_x), px(px_y));
    else if (curve.steps)
      path += fmt::format("H{}V{}", px(px_x), px(px_y));
    else if (px_x - before >= 0.05)
      path += fmt::format("L{} {}", px(px_x), px(px_y));
    else
      path += fmt::format("V{}", px(px_y));
    before = px_x;
  }
  return path;
}

/// Dark blue over green to yellow: told apart without colour, on white and on black.
std::vector<std::array<std::uint8_t, 3>> heat_palette() {
  constexpr std::array<std::array<double, 3>, 6> stops{
      {{68, 50, 122}, {59, 92, 140}, {38, 134, 142}, {53, 176, 121}, {143, 214, 68}, {253, 224, 57}}};
  std::vector<std::array<std::uint8_t, 3>> palette{{0, 0, 0}};  // nothing at all: transparent
  for (int i = 1; i < 256; ++i) {
    const double at = (i - 1) / 254.0 * (stops.size() - 1);
    const auto k = std::min(static_cast<std::size_t>(at), stops.size() - 2);
    std::array<std::uint8_t, 3> colour{};
    for (std::size_t part = 0; part < 3; ++part)
      colour[part] = static_cast<std::uint8_t>(
          std::lround(stops[k][part] + (stops[k + 1][part] - stops[k][part]) * (at - static_cast<double>(k))));
    palette.push_back(colour);
  }
  return palette;
}

std::string image(const std::vector<std::vector<double>>& rows, double most, double x, double y, double width,
                  double height) {
  Picture picture;
  picture.width = static_cast<std::uint32_t>(rows.front().size());
  picture.height = static_cast<std::uint32_t>(rows.size());
  picture.palette = heat_palette();
  picture.first_is_transparent = true;
  for (const auto& row : rows)
    for (const double value : row) {
      const double share = most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0;
      picture.pixels.push_back(share <= 0 ? 0 : static_cast<std::uint8_t>(1 + std::lround(share * 254)));
    }
  return fmt::format(
      "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
      "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>",
      px(x), px(y), px(width), px(height), base64(png(picture)));
}

/// The names of rows where there is room, else those of groups, else of as many of these as fit.
std::string row_labels(const HeatMap::Panel& panel, double left, double top, double row_height) {
  std::string svg;
  const bool each = row_height >= 13;
  double free_from = top;
  std::size_t first = 0;
  for (std::size_t row = 0; row < panel.labels.size(); ++row) {
    const bool last = row + 1 == panel.labels.size();
    if (each) {
      svg += text_at(left - 6, top + (static_cast<double>(row) + 0.5) * row_height + 4, "end", panel.labels[row]);
      continue;
    }
    if (!last && panel.groups[row + 1] == panel.groups[row]) continue;
    const double middle = top + static_cast<double>(first + row + 1) / 2 * row_height;
    if (middle - 6 >= free_from) {
      svg += text_at(left - 6, middle + 4, "end", panel.groups[row]);
      free_from = middle + 7;
    }
    first = row + 1;
  }
  return svg;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string line_plot(const LinePlot& plot, double width) {
  const bool narrow = width < 500;
  double y_end = 0, x_end = 0;
  const double height_of_plot = narrow ? 190 : 250;
  const std::vector<double> y_ticks = ticks_of(plot.y, 5, y_end);
  double left = 0;
  for (const double tick : y_ticks) left = std::max(left, text_width(plot.y.text(tick)));
  left += 8;
  const double right = width - 18;
  double widest = 0;
  for (const double sample : {plot.x.most, plot.x.most / 3}) widest = std::max(widest, text_width(plot.x.text(sample)));
  const std::vector<double> x_ticks = ticks_of(plot.x, std::floor((right - left) / (widest + 26)), x_end);

  double y = font;
  std::string body = legend_of(plot.legend, 0, width, false, y);
  y += 3;
  body += text_at(0, y, "start", plot.y.label, "m");
  const double top = y + 10, bottom = top + height_of_plot;
  const Scale scale_x{left, right, plot.x.logarithmic ? plot.x.least : 0, x_end, plot.x.logarithmic};
  const Scale scale_y{bottom, top, 0, y_end, false};
  body += bottom_axis(plot.x, x_ticks, scale_x, top, bottom);
  for (const double tick : y_ticks) {
    body += line_at(left, scale_y(tick), right, scale_y(tick), tick == 0 ? "a" : "g");
    body += text_at(left - 6, scale_y(tick) + 4, "end", plot.y.text(tick));
  }
  for (const Curve& curve : plot.curves)
    if (!curve.points.empty())
      body += fmt::format("<path class=\"s{}{}\" d=\"{}\"/>", curve.series % colours, curve.thin ? " thin" : "",
                          path_of(curve, scale_x, scale_y));
  return open_svg(plot.title, width, bottom + 40) + body + "</svg>";
}

std::string bar_plot(const BarPlot& plot, double width) {
  const bool narrow = width < 500;
  double most = 0, label_width = 0, value_width = 0;
  for (const BarPlot::Row& row : plot.rows) {
    label_width = std::max(label_width, text_width(row.label));
    for (const double value : row.values) {
      most = std::max(most, value);
      if (value >= 0) value_width = std::max(value_width, text_width(plot.text(value)));
    }
  }
  // A phone has no room beside the bars for their names: they go above.
  const bool above = narrow && label_width > width * 0.3;
  const double left = above ? 0 : label_width + 10, right = width - value_width - 8, bar = 12;
  double y = font;
  std::string body = legend_of(plot.legend, 0, width, true, y);
  for (const BarPlot::Row& row : plot.rows) {
    if (above) body += text_at(0, y + 7, "start", row.label), y += 12;
    const double group = bar * static_cast<double>(row.values.size());
    if (!above) body += text_at(left - 8, y + group / 2 + 4, "end", row.label);
    for (std::size_t i = 0; i < row.values.size(); ++i, y += bar) {
      const double value = row.values[i];
      if (value < 0) continue;
      const double length = most > 0 ? std::max((right - left) * value / most, value > 0 ? 1.0 : 0.0) : 0;
      body += fmt::format("<rect class=\"f{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                          plot.legend[i].series % colours, px(left), px(y + 1), px(length), px(bar - 2));
      body += text_at(left + length + 5, y + 10, "start", plot.text(value), "t small");
    }
    y += 9;
  }
  return open_svg(plot.title, width, y) + body + "</svg>";
}

std::string heat_map(const HeatMap& map, double width) {
  double left = 0;
  for (const HeatMap::Panel& panel : map.panels)
    for (const std::string& label : panel.labels) left = std::max(left, text_width(label));
  left = std::min(left + 8, width * 0.4);
  const double right = width - 18;
  double x_end = 0, widest = 0;
  for (const double sample : {map.x.most, map.x.most / 3}) widest = std::max(widest, text_width(map.x.text(sample)));
  const std::vector<double> ticks = ticks_of(map.x, std::floor((right - left) / (widest + 26)), x_end);
  const Scale x{left, right, 0, x_end, false};

  double y = font;
  std::string body;
  // The scale of colours.
  std::vector<std::vector<double>> ramp(1);
  for (int i = 1; i <= 64; ++i) ramp[0].push_back(i / 64.0);
  const std::string zero = map.text(0), full = map.text(map.most);
  body += text_at(0, y, "start", map.value_label, "m");
  y += 16;
  body += text_at(0, y, "start", zero);
  body += image(ramp, 1, text_width(zero) + 6, y - 10, 120, 11);
  body += text_at(text_width(zero) + 132, y, "start", full);
  y += 14;
  for (const HeatMap::Panel& panel : map.panels) {
    if (panel.rows.empty() || panel.rows.front().empty()) continue;
    y += 12;
    body += text_at(0, y, "start", panel.name, fmt::format("t name c{}", panel.series % colours).c_str());
    const double top = y + 8;
    const double row_height = std::clamp(300.0 / static_cast<double>(panel.rows.size()), 2.0, 15.0);
    const double bottom = top + row_height * static_cast<double>(panel.rows.size());
    const double end = x(std::min(map.x.most, x_end));
    body += image(panel.rows, map.most, left, top, end - left, bottom - top);
    body += fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", px(left), px(top),
                        px(end - left), px(bottom - top));
    body += row_labels(panel, left, top, row_height);
    const bool last = &panel == &map.panels.back();
    if (last) {
      for (const double tick : ticks) {
        if (x(tick) > end + 1) continue;
        body += line_at(x(tick), bottom, x(tick), bottom + 4, "a");
        body += tick_label(map.x.text(tick), x(tick), bottom + 17, right + 14);
      }
      body += text_at((left + right) / 2, bottom + 34, "middle", map.x.label, "m");
    }
    y = bottom + (last ? 40 : 10);
  }
  return open_svg(map.title, width, y) + body + "</svg>";
}

std::string plot_style(const std::string& scope) {
  const std::string light =
      "--bg:#ffffff;--ink:#1f2933;--muted:#586474;--grid:#e2e6eb;--axis:#8b97a5;"
      "--c0:#1864d6;--c1:#d9480f;--c2:#2b8a3e;--c3:#9c36b5;--c4:#b3245a;--c5:#0b7285";
  const std::string dark =
      "--bg:#14181d;--ink:#e6e9ed;--muted:#a3adb9;--grid:#2b323a;--axis:#7b8794;"
      "--c0:#74aaff;--c1:#ffa24d;--c2:#69db7c;--c3:#da8cf2;--c4:#f783ac;--c5:#66d9e8";
  std::string css = scope + "{" + light + "}\n@media (prefers-color-scheme:dark){" + scope + "{" + dark + "}}\n";
  css +=
      ".plot text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--ink)}\n"
      ".plot text.m{fill:var(--muted)}\n.plot text.small{font-size:11px}\n.plot text.name{font-weight:600}\n"
      ".plot line.g{stroke:var(--grid)}\n.plot line.a{stroke:var(--axis)}\n"
      ".plot rect.frame{fill:none;stroke:var(--axis)}\n"
      ".plot path{fill:none}\n";
  constexpr std::array<const char*, colours> dashes{"none", "7 3", "2 2.5", "9 3 2 3", "5 2", "1 3"};
  for (std::size_t i = 0; i < colours; ++i)
    css += fmt::format(
        ".plot .s{0}{{stroke:var(--c{0});stroke-width:2.2;stroke-dasharray:{1}}}\n.plot .f{0}{{fill:var(--c{0})}}\n"
        ".plot text.c{0}{{fill:var(--c{0})}}\n",
        i, dashes[i]);
  css += ".plot .thin{stroke-width:1.1;opacity:.75}\n";
  return css;
}

std::string standalone_svg(const std::string& svg) {
  const std::size_t end = svg.find('>') + 1;
  return svg.substr(0, end) + "<style>" + plot_style("svg") + "</style><rect width=\"100%\" height=\"100%\" " +
         "style=\"fill:var(--bg)\"/>" + svg.substr(end) + "\n";
}

}  // namespace weft
