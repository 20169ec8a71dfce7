import { globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const PAGES = ["README.md", ...globSync("{src/docs,.github}/**/*.md", { cwd: ROOT })].sort();
const pages = PAGES.map((name) => ({ name, text: readFileSync(join(ROOT, name), "utf8") }));

/** What the pages hold, with the page that holds it. */
const find = (pattern: RegExp): readonly { readonly page: string; readonly found: string }[] =>
  pages.flatMap(({ name, text }) =>
    [...text.matchAll(pattern)].map(([, found = ""]) => ({ page: name, found })),
  );
const exists = (path: string): boolean => statSync(join(ROOT, path), { throwIfNoEntry: false }) !== undefined;

describe("the README and the pages of src/docs", () => {
  it("name only files and folders that exist", () => {
    const named = find(/(?<![\w/.-])((?:src|test|config|\.github|\.ci)\/[\w./-]*[\w/])/g);
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter(({ found }) => !exists(found))).toEqual([]);
  });

  it("have links that lead to a file, and to a heading that is there", () => {
    const links = find(/\]\((?!https?:)([^)\s]+)\)/g);
    const broken = links.filter(({ page, found }) => {
      const [path = "", heading] = found.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      if (!exists(target)) return true;
      return heading !== undefined && !headingsOf(readFileSync(join(ROOT, target), "utf8")).includes(heading);
    });
    expect(broken).toEqual([]);
  });
});

/** The anchors of a page's headings. */
function headingsOf(text: string): readonly string[] {
  return [...text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
