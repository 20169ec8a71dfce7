import { globSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { COMMAND_VARIABLES } from "../src/config/load.ts";
import { SETTING_LIST } from "../src/config/schema.ts";
import { QUARANTINE_REASONS } from "../src/event/outcome.ts";
import { STATUS_OF } from "../src/http/errors.ts";
import { renderSettingsTable, renderToolTable } from "./support/generated-docs.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
const names = ["README.md", ...globSync("{src/docs,.github,config/examples}/**/*.md", { cwd: ROOT })].sort();
const pages = names.map((name) => ({ name, text: read(name) }));

const source = globSync("src/**/*.ts", { cwd: ROOT }).map(read);

/** Returns all matches on the pages, each with its page. */
const find = (pattern: RegExp): readonly { readonly page: string; readonly found: string }[] =>
  pages.flatMap(({ name, text }) =>
    [...text.matchAll(pattern)].map(([, found = ""]) => ({ page: name, found })),
  );
const exists = (path: string): boolean => statSync(join(ROOT, path), { throwIfNoEntry: false }) !== undefined;
const between = (text: string, mark: string): string =>
  text.split(`<!-- ${mark} -->\n`)[1]?.split(`\n<!-- /${mark} -->`)[0] ?? "";
/** Returns the first cells of a table's rows that contain only a code span. */
const named = (text: string): readonly string[] =>
  [...text.matchAll(/^\| (?:\d+ \| )?`(\w+)` \|/gm)].map(([, name = ""]) => name);

describe("the README and the pages of src/docs", () => {
  it("name only files and folders that exist", () => {
    const paths = find(/(?<![\w/.-])((?:src|test|config|\.github|\.ci)\/[\w./-]*[\w/])/g);
    // Build outputs do not exist in a fresh clone.
    const built = read(".gitignore").split("\n");
    const isBuilt = (path: string): boolean => built.includes(`/${path}`);
    expect(paths.length).toBeGreaterThan(50);
    expect(paths.filter(({ found }) => !exists(found) && !isBuilt(found))).toEqual([]);
  });

  it("have links to existing files and headings", () => {
    const links = find(/\]\((?!https?:)([^)\s]+)\)/g);
    const broken = links.filter(({ page, found }) => {
      const [path = "", heading] = found.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      return !exists(target) || (heading !== undefined && !headingsOf(read(target)).includes(heading));
    });
    expect(links.length).toBeGreaterThan(10);
    expect(broken).toEqual([]);
  });

  it("name only commands that exist", () => {
    const { scripts } = JSON.parse(read("package.json"));
    const commands = find(/npm (?:run )?(?!ci|install)([a-z:-]+)/g);
    expect(commands.length).toBeGreaterThan(5);
    expect(commands.filter(({ found }) => !(found in scripts))).toEqual([]);
  });

  it("name only settings, metrics and presets that exist", () => {
    const settings = [...SETTING_LIST.map(({ name }) => name), ...COMMAND_VARIABLES];
    expect(find(/\b(INLET_[A-Z_]+)\b/g).filter(({ found }) => !settings.includes(found))).toEqual([]);
    const lines = source.join("\n");
    const metrics = find(/\b(inlet_[a-z_]+?)(?:_bucket|_sum|_count)?\b/g);
    expect(metrics.filter(({ found }) => !lines.includes(`"${found}"`))).toEqual([]);
    const presets = find(/"preset": "([^"]+)"/g);
    expect(presets.filter(({ found }) => !exists(`src/verify/presets/${found}.json`))).toEqual([]);
  });

  it("have a test for each code block, or a comment above the block that says why it is untested", () => {
    const tests = [
      "deep/quickstart",
      "deep/docs-pasted",
      "deep/tutorials",
      "e2e/docs-problems",
      "e2e/docs-reading",
    ];
    const run = tests.map((name) => read(`test/${name}.test.ts`)).join("\n");
    const left = pages
      .filter(
        ({ name }) => name.startsWith("src/docs/") && !run.includes(`${name.slice("src/docs/".length)}"`),
      )
      .flatMap(({ name, text }) =>
        [...text.matchAll(/(?<!-->\n)^```(?:sh|js|ts|py)\n(.*)/gm)].map(([, first]) => `${name}: ${first}`),
      );
    expect(left).toEqual([]);
    const reasons = find(/^<!-- not run: (.+) -->\n```/gm);
    expect(reasons.length).toBe(
      [
        ...pages
          .map(({ text }) => text)
          .join("")
          .matchAll(/^<!-- not run/gm),
      ].length,
    );
  });

  it("use the commands of Inlet instead of shell functions, except in a program of their own", () => {
    const own = find(/^ *(\w+)\(\) ?\{/gm);
    expect(own.map(({ page, found }) => `${page}: ${found}`)).toEqual([
      "src/docs/reading.md: handle",
      "src/docs/reading.md: r",
    ]);
  });

  it("contain no shell loop that waits without a time limit", () => {
    expect(find(/^ *(until .*; do .*)/gm)).toEqual([]);
  });

  it("have a kind, and are listed under its heading on the start page", () => {
    const headings = {
      tutorial: "Tutorials",
      "how-to": "How-to guides",
      reference: "Reference",
      explanation: "Explanation",
    };
    const parts = read("src/docs/index.md").split(/^## /m);
    const listed = Object.entries(headings).flatMap(([kind, heading]) =>
      [...(parts.find((part) => part.startsWith(heading)) ?? "").matchAll(/\]\(([\w-]+\.md)\)/g)].map(
        ([, file]) => `${file} ${kind}`,
      ),
    );
    const kinds = pages
      .filter(({ name }) => name.startsWith("src/docs/") && name !== "src/docs/index.md")
      .map(
        ({ name, text }) =>
          `${basename(name)} ${/^---\nkind: ([\w-]+)\n---\n\n# /.exec(text)?.[1] ?? "none"}`,
      );
    expect(listed.toSorted()).toEqual(kinds.toSorted());
  });

  it("are all reachable through links from the README", () => {
    const reached = new Set<string>();
    const follow = (page: string): void => {
      if (reached.has(page)) return;
      reached.add(page);
      for (const [, path = ""] of read(page).matchAll(/\]\((?!https?:)([^)\s#]+\.md)/g)) {
        follow(join(dirname(page), path));
      }
    };
    follow("README.md");
    expect([...reached].sort()).toEqual(names);
  });
});

describe("the documentation", () => {
  it("lists the settings exactly as the program prints them", () => {
    expect(between(read("src/docs/settings.md"), "settings")).toBe(renderSettingsTable().trim());
  });

  it("lists the tools of agents", () => {
    expect(between(read("src/docs/agents.md"), "tools")).toBe(renderToolTable());
  });

  it("lists every error code and every quarantine reason", () => {
    const errors = read("src/docs/errors.md");
    const quarantine = read("src/docs/quarantine.md");
    expect(named(errors)).toEqual(Object.keys(STATUS_OF));
    expect(named(quarantine)).toEqual(QUARANTINE_REASONS);
    for (const [code, status] of Object.entries(STATUS_OF))
      expect(errors).toContain(`| ${status} | \`${code}\` |`);
  });

  it("lists every metric", () => {
    const metrics = source.flatMap((text) =>
      [...text.matchAll(/"(inlet_[a-z_]+)"/g)].map(([, name = ""]) => name),
    );
    const page = read("src/docs/metrics.md");
    expect(metrics.length).toBeGreaterThan(15);
    expect(metrics.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it("lists exactly the log events of the program", () => {
    const written = source.flatMap((text) =>
      [...text.matchAll(/\bevent: ["`]([^"`]+)["`]/g)].map(([, name = ""]) => name),
    );
    const listed = [...read("src/docs/logs.md").matchAll(/^\| `([a-z_.]+)` \|/gm)].map(([, name]) => name);
    expect(listed).toEqual([...new Set(written)].sort());
    const lines = source.join("\n");
    expect(lines.match(/\blog\.(?:debug|info|warn|error|fatal)\(\s*\{(?!\s*event: )/g) ?? []).toEqual([]);
  });

  it("has the current version at the top of the changelog, with older versions below", () => {
    const { version } = JSON.parse(read("package.json"));
    const versions = [...read("src/docs/changelog.md").matchAll(/^## (\S+)/gm)].map(([, name = ""]) => name);
    const [newest, ...released] = versions[0] === "Unreleased" ? versions.slice(1) : versions;
    expect(newest).toBe(version);
    const ranked = [newest ?? "", ...released].toSorted((a, b) =>
      b.localeCompare(a, "en", { numeric: true }),
    );
    expect([newest, ...released]).toEqual(ranked);
  });

  it("has a README of at most 120 lines", () => {
    expect(read("README.md").split("\n").length).toBeLessThanOrEqual(121);
  });
});

/** Returns the anchors of a page's headings. */
function headingsOf(text: string): readonly string[] {
  return [...text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
