import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import packageJson from "../package.json" with { type: "json" };

const DIR = join(import.meta.dirname, "../.github/workflows");

interface Job {
  readonly needs?: string | readonly string[];
  readonly uses?: string;
  readonly steps?: readonly { readonly run?: string; readonly uses?: string }[];
}

const workflows = readdirSync(DIR).map((name) => {
  const text = readFileSync(join(DIR, name), "utf8");
  return { name, text, jobs: parse(text, { uniqueKeys: true }).jobs as Readonly<Record<string, Job>> };
});
const jobs = workflows.flatMap(({ jobs }) => Object.values(jobs));
const steps = jobs.flatMap((job) => job.steps ?? []);
const commands = steps.flatMap(({ run = "" }) => run.split("\n"));

describe("the workflows of the repository", () => {
  it("run all checks for each change, and before each release", () => {
    expect(workflows.map(({ name }) => name)).toEqual(["ci.yml", "release.yml"]);
    expect(commands).toContain(".ci/run");
    const [, release] = workflows;
    expect(release?.jobs.checks?.uses).toBe("./.github/workflows/ci.yml");
    const publishing = Object.entries(release?.jobs ?? {}).filter(
      ([name]) => !["version", "checks"].includes(name),
    );
    expect(publishing.length).toBeGreaterThan(3);
    for (const [, { needs = [] }] of publishing)
      expect([needs].flat().some((name) => ["checks", "image"].includes(name))).toBe(true);
  });

  it("call only scripts that exist, and only actions of a fixed version", () => {
    const scripts = commands.flatMap((line) => /npm run (?:--silent )?([\w:]+)/.exec(line)?.[1] ?? []);
    expect(scripts).toEqual(["pack:gateway", "pack:consumer", "sbom"]);
    for (const script of scripts) expect(Object.keys(packageJson.scripts)).toContain(script);
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
  });

  it("put no expression into a shell command, because its author could run code", () => {
    for (const line of commands) expect(line.replace(/\$\{\{ matrix\.node \}\}/, "")).not.toContain("${{");
  });

  it("name no registry", () => {
    for (const { text } of workflows)
      expect(text.replaceAll("registry.example.com", "")).not.toMatch(/\b[\w-]+\.(io|com|org|dev)\b/);
  });
});
