// SPDX-License-Identifier: BSD-3-Clause
//
// How the page looks was looked at in a browser; that it is one page, whole and
// safe, is tested here.
#include "lockstep/report/run_page.h"

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/report/html_text.h"

namespace lockstep::report {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kNasty = "<b>\u732b & \"x\" 'y' \u202egnp.exe";
constexpr std::string_view kShown =
    "&lt;b&gt;\u732b &amp; &quot;x&quot; &#39;y&#39; \\xe2\\x80\\xaegnp.exe";

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? std::string("\\\"") : std::string(1, c);
  }
  return out + "\"";
}

RunRecords nasty_run() {
  const std::string name = quoted(kNasty);
  return {
      .folder = std::string(kNasty),
      .state = "failed",
      .why = std::string(kNasty),
      .written = "today",
      .env = format(
          R"({{"lockstep":"0.1.0","devices":["cpu"],"ranks":2,"better":"higher",)"
          R"("command":["lockstep","train",{0}],)"
          R"("args":{{"model":{0},"epochs":3,"lr":0.05,"momentum":0.9}},)"
          R"("sources":{{"lr":{0}}},"data":{{"train_samples":60}},)"
          R"("starts":[{{"started":"a","step":0,"ranks":2,"host":{0}}},)"
          R"({{"step":7,"end":{{"how":"failed","why":{0},"message":{0}}}}}]}})",
          name),
      .details = format(
          R"({{"epoch":1,"tables":[{{"name":"per_class","columns":["f1"],)"
          R"("rows":[{{"name":{0},"values":[0.5]}},)"
          R"({{"name":"b","values":[null]}}]}},)"
          R"({{"name":"confusion","columns":[{0},"b"],)"
          R"("rows":[{{"name":{0},"values":[3,1]}},)"
          R"({{"name":"b","values":[0,4]}}]}}],)"
          R"("samples":[{{"name":{0},"target":{0},"output":{0},"right":false,)"
          R"("picture":"data:image/png;base64,QUJD"}},)"
          R"({{"name":"x","picture":"https://example.org/a.png"}}]}})",
          name),
      .log = format("warning: {}\nEpoch: [1]\nerror: {}\n", kNasty, kNasty)};
}

RunHistory some_history(int epochs) {
  RunHistory history;
  for (int i = 1; i <= epochs; ++i) {
    history.add(format(
        R"({{"event":"step","step":{},"loss":1.5,"samples":8,"seconds":0.5}})",
        i));
    history.add(format(
        R"({{"event":"epoch","epoch":{0},"step":{0},"train_loss":1.5,)"
        R"("val_loss":2.5,"val_top1":{1},"best_by":"val_top1","lr":0.1,)"
        R"("images_per_s":100,"epoch_s":2,"forward_s":0.5,)"
        R"("rank0_bytes":1048576}})",
        i,
        90 - i));
  }
  return history;
}

// Tags that are opened and not closed, or the other way round.
std::string unbalanced(std::string_view html) {
  constexpr std::array<std::string_view, 6>
      kVoid{"meta", "img", "br", "!DOCTYPE", "rect", "line"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != html.npos;
       at = html.find('<', at + 1)) {
    const bool closes = html[at + 1] == '/';
    const std::size_t from = at + (closes ? 2 : 1);
    const std::size_t end = html.find('>', at);
    const std::string name(
        html.substr(from, html.find_first_of(" >/", from) - from));
    if (html[end - 1] == '/' || std::ranges::find(kVoid, name) != kVoid.end()) {
      continue;
    }
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return format("</{}> at {}", name, at);
    } else {
      open.pop_back();
    }
  }
  return join(open, " ");
}

TEST(HtmlText, WhatHtmlMeansOtherwiseIsShown) {
  EXPECT_EQ(html_text(kNasty), kShown);
  EXPECT_EQ(html_text(std::string("a\0\n\xff", 4)), "a\\x00\\x0a\\xff");
  EXPECT_EQ(html_text("\u732b\u732b", 3), "\u732b...");
}

TEST(DataUri, IsBase64) {
  EXPECT_EQ(data_uri("a/b", ""), "data:a/b;base64,");
  EXPECT_EQ(data_uri("a/b", "A"), "data:a/b;base64,QQ==");
  EXPECT_EQ(data_uri("a/b", "AB"), "data:a/b;base64,QUI=");
  EXPECT_EQ(data_uri("a/b", "ABC"), "data:a/b;base64,QUJD");
  EXPECT_EQ(data_uri("a/b", "\xff\xfe\xfd\xfc"), "data:a/b;base64,//79/A==");
}

TEST(RunPage, ShowsForeignTextAsItIs) {
  const std::string page = run_page(nasty_run(), some_history(2));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("\u202e")));
  EXPECT_THAT(page, Not(HasSubstr("\"x\"")));
  std::string_view left = page;
  int shown = 0;
  for (std::size_t at = left.find(kShown); at != left.npos;
       at = left.find(kShown)) {
    ++shown;
    left.remove_prefix(at + 1);
  }
  EXPECT_GE(shown, 16) << "title, folder, why, model, command, source, host, "
                          "reasons, classes, sample, warnings";
}

TEST(RunPage, NeedsNothingBesideItself) {
  std::string page = run_page(nasty_run(), some_history(2));
  constexpr std::string_view kName = "xmlns=\"http://www.w3.org/2000/svg\"";
  page.erase(page.find(kName), kName.size()); // a name, and no link
  for (const char* word :
       {"http://",
        "https://",
        "<script",
        "<link",
        "href=",
        "url(",
        "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
  EXPECT_THAT(page, HasSubstr("src=\"data:image/png;base64,QUJD\""));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(RunPage, IsWholeWhateverIsMissing) {
  EXPECT_EQ(unbalanced(run_page(nasty_run(), some_history(2))), "");
  EXPECT_EQ(unbalanced(run_page(nasty_run(), some_history(9))), "");
  EXPECT_EQ(unbalanced(run_page({}, {})), "");
  for (const char* text :
       {"{",
        "[]",
        "1",
        R"({"args":1,"starts":{},"cpu":[]})",
        R"({"starts":{"a":1},"devices":{"a":[[]]}})",
        R"({"starts":1,"devices":[[1],{"a":2}]})",
        R"({"tables":[1,{"rows":[{}]}],"samples":[[]]})"}) {
    const std::string page =
        run_page({.env = text, .details = text}, some_history(1));
    EXPECT_EQ(unbalanced(page), "") << text;
    EXPECT_THAT(page, HasSubstr("</html>"));
  }
}

// Printing and comparing such values would take a stack without an end.
TEST(RunPage, LeavesOutWhatIsNestedWithoutEnd) {
  const std::string deep(300'000, '[');
  for (const std::string& close : {std::string(300'000, ']'), std::string()}) {
    const std::string page = run_page(
        {.env = "{\"host\":\"here\",\"devices\":" + deep + close + "}"},
        some_history(1));
    EXPECT_THAT(page, HasSubstr("</html>"));
  }
}

TEST(RunPage, TellsWhatARunDid) {
  const std::string page = run_page(nasty_run(), some_history(2));
  EXPECT_THAT(page, HasSubstr("<dt>best test top1</dt><dd>89"));
  EXPECT_THAT(page, HasSubstr("in epoch 1"));
  EXPECT_THAT(page, HasSubstr("2 ranks"));
  EXPECT_THAT(page, HasSubstr("killed: it did not say how it ended"))
      << "of the first start";
  EXPECT_THAT(page, HasSubstr("forward and loss"));
  EXPECT_THAT(page, HasSubstr("1.0 MiB"));
  EXPECT_THAT(page, HasSubstr("1 more have their defaults")) << "momentum";
  EXPECT_THAT(page, HasSubstr("taken for"));
  EXPECT_THAT(page, HasSubstr("wrong</span>"));
}

TEST(RunPage, TheLowestIsBestWhereTheRunSaysSo) {
  RunRecords run = nasty_run();
  const std::size_t at = run.env.find("higher");
  run.env.replace(at, 6, "lower");
  EXPECT_THAT(
      run_page(run, some_history(3)),
      HasSubstr("<dd>87<small>in epoch 3"));
}

TEST(RunPage, OfManyClassesTheWorstAreShownFirst) {
  std::string rows;
  for (int i = 0; i < 30; ++i) {
    rows += format(
        R"({}{{"name":"c{:02}","values":[{}]}})",
        i == 0 ? "" : ",",
        i,
        i == 3 ? "null" : format("0.{:02}", 90 - i));
  }
  const std::string page = run_page(
      {.details = format(
           R"({{"tables":[{{"name":"per_class","columns":["f1"],)"
           R"("rows":[{}]}}]}})",
           rows)},
      {});
  EXPECT_THAT(page, HasSubstr("the 20 of 30 with the lowest f1"));
  EXPECT_LT(page.find(">c29<"), page.find(">c28<"));
  EXPECT_LT(page.find(">c10<"), page.find("all 30"));
  EXPECT_GT(page.find(">c03<"), page.find("all 30")) << "of nothing counted";
}

} // namespace
} // namespace lockstep::report
