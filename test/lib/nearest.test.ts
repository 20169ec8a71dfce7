import { expect, it } from "vitest";
import { findNearest } from "../../src/lib/nearest.ts";

const PRESETS = ["github", "gitlab", "slack", "stripe", "s3"];

it.each([
  ["slcak", "slack"],
  ["lsack", "slack"],
  ["githbu", "github"],
  ["gtihub", "github"],
  ["gitlba", "gitlab"],
  ["stirpe", "stripe"],
  ["slac", "slack"],
  ["slackk", "slack"],
  ["slick", "slack"],
])("the name most similar to %s is %s", (text, nearest) => {
  expect(findNearest(text, PRESETS)).toBe(nearest);
});

it.each(["kcals", "paypal", "3s", ""])("no name is similar to %j", (text) => {
  expect(findNearest(text, PRESETS)).toBeUndefined();
});
