/**
 * Prints the number of code lines of each module in `src`: lines of tracked files that are neither blank nor comments.
 *
 * usage: npm run --silent code-lines
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

const SRC = join(import.meta.dirname, "..", "src");

/** Start of a line comment in each language. Block comments are the same in all of them, except in Lua, whose scripts have none. */
const LINE_COMMENTS: Readonly<Record<string, string>> = {
  ".ts": "//",
  ".tsx": "//",
  ".js": "//",
  ".css": "//",
  ".lua": "--",
  ".sql": "--",
};

/** Returns the number of code lines. `extension` is for example `.ts`. Files of other languages have none. */
export function countCodeLines(text: string, extension: string): number {
  const lineComment = LINE_COMMENTS[extension];
  if (lineComment === undefined) return 0;
  let count = 0;
  let isComment = false;
  for (const line of text.split("\n").map((each) => each.trim())) {
    let code = line;
    if (isComment || /^\{?\/\*/.test(line)) {
      const end = line.indexOf("*/");
      isComment = end < 0;
      // In JSX, a brace closes the comment.
      code = isComment ? "" : line.slice(end + 2).replace(/^\}$/, "");
    }
    if (code !== "" && !code.startsWith(lineComment)) count += 1;
  }
  return count;
}

/** Formats the code lines by file path as a table of modules, the largest first. A file `x.ts` in `src` belongs to the module `x`. */
export function formatTable(lines: ReadonlyMap<string, number>): string {
  const byModule = new Map<string, number>();
  for (const [file, count] of lines) {
    const [module = ""] = file.replace(/\.\w+$/, "").split("/");
    byModule.set(module, (byModule.get(module) ?? 0) + count);
  }
  const total = [...byModule.values()].reduce((sum, count) => sum + count, 0);
  const rows = [
    ...[...byModule].sort(([, a], [, b]) => b - a),
    ["total", total] as const,
    ["total without console", total - (byModule.get("console") ?? 0)] as const,
  ];
  return rows.map(([name, count]) => `${name.padEnd(22)}${String(count).padStart(8)}`).join("\n");
}

if (import.meta.main) {
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: SRC, encoding: "utf8" }).split("\0");
  const lines = files
    // A file that was moved but not staged is listed at its old path.
    .filter((file) => existsSync(join(SRC, file)) && extname(file) in LINE_COMMENTS)
    .map((file) => [file, countCodeLines(readFileSync(join(SRC, file), "utf8"), extname(file))] as const);
  console.log(formatTable(new Map(lines)));
}
