import { escapeText } from "./escape.ts";
import { fitTo, widthOf } from "./width.ts";

export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => unknown;
  /** Whether values in this column are never truncated, for example because users copy them. */
  readonly whole?: boolean;
  /** Colors by shown text. `*` is the color of all other texts. */
  readonly colors?: Readonly<Record<string, Color | undefined>>;
}

export type Color = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";
export type Paint = (color: Color, text: string) => string;

const GAP = "  ";
const MIN_CELLS = 8;

/** Formats a table for lines of `cells` characters. Only columns that are not marked `whole` are truncated. */
export function renderTable<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  { cells, paint }: { readonly cells: number; readonly paint: Paint },
): string {
  const texts = rows.map((row) => columns.map(({ value }) => escapeText(textOf(value(row)))));
  const widths = fitWidths(columns, texts, cells);
  const line = (parts: readonly string[], colorOf: (part: string, index: number) => Color | undefined) =>
    parts
      .map((part, index) => {
        const fitted = fitTo(widths[index] ?? 0, part);
        const padding = " ".repeat(Math.max(0, (widths[index] ?? 0) - widthOf(fitted)));
        const color = colorOf(part, index);
        return (color === undefined ? fitted : paint(color, fitted)) + padding;
      })
      .join(GAP)
      .trimEnd();
  const titles = columns.map(({ title }) => title.toUpperCase());
  const colorOf = (part: string, index: number): Color | undefined => {
    const { colors = {} } = columns[index] ?? {};
    return Object.hasOwn(colors, part) ? colors[part] : colors["*"];
  };
  const lines = [line(titles, () => "dim"), ...texts.map((parts) => line(parts, colorOf))];
  return `${lines.join("\n")}\n`;
}

export function renderFields(
  fields: readonly (readonly [name: string, value: unknown])[],
  paint: Paint,
): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields
    .map(([name, value]) =>
      `${paint("dim", `${name}:`.padEnd(width + 1))} ${escapeText(textOf(value))}`.trimEnd(),
    )
    .map((each) => `${each}\n`)
    .join("");
}

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Narrows the columns until a row fits. Each step takes one character from the widest column that may be truncated. */
function fitWidths<T>(
  columns: readonly Column<T>[],
  texts: readonly (readonly string[])[],
  cells: number,
): readonly number[] {
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...texts.map((parts) => widthOf(parts[index] ?? ""))),
  );
  let over = widths.reduce((sum, width) => sum + width, 0) + GAP.length * (columns.length - 1) - cells;
  for (; over > 0; over--) {
    let widest = -1;
    columns.forEach(({ whole = false }, index) => {
      const width = widths[index] ?? 0;
      if (!whole && width > MIN_CELLS && width > (widths[widest] ?? 0)) widest = index;
    });
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
