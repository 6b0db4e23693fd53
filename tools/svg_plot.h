// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Plots as SVG, drawn for a width in CSS pixels so that text keeps its size on a phone. Colours are classes and CSS
// variables: the page that holds the plot, or standalone_svg(), gives them, light and dark.
#include <functional>
#include <string>
#include <vector>

namespace weft {

using NumberText = std::function<std::string(double)>;

struct Axis {
  std::string label;
  NumberText text;   // of a tick
  double most = 0;   // the axis ends at the first tick that is not below this
  double least = 0;  // logarithmic axes begin here
  bool logarithmic = false;
  bool ends_at_most = false;  // it ends at `most` itself
  bool binary = false;        // ticks at powers of two: bytes
};

struct Curve {
  std::size_t series = 0;  // which colour and dash
  std::vector<std::pair<double, double>> points;
  bool steps = false;  // holds its value until the next point
  bool thin = false;   // a companion of the curve of the same colour
};

struct Legend {
  std::size_t series = 0;
  std::string name;
  bool thin = false;
};

struct LinePlot {
  std::string title;  // for screen readers
  Axis x, y;
  std::vector<Curve> curves;
  std::vector<Legend> legend;
};
std::string line_plot(const LinePlot& plot, double width);

/// Horizontal bars: a group for each row, a bar for each series in it. A value below 0 is left out.
struct BarPlot {
  std::string title;
  NumberText text;
  std::vector<Legend> legend;
  struct Row {
    std::string label;
    std::vector<double> values;  // [place in legend]
  };
  std::vector<Row> rows;
};
std::string bar_plot(const BarPlot& plot, double width);

/// A row of coloured cells for each label, over a horizontal axis. Values from 0 to `most`; none is below.
struct HeatMap {
  std::string title;
  Axis x;
  double most = 1;
  NumberText text;  // of a value
  std::string value_label;
  struct Panel {
    std::string name;
    std::size_t series = 0;
    std::vector<std::string> labels;
    std::vector<std::string> groups;  // [row]: named instead of the rows where they are too many
    std::vector<std::vector<double>> rows;
  };
  std::vector<Panel> panels;
};
std::string heat_map(const HeatMap& map, double width);

/// The style that plots count on, for `scope` (":root" or "svg").
std::string plot_style(const std::string& scope);
/// A plot as a file of its own, with its style and a background.
std::string standalone_svg(const std::string& svg);

std::string escaped(const std::string& text);  // for HTML and SVG

}  // namespace weft
