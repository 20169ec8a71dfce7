import type { Block } from "./blocks.ts";
import { MAX_ID_CHARS } from "./settings.ts";

export interface FieldListener {
  /** A block that says something: an event, an id, or both. */
  readonly onBlock: (block: Block) => void;
  readonly onRetry: (ms: number) => void;
}

type Field = "data" | "event" | "id" | "retry";

/** A line whose end has not come. */
interface OpenLine {
  readonly field: Field | undefined;
  /** What has come of it, where its value matters here. */
  readonly text: string;
}

const CR = 0x0d;
const FIELD = /^(data|event|id|retry)(?::|$)/;
/** So many characters tell which field a line is, if it is one. */
const FIELD_CHARS = "event:".length;
/** A character of an id takes no more bytes; one that is cut off here is still too long. */
const MAX_LINE_CHARS = "id: ".length + MAX_ID_CHARS * 3 + 1;

/**
 * Reads the lines of an event stream, whatever the encoding of their values, and gives on those that an event is made of, each
 * with LF at its end (WHATWG HTML, "server-sent events"). It keeps no data.
 *
 * What it leaves out is ignored by that standard, but not for nothing by the client: that makes an error object of each field it
 * does not know, 5 µs for two bytes.
 */
export class FieldReader {
  readonly #listener: FieldListener;
  /** The beginning of a line, too short to say what it will be. */
  #held = "";
  #open: OpenLine | undefined;
  #isAfterCr = false;
  #hasData = false;
  #id: string | undefined;

  constructor(listener: FieldListener) {
    this.#listener = listener;
  }

  /** @returns what of these bytes is to be read on; each character is a byte, as in Latin-1. */
  read(bytes: Buffer): string {
    let text = this.#held + bytes.toString("latin1");
    this.#held = "";
    // The second half of a CRLF.
    if (this.#isAfterCr && text.startsWith("\n")) text = text.slice(1);
    this.#isAfterCr = bytes.at(-1) === CR;
    const lines = (text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text).split("\n");
    const rest = lines.pop() ?? "";
    let passed = "";
    for (const line of lines) passed += this.#end(line);
    return passed + this.#begin(rest);
  }

  #end(part: string): string {
    const { field, text } = this.#open ?? { field: fieldOf(part), text: "" };
    const isBlank = part === "" && this.#open === undefined;
    this.#open = undefined;
    if (isBlank) this.#endBlock();
    else if (field === "data") this.#hasData = true;
    else if (field === "id") this.#takeId(valueIn(field, text + part));
    else if (field === "retry") this.#takeRetry(valueIn(field, text + part));
    return isBlank || isPassed(field) ? `${part}\n` : "";
  }

  #begin(rest: string): string {
    const { field, text } = this.#open ?? { field: fieldOf(rest), text: "" };
    if (this.#open === undefined && rest.length < FIELD_CHARS) {
      this.#held = rest;
      return "";
    }
    const isNeeded = field === "id" || field === "retry";
    this.#open = { field, text: isNeeded ? (text + rest).slice(0, MAX_LINE_CHARS) : "" };
    return isPassed(field) ? rest : "";
  }

  #takeId(bytes: string): void {
    if (!bytes.includes("\0")) this.#id = Buffer.from(bytes, "latin1").toString();
  }

  #takeRetry(value: string): void {
    if (/^[0-9]+$/.test(value)) this.#listener.onRetry(Number.parseInt(value, 10));
  }

  #endBlock(): void {
    const block = { hasData: this.#hasData, id: this.#id };
    this.#hasData = false;
    this.#id = undefined;
    if (block.hasData || block.id !== undefined) this.#listener.onBlock(block);
  }
}

const fieldOf = (line: string): Field | undefined => FIELD.exec(line)?.[1] as Field | undefined;

/** The client reads nothing out of `retry` that it is asked for. */
const isPassed = (field: Field | undefined): boolean => field !== undefined && field !== "retry";

function valueIn(field: Field, line: string): string {
  const at = field.length + 1;
  return line.slice(line[at] === " " ? at + 1 : at);
}
