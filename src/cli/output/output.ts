import { styleText } from "node:util";
import type { Io } from "../io.ts";
import { escapeJson, escapeLines } from "./escape.ts";
import { type Color, type Column, type Paint, renderFields, renderTable } from "./table.ts";

/** How a command says what it has found: tables at a terminal, lines of JSON where a program reads. */
export interface Output {
  readonly isJson: boolean;
  readonly paint: Paint;
  /** Cells of a line. */
  readonly cells: number;
  readonly list: <T extends object>(rows: readonly T[], columns: readonly Column<T>[], none?: string) => void;
  /** One thing; `fields` are its names and values for a person. */
  readonly one: (value: object, fields?: readonly (readonly [name: string, value: unknown])[]) => void;
  /** A line of JSON that is text already, with its numbers as they were written. */
  readonly json: (text: string) => void;
  /** For a person, on standard output; not where a program reads. */
  readonly say: (text: string) => void;
  /** For a person, on standard error, wherever output goes. */
  readonly note: (text: string, color?: Color) => void;
}

const DEFAULT_CELLS = 100;

export type OutputFormat = "table" | "json";

/** @param format what the caller asked for; undefined: as fits where it goes */
export function createOutput({ stdout, stderr, env }: Io, format?: OutputFormat): Output {
  const isJson = format === undefined ? !stdout.isTTY : format === "json";
  const colors = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
  const paint: Paint = (color, text) => (colors ? styleText(color, text, { validateStream: false }) : text);
  const cells = stdout.isTTY ? (stdout.columns ?? DEFAULT_CELLS) : Number.POSITIVE_INFINITY;
  const json = (text: string): void => void stdout.write(`${escapeJson(text)}\n`);
  return {
    isJson,
    paint,
    cells,
    json,
    list(rows, columns, none = "Nothing.") {
      if (isJson) for (const row of rows) json(JSON.stringify(row));
      else if (rows.length === 0) stderr.write(`${none}\n`);
      else stdout.write(renderTable(rows, columns, { cells, paint }));
    },
    one(value, fields = Object.entries(value)) {
      if (isJson) json(JSON.stringify(value));
      else stdout.write(renderFields(fields, paint));
    },
    say: (text) => void (isJson ? undefined : stdout.write(`${text}\n`)),
    note(text, color) {
      const escaped = escapeLines(text);
      stderr.write(`${color !== undefined && stderr.isTTY ? paint(color, escaped) : escaped}\n`);
    },
  };
}
