import type { PathNode } from "../paths/path.ts";
import { buildTargets, type Spans, scanValue, skipSpace, skipValue, type Targets } from "./json-scan.ts";

/** A part of a text: `[start, end)`, in UTF-16 units. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * A JSON text with its value, from which values are cut out as they were received: number spelling, escapes, inner
 * whitespace and duplicate members stay. Made by `parse` alone or cut out of one that was, so that whatever is sliced has
 * been accepted by `JSON.parse` and is not checked a second time.
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

  /** @throws SyntaxError as `JSON.parse` does. */
  static parse(source: string): JsonText {
    return new JsonText(source, 0, source.length, JSON.parse(source));
  }

  /** The text as received; that of a whole body includes the whitespace around it. */
  get text(): string {
    return this.#source.slice(this.#start, this.#end);
  }

  /** Length of `text` in UTF-16 units. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** The value at a location (`targetsOf([location])`, which can be made beforehand); undefined where there is none. */
  find(target: Targets, value: unknown): JsonText | undefined {
    if (value === this.value) return this;
    const { starts, ends } = this.#scan(target);
    return this.#sub(starts[0], ends[0], value);
  }

  /** Found values, in the order given, by one pass over the text; undefined for those that do not stand in it. */
  cut(found: readonly PathNode[]): (JsonText | undefined)[] {
    const { starts, ends } = this.#scan(buildTargets(found.map(({ location }) => location)));
    return found.map(({ location, value }, slot) =>
      location === undefined ? undefined : this.#sub(starts[slot], ends[slot], value),
    );
  }

  /** The elements of this array; none where it is another value. */
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

  /** Where it stands in the text that was parsed. */
  get span(): Span {
    return { start: this.#start, end: this.#end };
  }

  #scan(target: Targets): Spans {
    const spans: Spans = { starts: [], ends: [] };
    scanValue(this.#source, skipSpace(this.#source, this.#start), target, spans);
    return spans;
  }

  #sub(start: number | undefined, end: number | undefined, value: unknown): JsonText {
    if (start === undefined || end === undefined)
      throw new Error("the location leads to no value of the text");
    return new JsonText(this.#source, start, end, value);
  }
}
