import { hash } from "node:crypto";
import { JsonText } from "./body/payload-slice.ts";
import { removeValues } from "./body/remove-values.ts";
import type { RulePath } from "./compile.ts";
import { createFilterInput, type FilterRoot } from "./filter.ts";
import type { CloudEvent, ItemContext } from "./item.ts";
import type { PathBudget, PathNode } from "./paths/path.ts";

export interface Payload {
  /** The event data as text. `undefined` if the sender's CloudEvent has no data. */
  readonly data: string | undefined;
  readonly isBase64: boolean;
  /** Content type of the data. `undefined` if the CloudEvent and the delivery declare none. */
  readonly contentType: string | undefined;
  /** JSON value to validate against a schema. `undefined` if the data is binary. */
  readonly value: unknown;
  /** SHA-256 of the text or of the decoded binary data, in base64url (43 characters). */
  readonly hash: string;
  /** Size of `data` in UTF-8 bytes. */
  readonly bytes: number;
}

const JSON_TYPE = "application/json";

/** Evaluates paths on one item. Results are cached, because several event definitions often use the same path. */
export class ItemReader {
  readonly #context: ItemContext;
  readonly #budget: PathBudget;
  #nodes: Map<RulePath, readonly PathNode[]> | undefined;
  #payloads: Map<RulePath, Payload> | undefined;
  #whole: Payload | undefined;
  #reduced: string | undefined;

  constructor(context: ItemContext, budget: PathBudget) {
    this.#context = context;
    this.#budget = budget;
  }

  /**
   * Returns the values that a path yields. Numbers are returned as strings, exactly as written in the JSON text. XML elements with text and
   * attributes are returned as their text.
   *
   * @throws PathBudgetError
   */
  values(path: RulePath): readonly unknown[] {
    const root = path.root.valueIn(this.#context);
    if (path.path.kind === "singular") {
      const value = path.path.get(root);
      if (value === undefined) return [];
      if (typeof value !== "number") return [toElementText(value)];
      const json = path.root.jsonIn?.(this.#context);
      return [json?.find(path.path.targetsIn(root), value)?.text ?? String(value)];
    }
    const nodes = this.#selectNodes(path, root);
    const numbers = nodes.filter(({ value }) => typeof value === "number");
    const texts = numbers.length > 0 ? path.root.jsonIn?.(this.#context)?.cut(numbers) : undefined;
    let number = 0;
    return nodes.map(({ value }) =>
      typeof value === "number" ? (texts?.[number++]?.text ?? String(value)) : toElementText(value),
    );
  }

  /**
   * Returns the payload at a path, or `undefined` if the path yields nothing.
   *
   * @throws PathBudgetError
   */
  payload(path: RulePath): Payload | undefined {
    this.#payloads ??= new Map();
    const known = this.#payloads.get(path);
    if (known !== undefined) return known;
    const payload = this.#readPayload(path);
    if (payload !== undefined) this.#payloads.set(path, payload);
    return payload;
  }

  /** Returns the value that a definition's `when` is evaluated on. */
  filterInput(roots: readonly FilterRoot[]): object {
    return createFilterInput(roots, this.#context);
  }

  wholeItem(): Payload {
    this.#whole ??= this.#readWhole();
    return this.#whole;
  }

  /**
   * Returns the hash of the item without the values at some paths, which must be the same in each call. Returns `undefined` if the item has
   * no data. Forms and XML are hashed in their JSON form.
   *
   * @throws PathBudgetError
   */
  hashWithout(ignored: readonly RulePath[]): string | undefined {
    const whole = this.wholeItem();
    if (whole.data === undefined) return undefined;
    this.#reduced ??= this.#hashReduced(ignored) ?? whole.hash;
    return this.#reduced;
  }

  #hashReduced(ignored: readonly RulePath[]): string | undefined {
    const { json, value } = this.#context.item;
    if (typeof value !== "object" || value === null) return undefined;
    const text = json ?? JsonText.parse(JSON.stringify(value));
    const { start } = text.span;
    const spans = ignored
      .flatMap((path) => this.#findTexts(path, text))
      .map(({ span }) => ({ start: span.start - start, end: span.end - start }));
    return computeHash(removeValues(text.text, spans));
  }

  /** Returns the parts of the item's text that a path selects. */
  #findTexts(path: RulePath, json: JsonText): readonly JsonText[] {
    const root = this.#context.item.value;
    if (path.path.kind === "singular") {
      const value = path.path.get(root);
      return value === undefined ? [] : [json.find(path.path.targetsIn(root), value)].filter(isFound);
    }
    // A query can also select the item itself. Without it, all items would be duplicates of each other.
    const inside = this.#selectNodes(path, root).filter(({ value }) => value !== root);
    return json.cut(inside).filter(isFound);
  }

  #readWhole(): Payload {
    const { body, delivery, item } = this.#context;
    if (item.event !== undefined && item.event.data.kind !== "body") return this.#readData(item.event);
    if (!item.isBody) return this.#jsonPayload(item.value, item.json);
    const { bytes, isVerbatim, text, value } = body;
    if (bytes.length === 0 && text === undefined) return { ...NO_DATA, contentType: undefined };
    // Ignore the sender's content type if the text was converted to UTF-8, because it no longer applies.
    const named = isVerbatim ? item.event?.attributes.get("datacontenttype") : undefined;
    const contentType = named ?? body.contentType;
    if (text === undefined) {
      const data = bytes.toString("base64");
      return { data, isBase64: true, contentType, value, hash: computeHash(bytes), bytes: data.length };
    }
    const received = isVerbatim ? bytes : Buffer.from(text);
    return {
      data: text,
      isBase64: false,
      contentType,
      value,
      hash: (received === delivery.body ? delivery.bodyHash : undefined) ?? computeHash(received),
      bytes: received.length,
    };
  }

  #readData({ attributes, data }: CloudEvent): Payload {
    const contentType = attributes.get("datacontenttype");
    switch (data.kind) {
      case "json":
        return { ...this.#jsonPayload(data.json.value, data.json), contentType: contentType ?? JSON_TYPE };
      case "text": {
        const { text } = data;
        const bytes = Buffer.byteLength(text);
        return { data: text, isBase64: false, contentType, value: text, hash: computeHash(text), bytes };
      }
      case "bytes": {
        const { base64 } = data;
        const hash = computeHash(Buffer.from(base64, "base64"));
        return { data: base64, isBase64: true, contentType, value: undefined, hash, bytes: base64.length };
      }
      case "none":
      case "body":
        return { ...NO_DATA, contentType };
      default:
        return data satisfies never;
    }
  }

  #readPayload(path: RulePath): Payload | undefined {
    const root = path.root.valueIn(this.#context);
    const json = path.root.jsonIn?.(this.#context);
    if (path.path.kind === "singular") {
      const value = path.path.get(root);
      if (value === undefined) return undefined;
      return this.#jsonPayload(value, json?.find(path.path.targetsIn(root), value));
    }
    const nodes = this.#selectNodes(path, root);
    if (nodes.length === 0) return undefined;
    const texts = json?.cut(nodes);
    const values = nodes.map(({ value }) => value);
    const parts = values.map((value, index) => texts?.[index]?.text ?? JSON.stringify(value));
    return this.#createPayload(`[${parts.join(",")}]`, values, texts !== undefined);
  }

  #jsonPayload(value: unknown, json: JsonText | undefined): Payload {
    return this.#createPayload(json?.text ?? JSON.stringify(value), value, json !== undefined);
  }

  #createPayload(data: string, value: unknown, isSlice: boolean): Payload {
    const { bytes, isVerbatim, text } = this.#context.body;
    // If a text has as many characters as UTF-8 bytes, the text and every slice of it are ASCII.
    const isAscii = isSlice && isVerbatim && text?.length === bytes.length;
    const size = isAscii ? data.length : Buffer.byteLength(data);
    return { data, isBase64: false, contentType: JSON_TYPE, value, hash: computeHash(data), bytes: size };
  }

  #selectNodes(path: RulePath, root: unknown): readonly PathNode[] {
    this.#nodes ??= new Map();
    const known = this.#nodes.get(path);
    if (known !== undefined || path.path.kind === "singular") return known ?? [];
    const nodes = path.path.select(root, this.#budget);
    this.#nodes.set(path, nodes);
    return nodes;
  }
}

/**
 * Returns the text of an XML element that has text and attributes, as `<guid isPermaLink="false">` in RSS. Returns any other value as it is.
 * So a path selects the text of an element whether or not it has attributes.
 */
function toElementText(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("#text" in value)) return value;
  const text = value["#text"];
  const isElement = typeof text === "string" && Object.keys(value).every((key) => /^(?:@|#text$)/.test(key));
  return isElement ? text : value;
}

const NO_DATA = {
  data: undefined,
  isBase64: false,
  value: undefined,
  hash: hash("sha256", "", "base64url"),
  bytes: 0,
};

const isFound = (part: JsonText | undefined): part is JsonText => part !== undefined;

const computeHash = (data: string | Buffer): string => hash("sha256", data, "base64url");
