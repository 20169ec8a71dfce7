import { styleText } from "node:util";
import { parseExactly } from "../../event/exact-json.ts";
import { usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { adaptCommands } from "../program-name.ts";
import { escapeJson, escapeLines } from "./escape.ts";
import { getField } from "./field.ts";
import {
  type Block,
  type Color,
  type Column,
  type Paint,
  renderBlocks,
  renderFields,
  renderTable,
} from "./table.ts";

/** Prints results of commands: as tables for people, or as JSON lines for programs. */
export interface Output {
  readonly isJson: boolean;
  readonly paint: Paint;
  /** Width of the terminal in character cells. */
  readonly cells: number;
  readonly list: <T extends object>(rows: readonly T[], columns: readonly Column<T>[], none?: string) => void;
  /** Prints rows whose texts are too long for a table. `blockOf` is only used in table format. */
  readonly blocks: <T extends object>(rows: readonly T[], blockOf: (row: T) => Block, none: string) => void;
  /** Prints one object. In table format, shows only the names and values in `fields`. */
  readonly one: (value: object, fields?: readonly (readonly [name: string, value: unknown])[]) => void;
  /** Prints JSON text on one line. Does not parse the text, so that numbers keep their exact form. */
  readonly json: (text: string) => void;
  /** Returns false if `--field` names a field that this object does not have. */
  readonly isWanted: (value: object) => boolean;
  /** Prints a line to standard output, but only in table format. */
  readonly say: (text: string) => void;
  /** Prints a line to standard error, in both output formats. */
  readonly note: (text: string, color?: Color) => void;
  /** Adapts the commands `inlet …` in a text to the way in which this program was started. `note` does so itself. */
  readonly adapt: (text: string) => string;
}

const DEFAULT_CELLS = 100;

export type OutputFormat = "table" | "json";

/**
 * Creates the output of a command.
 *
 * @param format output format. Defaults to `table` at a terminal, and to `json` otherwise
 * @param field field to print instead of each result, such as `handler.secret`
 */
export function createOutput({ stdout, stderr, env }: Io, format?: OutputFormat, field?: string): Output {
  const isJson = field !== undefined || (format === undefined ? !stdout.isTTY : format === "json");
  const colors = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
  const paint: Paint = (color, text) => (colors ? styleText(color, text, { validateStream: false }) : text);
  const cells = stdout.isTTY ? (stdout.columns ?? DEFAULT_CELLS) : Number.POSITIVE_INFINITY;
  const adapt = (text: string): string => adaptCommands(text, env);
  const printJson = (text: string): void => void stdout.write(`${escapeJson(text)}\n`);
  function printField(name: string, result: unknown): void {
    const value = getField(result, name);
    if (value === undefined) {
      // A result can contain a secret that is shown only once.
      stderr.write(`${escapeJson(JSON.stringify(result))}\n`);
      throw usageError(`The result has no field ${name}.`);
    }
    if (typeof value === "string") stdout.write(`${escapeLines(value)}\n`);
    else printJson(JSON.stringify(value));
  }
  const object = (value: object): void =>
    field === undefined ? printJson(JSON.stringify(value)) : printField(field, value);
  function json(text: string): void {
    if (field === undefined) {
      printJson(text);
      return;
    }
    const result = parseExactly(text);
    // A field such as `0.id` names an item of a list, and any other field is a field of each item.
    if (Array.isArray(result) && !/^\d/.test(field)) print(result, "", () => "");
    else printField(field, result);
  }
  const isWanted = (value: object): boolean => field === undefined || getField(value, field) !== undefined;
  /** Prints rows as JSON lines, or in the given form for people. With a field, leaves out the rows that do not have it. */
  function print(rows: readonly object[], none: string, render: () => string): void {
    if (isJson) for (const row of rows.filter(isWanted)) object(row);
    else if (rows.length === 0) stderr.write(`${none}\n`);
    else stdout.write(render());
  }
  return {
    isJson,
    paint,
    cells,
    json,
    isWanted,
    adapt,
    list: (rows, columns, none = "No entries.") =>
      print(rows, none, () => renderTable(rows, columns, { cells, paint })),
    blocks: (rows, blockOf, none) =>
      print(rows, none, () => renderBlocks(rows.map(blockOf), { cells, paint })),
    one(value, fields = Object.entries(value)) {
      if (isJson) object(value);
      else stdout.write(renderFields(fields, { cells, paint }));
    },
    say: (text) => void (isJson ? undefined : stdout.write(`${text}\n`)),
    note(text, color) {
      const escaped = adapt(escapeLines(text));
      stderr.write(`${color !== undefined && stderr.isTTY ? paint(color, escaped) : escaped}\n`);
    },
  };
}
