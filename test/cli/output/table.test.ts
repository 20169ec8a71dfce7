import { describe, expect, it } from "vitest";
import { type Column, renderBlocks, renderFields, renderTable } from "../../../src/cli/output/table.ts";
import { widthOf } from "../../../src/cli/output/width.ts";

interface Row {
  readonly id: string;
  readonly uid: string;
  readonly seen: string;
  readonly error: string;
  readonly data: string;
}

const ROWS: readonly Row[] = [
  {
    id: "src_01m8hrdqtcc47r6675terc2",
    uid: "注文",
    seen: "2026-11-28T18:00:00Z",
    error: "The server answered 503 for the third time, so the next request is in 60 s.",
    data: '{"number": 12345678901234567890, "note": "a long text that nobody has to read in a list"}',
  },
  {
    id: "src_01m8hrdqtcc47r6675terc3",
    uid: "b",
    seen: "2026-11-28T18:00:01Z",
    error: "",
    data: "{}",
  },
];

const COLUMNS: readonly Column<Row>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "uid", value: ({ uid }) => uid },
  { title: "seen", value: ({ seen }) => seen, isOptional: true },
  { title: "error", value: ({ error }) => error, wraps: true },
  { title: "data", value: ({ data }) => data, isPreview: true },
];

const paint = (_: string, text: string) => text;
const render = (cells: number, columns = COLUMNS) => renderTable(ROWS, columns, { cells, paint });
const linesOf = (text: string) => text.trimEnd().split("\n");

describe("a table", () => {
  it.each([
    60, 80, 100, 140, 1_000,
  ])("is at most %d cells wide, and shows each id and message in full", (cells) => {
    const text = render(cells);
    for (const line of linesOf(text)) expect(widthOf(line)).toBeLessThanOrEqual(cells);
    for (const { id, error } of ROWS) {
      expect(text).toContain(id);
      for (const word of error.split(" ")) expect(text).toContain(word);
    }
  });

  it("has one line per row if the terminal is wide enough", () => {
    expect(linesOf(render(1_000))).toHaveLength(3);
  });

  it("continues long texts on the next line, and shortens previews", () => {
    const text = render(130);
    expect(linesOf(text)[0]).toMatch(/^ID +UID +SEEN +ERROR +DATA$/);
    expect(text).toMatch(/…\n {55,}\S/);
  });

  it("leaves out optional columns if long texts have no room", () => {
    expect(linesOf(render(100))[0]).toMatch(/^ID +UID +ERROR +DATA$/);
  });

  it("becomes a list of blocks if the required columns have no room", () => {
    const [first = "", second = ""] = render(60).split("\n\n");
    expect(linesOf(first).slice(0, 3)).toEqual([
      "id:    src_01m8hrdqtcc47r6675terc2",
      "uid:   注文",
      "seen:  2026-11-28T18:00:00Z",
    ]);
    expect(first).toContain("error: The server answered 503");
    expect(second).not.toContain("error:");
  });

  it("pads colored and wide texts by their visible width", () => {
    const colored = COLUMNS.slice(0, 3).map((column) => ({ ...column, colors: { "*": "red" as const } }));
    const text = renderTable(ROWS, colored, { cells: 100, paint: (color, part) => `<${color}>${part}</>` });
    const [, first, second] = linesOf(text.replaceAll(/<\w+>|<\/>/g, ""));
    expect(widthOf(String(first).split("2026")[0] ?? "")).toBe(
      widthOf(String(second).split("2026")[0] ?? ""),
    );
  });
});

it("fields continue below the start of their value", () => {
  const fields = [
    ["id", "prob_1"],
    ["message", "one two three four five"],
  ] as const;
  expect(renderFields(fields, { cells: 22, paint })).toBe(
    "id:      prob_1\nmessage: one two three\n         four five\n",
  );
});

it("blocks show a title, all lines and the details, and continue long texts with the same indentation", () => {
  const block = {
    title: "error  source_failing",
    color: "red",
    details: "prob_1",
    lines: ["one two three four five"],
  } as const;
  expect(renderBlocks([block, block], { cells: 22, paint })).toBe(
    `${"error  source_failing\n  one two three four\n  five\n  prob_1\n"}\n`.repeat(2).slice(0, -1),
  );
});
