import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { renderSettingsTable } from "../src/config.ts";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const scripts = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    scripts: Record<string, string>;
  }
).scripts;

describe("the README", () => {
  it("lists the settings as the program knows them", () => {
    const between = /<!-- settings -->\n([\s\S]*?)\n<!-- \/settings -->/.exec(README)?.[1];
    expect(between?.trim()).toBe(renderSettingsTable().trim());
  });

  it("names only commands that exist", () => {
    const named = [...README.matchAll(/npm (?:run )?([a-z:]+)/g)].map((match) => match[1] ?? "");
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
