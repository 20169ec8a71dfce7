import { expect, it } from "vitest";
import { countCodeLines, formatTable } from "../config/code-lines.ts";

const TYPESCRIPT = `/** A comment of one line. */
import { z } from "zod";

/*
 * A comment of several lines.
 *
 */
// Another comment.
/* A comment that ends
   before code. */ run();
export const url = "https://example.com"; // A comment after code.
`;

it.each([
  [".ts", TYPESCRIPT, 3],
  [".tsx", "<p>\n  {/* A comment. */}\n  {/* A comment\n      of two lines. */}\n</p>\n", 2],
  [".js", "/* A comment before code. */ run();\n/** A comment. */\n", 1],
  [".css", "/* A comment. */\na {\n  --gap: 1rem;\n}\n", 3],
  [".lua", "-- A comment.\nlocal topic = KEYS[1]\n\n  -- Another comment.\n", 1],
  [".sql", "-- served from 0001\nALTER TABLE apps ADD COLUMN note text;\n", 1],
  [".md", "# Title\n", 0],
])("counts the lines of a %s file that are neither blank nor comments", (extension, text, count) => {
  expect(countCodeLines(text, extension)).toBe(count);
});

it("adds up the lines per module, and with and without the console", () => {
  const lines = new Map([
    ["main.ts", 1],
    ["gateway.ts", 2],
    ["gateway/api.ts", 40],
    ["console/views/apps/apps.tsx", 10],
  ]);
  const rows = formatTable(lines)
    .split("\n")
    .map((row) => row.split(/\s{2,}/));
  expect(rows).toEqual([
    ["gateway", "42"],
    ["console", "10"],
    ["main", "1"],
    ["total", "53"],
    ["total without console", "43"],
  ]);
});
