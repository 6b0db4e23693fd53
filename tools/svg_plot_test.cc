// SPDX-License-Identifier: BSD-3-Clause
#include "tools/svg_plot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tools/png.h"

namespace weft {
namespace {

std::string plain(double value) { return fmt::format("{:g}", value); }

LinePlot rising() {
  LinePlot plot;
  plot.title = "a < b";
  plot.x = {"x", plain, 7};
  plot.y = {"y", plain, 7};
  plot.curves.push_back({1, {{0, 0}, {7, 7}}});
  plot.legend.push_back({1, "one & two"});
  return plot;
}

TEST(SvgPlot, TextFromOutsideIsEscaped) {
  const std::string svg = line_plot(rising(), 800);
  EXPECT_NE(svg.find("aria-label=\"a &lt; b\""), std::string::npos);
  EXPECT_NE(svg.find(">one &amp; two<"), std::string::npos);
}

TEST(SvgPlot, AnAxisEndsAtATickOrAtTheEnd) {
  LinePlot plot = rising();
  EXPECT_NE(line_plot(plot, 800).find(">8<"), std::string::npos) << "7 lies between ticks, so the axis goes to 8";
  plot.x.ends_at_most = plot.y.ends_at_most = true;
  EXPECT_EQ(line_plot(plot, 800).find(">8<"), std::string::npos);
}

TEST(SvgPlot, NothingToShowIsStillAPlot) {
  LinePlot plot = rising();
  plot.x.most = plot.y.most = 0;
  plot.curves.clear();
  const std::string svg = line_plot(plot, 350);
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  BarPlot bars;
  bars.text = plain;
  bars.legend = {{0, "a"}};
  bars.rows = {{"nothing", {0}}, {"none", {-1}}};
  EXPECT_EQ(bar_plot(bars, 350).find("nan"), std::string::npos);
}

TEST(SvgPlot, AStandalonePlotBringsItsStyle) {
  const std::string svg = standalone_svg(line_plot(rising(), 800));
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_EQ(svg.rfind("<svg", 0), 0u);
}

TEST(Png, HasTheFormOfOne) {
  Picture picture{2, 1, {0, 1}, {{0, 0, 0}, {255, 0, 0}}, true};
  const std::string bytes = png(picture);
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  // Length, type, width 2, height 1, 8 bits of palette.
  EXPECT_EQ(bytes.substr(8, 21), std::string("\0\0\0\rIHDR\0\0\0\x02\0\0\0\x01\x08\x03\0\0\0", 21));
  EXPECT_NE(bytes.find("tRNS"), std::string::npos);
  EXPECT_EQ(bytes.substr(bytes.size() - 8, 4), "IEND");
  picture.pixels.pop_back();
  EXPECT_THROW(png(picture), std::invalid_argument);
}

TEST(Base64, AsTheStandardSays) {  // RFC 4648, section 10
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace weft
