import { MAX_ID_CHARS } from "./config.ts";

export type StreamMessage =
  | Frame
  /** An event id that arrived without data, so no event is published. */
  | { readonly kind: "checkpoint"; readonly id: string }
  | { readonly kind: "retry"; readonly ms: number };

export interface Frame {
  readonly kind: "frame";
  /** Event name. `message` if the server sent no name. */
  readonly event: string;
  readonly data: string;
  /** Event id that arrived with this event. `undefined` if none arrived, so that the previous id still applies. */
  readonly id: string | undefined;
}

/** Thrown when an event or a line is too long. The rest of the stream cannot be parsed. */
export class EventTooLargeError extends Error {
  override readonly name = "EventTooLargeError";
}

const FIELDS = ["data", "id", "event", "retry"] as const;
type Field = (typeof FIELDS)[number];

const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = "\uFEFF";
/** Number of bytes that identify the field of a line: a byte order mark, the longest field name and a colon. */
const FIELD_BYTES = 3 + "event:".length;
const PREFIX_BYTES = "data: ".length;
const MAX_BYTES_A_CHAR = 3;
/**
 * Minimum length of a substring that V8 stores as a reference to its parent string, which then stays in memory. Shorter substrings are
 * copied.
 */
const MIN_SLICE_CHARS = 13;
const NO_BYTES = Buffer.alloc(0);

/**
 * Parses one event stream in chunks of any size (WHATWG HTML, section "Interpreting an event stream"). Buffers at most one line and the
 * data of one event, but no comments or unknown fields. An incomplete event at the end is dropped.
 */
export class EventStreamParser {
  readonly #maxEventBytes: number;
  readonly #maxLineBytes: number;
  /** Bytes of a line that has not arrived completely. */
  #line = NO_BYTES;
  #lineBytes = 0;
  /** Field name of the line that is still arriving. `undefined` until enough bytes have arrived. */
  #lineField: Field | "ignored" | undefined;
  #isAfterCr = false;
  #isAtStart = true;
  /** Data of the current event from earlier chunks. */
  #earlierData: string | undefined;
  #data: string | undefined;
  #event = "";
  #id: string | undefined;

  constructor({ maxEventBytes }: { readonly maxEventBytes: number }) {
    this.#maxEventBytes = maxEventBytes;
    this.#maxLineBytes = Math.max(maxEventBytes, (MAX_ID_CHARS + 1) * MAX_BYTES_A_CHAR);
  }

  /**
   * Yields the messages that become complete with this chunk. The caller must consume all messages before it passes the next chunk.
   * @throws EventTooLargeError
   */
  *read(chunk: Uint8Array): Generator<StreamMessage, void, undefined> {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    if (bytes.length === 0) return;
    // A CRLF may be split between two chunks. The CR already ended the line.
    if (this.#isAfterCr && bytes[0] === LF) bytes = bytes.subarray(1);
    this.#isAfterCr = chunk.at(-1) === CR;
    const end = Math.max(bytes.lastIndexOf(LF), bytes.lastIndexOf(CR)) + 1;
    if (end > 0) yield* this.#readLines(this.#decode(bytes.subarray(0, end)));
    this.#keepLine(bytes.subarray(end));
    this.#keepEvent();
  }

  /** Decodes complete lines only, because a chunk may end in the middle of a character. Converts line endings to LF. */
  #decode(bytes: Buffer): string {
    const isIgnored = this.#lineField === "ignored";
    const head = this.#line.subarray(0, this.#lineBytes);
    let text = (head.length === 0 ? bytes : Buffer.concat([head, bytes])).toString();
    if (this.#isAtStart && text.startsWith(BYTE_ORDER_MARK)) text = text.slice(1);
    this.#isAtStart = false;
    this.#line = NO_BYTES;
    this.#lineBytes = 0;
    this.#lineField = undefined;
    if (text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
    return isIgnored ? text.slice(text.indexOf("\n") + 1) : text;
  }

  *#readLines(text: string): Generator<StreamMessage, void, undefined> {
    for (let start = 0; start < text.length; ) {
      const end = text.indexOf("\n", start);
      const message = end === start ? this.#endBlock() : this.#readLine(text, start, end);
      if (message !== undefined) yield message;
      start = end + 1;
    }
  }

  #readLine(text: string, start: number, end: number): StreamMessage | undefined {
    const field = fieldAt(text, start, end);
    if (field === undefined) return undefined;
    const at = start + field.length + 1;
    const value = at >= end ? "" : text.slice(text[at] === " " ? at + 1 : at, end);
    if (exceeds(value, this.#maxLineBytes)) throw this.#tooLarge();
    switch (field) {
      case "data":
        this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
        if (this.#dataChars() > this.#maxEventBytes) throw this.#tooLarge();
        return undefined;
      case "event":
        this.#event = value;
        return undefined;
      case "id":
        if (!value.includes("\0")) this.#id = detached(value);
        return undefined;
      case "retry":
        return /^[0-9]+$/.test(value) ? { kind: "retry", ms: Number.parseInt(value, 10) } : undefined;
      default:
        return field satisfies never;
    }
  }

  #endBlock(): StreamMessage | undefined {
    const id = this.#id;
    const event = this.#event === "" ? "message" : this.#event;
    const data = joined(this.#earlierData, this.#data);
    this.#id = undefined;
    this.#event = "";
    this.#earlierData = undefined;
    this.#data = undefined;
    if (data === undefined) return id === undefined ? undefined : { kind: "checkpoint", id };
    if (exceeds(data, this.#maxEventBytes)) throw this.#tooLarge();
    return { kind: "frame", event, data, id };
  }

  /** Stores the start of a line that has not arrived completely. Lines whose field is ignored are not stored. */
  #keepLine(rest: Buffer): void {
    if (rest.length === 0 || this.#lineField === "ignored") return;
    const total = this.#lineBytes + rest.length;
    if (total > this.#line.length) {
      const grown = Buffer.allocUnsafe(Math.max(total, 2 * this.#line.length));
      this.#line.copy(grown, 0, 0, this.#lineBytes);
      this.#line = grown;
    }
    rest.copy(this.#line, this.#lineBytes);
    this.#lineBytes = total;
    if (this.#lineField === undefined && total >= FIELD_BYTES) this.#identifyField();
    const isData = this.#lineField === "data";
    const valueBytes = this.#lineBytes - PREFIX_BYTES;
    if (isData && this.#dataChars() + valueBytes > this.#maxEventBytes) throw this.#tooLarge();
    if (valueBytes > this.#maxLineBytes) throw this.#tooLarge();
  }

  #identifyField(): void {
    const text = this.#line.toString("utf8", 0, FIELD_BYTES);
    const name = this.#isAtStart && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    this.#lineField = fieldAt(name, 0, name.length) ?? "ignored";
    if (this.#lineField !== "ignored") return;
    this.#line = NO_BYTES;
    this.#lineBytes = 0;
  }

  /** Copies the fields of the current event. Otherwise each field would keep its whole chunk in memory. */
  #keepEvent(): void {
    if (this.#data !== undefined) this.#earlierData = joined(this.#earlierData, detached(this.#data));
    this.#data = undefined;
    this.#event = detached(this.#event);
  }

  #dataChars(): number {
    return (this.#earlierData?.length ?? 0) + (this.#data?.length ?? 0);
  }

  #tooLarge(): EventTooLargeError {
    return new EventTooLargeError(
      `The stream contains an event or a line that exceeds ${this.#maxEventBytes} bytes (maxEventBytes)`,
    );
  }
}

function fieldAt(text: string, start: number, end: number): Field | undefined {
  const field = FIELDS.find((name) => text.startsWith(name, start));
  if (field === undefined) return undefined;
  const at = start + field.length;
  return at === end || text[at] === ":" ? field : undefined;
}

const exceeds = (text: string, maxBytes: number): boolean =>
  text.length * MAX_BYTES_A_CHAR > maxBytes && Buffer.byteLength(text) > maxBytes;

const joined = (before: string | undefined, after: string | undefined): string | undefined =>
  before === undefined || after === undefined ? (before ?? after) : `${before}\n${after}`;

/** Returns a copy of a substring, so that the longer parent string can be freed. */
const detached = (text: string): string =>
  text.length < MIN_SLICE_CHARS ? text : Buffer.from(text).toString();
