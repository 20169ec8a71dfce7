import { skipSpace } from "../../event/json-tokens.ts";
import { parseJson } from "../../event/parse-json.ts";
import type { PathNode } from "../paths/path.ts";
import { buildTargets, type Spans, scanValue, skipValue, type Targets } from "./json-scan.ts";

/** Range of a text in UTF-16 code units. `start` is inclusive, and `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * A valid JSON text with its parsed value. Slices keep the original spelling: number format, escapes, whitespace and duplicate
 * members.
 */
export class JsonText {
  readonly value: unknown;
  readonly #source: string;
  readonly #start: number;
  readonly #end: number;

  private constructor(source: string, start: number, end: number, value: unknown) {
    this.#source = source;
    this.#start = start;
    this.#end = end;
    this.value = value;
  }

  /** @throws SyntaxError if the text is not valid JSON */
  static parse(source: string): JsonText {
    return new JsonText(source, 0, source.length, parseJson(source));
  }

  /** The JSON text as received. For a whole body, the text includes surrounding whitespace. */
  get text(): string {
    return this.#source.slice(this.#start, this.#end);
  }

  /** Length of `text` in UTF-16 units. */
  get length(): number {
    return this.#end - this.#start;
  }

  /**
   * Returns the part of the JSON text at one location.
   *
   * @param target result of `buildTargets([location])`, which can be built in advance
   */
  find(target: Targets, value: unknown): JsonText | undefined {
    if (value === this.value) return this;
    const { starts, ends } = this.#scan(target);
    return this.#sub(starts[0], ends[0], value);
  }

  /**
   * Returns the parts of the JSON text for several values in one pass, in the given order. A value without a location in the text
   * yields `undefined`.
   */
  cut(found: readonly PathNode[]): (JsonText | undefined)[] {
    const { starts, ends } = this.#scan(buildTargets(found.map(({ location }) => location)));
    return found.map(({ location, value }, slot) =>
      location === undefined ? undefined : this.#sub(starts[slot], ends[slot], value),
    );
  }

  /** Returns the elements of this array as JSON texts. Empty if the value is not an array. */
  elements(): JsonText[] {
    if (!Array.isArray(this.value)) return [];
    const source = this.#source;
    let at = skipSpace(source, skipSpace(source, this.#start) + 1);
    return this.value.map((value) => {
      const end = skipValue(source, at);
      const element = new JsonText(source, at, end, value);
      at = skipSpace(source, skipSpace(source, end) + 1);
      return element;
    });
  }

  /** Range of this value in the text that was originally parsed. */
  get span(): Span {
    return { start: this.#start, end: this.#end };
  }

  #scan(target: Targets): Spans {
    const spans: Spans = { starts: [], ends: [] };
    scanValue(this.#source, skipSpace(this.#source, this.#start), target, spans);
    return spans;
  }

  #sub(start: number | undefined, end: number | undefined, value: unknown): JsonText {
    if (start === undefined || end === undefined) throw new Error("the location does not exist in the text");
    return new JsonText(this.#source, start, end, value);
  }
}
