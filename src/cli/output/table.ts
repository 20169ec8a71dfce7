import wrapAnsi from "wrap-ansi";
import { escapeText } from "./escape.ts";
import { fitTo, widthOf } from "./width.ts";

/** A column of a table. Its texts are shown in full, unless it is a preview. */
export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => unknown;
  /** Whether the table can do without this column. If the terminal is too narrow, the last such columns are left out. */
  readonly isOptional?: boolean;
  /** Whether long texts, such as messages, continue on the next line of the column. */
  readonly wraps?: boolean;
  /** Whether long texts, such as the data of events, may be truncated. */
  readonly isPreview?: boolean;
  /** Colors by shown text. `*` is the color of all other texts. */
  readonly colors?: Readonly<Record<string, Color | undefined>>;
}

export type Color = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";
export type Paint = (color: Color, text: string) => string;

/** A row of a list whose texts are too long for a table. */
export interface Block {
  readonly title: string;
  readonly color: Color;
  /** Less important details, such as the id. */
  readonly details: string;
  readonly lines: readonly string[];
}

interface Terminal {
  /** Width of the terminal in cells. */
  readonly cells: number;
  readonly paint: Paint;
}

/** A column with the text of each row, and with the width that it takes in the table. */
interface Fitted<T> {
  readonly column: Column<T>;
  readonly texts: readonly string[];
  width: number;
}

const GAP = "  ";
/** Minimum width of a column that wraps or is a preview, in cells. */
const MIN_CELLS = 24;

/**
 * Formats a table for the width of a terminal. If it is too wide, long texts wrap, then optional columns are left out. If it is still
 * too wide, each row becomes a block with one line per column.
 */
export function renderTable<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  terminal: Terminal,
): string {
  const all = columns.map((column) => {
    const texts = rows.map((row) => escapeText(textOf(column.value(row))));
    return { column, texts, width: Math.max(column.title.length, ...texts.map(widthOf)) };
  });
  const fitted = fitColumns(all, terminal.cells);
  if (fitted === undefined) return renderRowsAsBlocks(all, rows.length, terminal);
  const titles = fitted.map(
    ({ column: { title }, width }) =>
      terminal.paint("dim", title.toUpperCase()) + " ".repeat(width - title.length),
  );
  const lines = rows.flatMap((_, row) => renderRow(fitted, row, terminal));
  return `${[titles.join(GAP).trimEnd(), ...lines].join("\n")}\n`;
}

/** Formats names and values, one per line. Long values continue on the next line. */
export function renderFields(
  fields: readonly (readonly [name: string, value: unknown])[],
  { cells, paint }: Terminal,
): string {
  const width = Math.max(...fields.map(([name]) => name.length)) + 1;
  return fields
    .flatMap(([name, value]) => {
      const [first = "", ...more] = wrapText(escapeText(textOf(value)), cells - width - 1);
      const label = paint("dim", `${name}:`.padEnd(width));
      return [`${label} ${first}`.trimEnd(), ...more.map((line) => `${" ".repeat(width + 1)}${line}`)];
    })
    .map((line) => `${line}\n`)
    .join("");
}

/** Formats blocks with an empty line between them. */
export const renderBlocks = (blocks: readonly Block[], { cells, paint }: Terminal): string =>
  blocks
    .map(({ title, color, details, lines }) => {
      const indented = (text: string) => wrapText(escapeText(text), cells - 2).map((line) => `  ${line}\n`);
      const head = wrapText(escapeText(title), cells).map((line) => `${paint(color, line)}\n`);
      const dim = indented(details).map((line) => paint("dim", line));
      return [...head, ...lines.flatMap(indented), ...dim].join("");
    })
    .join("\n");

/** Wraps a text at spaces. A longer word continues on the next line. */
export const wrapText = (text: string, cells: number): readonly string[] =>
  Number.isFinite(cells) ? wrapAnsi(text, Math.max(1, cells), { hard: true }).split("\n") : [text];

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns the columns that fit, with their widths, or `undefined` if the required columns are too wide. */
function fitColumns<T>(all: readonly Fitted<T>[], cells: number): readonly Fitted<T>[] | undefined {
  for (let fitted = [...all]; ; ) {
    let excess = fitted.reduce((sum, { width }) => sum + width + GAP.length, -GAP.length) - cells;
    const shrinkable = fitted.filter(({ column }) => column.wraps || column.isPreview);
    const spare = shrinkable.map(({ width }) => Math.max(0, width - MIN_CELLS)).reduce((a, b) => a + b, 0);
    if (excess <= spare) {
      for (; excess > 0; excess--) {
        const [widest] = shrinkable.sort((a, b) => b.width - a.width);
        if (widest !== undefined) widest.width--;
      }
      return fitted;
    }
    const dropped = fitted.findLastIndex(({ column }) => column.isOptional);
    if (dropped < 0) return undefined;
    fitted = fitted.toSpliced(dropped, 1);
  }
}

function renderRow<T>(fitted: readonly Fitted<T>[], row: number, { paint }: Terminal): readonly string[] {
  const parts = fitted.map(({ column, texts, width }) => {
    const text = texts[row] ?? "";
    const color = colorOf(column, text);
    const lines = column.isPreview ? [fitTo(width, text)] : wrapText(text, width);
    return { width, lines, paint: (line: string) => (color === undefined ? line : paint(color, line)) };
  });
  const height = Math.max(...parts.map(({ lines }) => lines.length));
  return Array.from({ length: height }, (_, index) =>
    parts
      .map(({ width, lines, paint: paintPart }) => {
        const line = lines[index] ?? "";
        return paintPart(line) + " ".repeat(Math.max(0, width - widthOf(line)));
      })
      .join(GAP)
      .trimEnd(),
  );
}

function renderRowsAsBlocks<T>(all: readonly Fitted<T>[], rows: number, terminal: Terminal): string {
  const blocks = Array.from({ length: rows }, (_, row) => {
    const fields = all.map(({ column, texts }) => [column.title, texts[row]] as const);
    return renderFields(
      fields.filter(([, text]) => text !== ""),
      terminal,
    );
  });
  return blocks.join("\n");
}

function colorOf<T>({ colors = {} }: Column<T>, text: string): Color | undefined {
  return Object.hasOwn(colors, text) ? colors[text] : colors["*"];
}
