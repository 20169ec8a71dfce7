import { isNode, type References, type SchemaNode } from "../generate/references.ts";
import { isIdentifier } from "../infer/identifiers.ts";
import type { JsonType } from "./accepts.ts";

export type Half = "older" | "newer";

/** Counts in the older and the newer half of the values. */
type Counts = Record<Half, number>;

/** Maximum number of subschemas that are considered at one place. */
const MAX_SUBSCHEMAS = 2_000;
/** Names that consist of other characters are not shown, because they may be text of a sender. */
const PLAIN_NAME = /^[\p{L}\p{N}_$@.:-]+$/u;

/** Returns a step of a path: the name of a property, or `*` if the name is or may be data. */
export const toStep = (name: string): string => (isIdentifier(name) || !PLAIN_NAME.test(name) ? "*" : name);

/** A place in values, such as `/items/*`, with the subschemas that apply there and counts of the values there. */
export class Place {
  /** JSON Pointer, with `*` for indexes and for names that are data. */
  readonly path: string;
  /** Schemas that apply to every value of the place. */
  readonly certain: readonly unknown[];
  /** Names of the properties that any applicable subschema declares. */
  readonly names: ReadonlySet<string>;
  /** Names of the properties that every object of the place must have. */
  readonly required: ReadonlySet<string>;
  /** Whether undeclared properties are rejected. */
  readonly isClosed: boolean;
  readonly objects: Counts = { older: 0, newer: 0 };
  readonly present = new Map<string, Counts>();
  readonly types: Readonly<Record<Half, Map<JsonType, number>>> = { older: new Map(), newer: new Map() };
  readonly #references: References;
  /** Subschemas by whether they apply to every value of the place. The others apply to some values, such as those of `anyOf`. */
  readonly #subschemas: ReadonlyMap<SchemaNode, boolean>;
  readonly #children = new Map<string, Place>();

  constructor(
    path: string,
    certain: readonly unknown[],
    possible: readonly unknown[],
    references: References,
  ) {
    this.path = path;
    this.certain = certain;
    this.#references = references;
    this.#subschemas = expand(certain, possible, references);
    const required = [...this.#subschemas].flatMap(([one, isCertain]) =>
      isCertain ? textsOf(one.required) : [],
    );
    this.required = new Set(required);
    this.names = new Set([...this.#subschemas.keys()].flatMap((one) => Object.keys(nodeOf(one.properties))));
    this.isClosed = [...this.#subschemas].some(
      ([one, isCertain]) =>
        isCertain && (one.additionalProperties === false || one.unevaluatedProperties === false),
    );
  }

  get children(): Iterable<Place> {
    return this.#children.values();
  }

  /** Returns the place of a property, or `undefined` if no subschema declares the property. */
  getProperty(name: string): Place | undefined {
    if (this.names.has(name)) {
      const find = ({ properties, additionalProperties }: SchemaNode): unknown =>
        Object.hasOwn(nodeOf(properties), name) ? nodeOf(properties)[name] : additionalProperties;
      return this.#child(`/${name}`, toStep(name), find);
    }
    // Other names share a place, because there may be any number of them.
    const isMatched = [...this.#subschemas.keys()].some((one) => matchPatterns(one, name).length > 0);
    if (isMatched) return this.#child("pattern", "*", () => true);
    return this.#child("*", "*", ({ additionalProperties, unevaluatedProperties }) =>
      [additionalProperties, unevaluatedProperties].find(isNode),
    );
  }

  /** Returns the place of the elements of an array, or `undefined` if no subschema describes them. */
  getItems(): Place | undefined {
    // The elements of a tuple share a place, which accepts anything.
    return this.#child("[]", "*", ({ items, prefixItems }) =>
      Array.isArray(items) || prefixItems !== undefined ? true : items,
    );
  }

  countType(half: Half, type: JsonType): void {
    const counts = this.types[half];
    counts.set(type, (counts.get(type) ?? 0) + 1);
  }

  countObject(half: Half, value: SchemaNode): void {
    this.objects[half]++;
    for (const name of this.names) {
      if (!Object.hasOwn(value, name)) continue;
      const counts = this.present.get(name) ?? { older: 0, newer: 0 };
      counts[half]++;
      this.present.set(name, counts);
    }
  }

  /**
   * Returns a place below this one, or `undefined` if no subschema describes it.
   *
   * @param find returns the part of a subschema that describes the place
   */
  #child(key: string, step: string, find: (subschema: SchemaNode) => unknown): Place | undefined {
    const known = this.#children.get(key);
    if (known !== undefined) return known;
    const found = [...this.#subschemas].map(([one, isCertain]) => ({ schema: find(one), isCertain }));
    const described = found.filter(({ schema }) => schema === true || isNode(schema));
    if (described.length === 0) return undefined;
    const [certain = [], possible = []] = [true, false].map((which) =>
      described.filter(({ isCertain }) => isCertain === which).map(({ schema }) => schema),
    );
    const child = new Place(`${this.path}/${step}`, certain, possible, this.#references);
    this.#children.set(key, child);
    return child;
  }
}

/** Follows references, `allOf` and the keywords whose subschemas apply only to some values. */
function expand(
  certain: readonly unknown[],
  possible: readonly unknown[],
  references: References,
): ReadonlyMap<SchemaNode, boolean> {
  const all = new Map<SchemaNode, boolean>();
  const visit = (schema: unknown, isCertain: boolean): void => {
    if (!isNode(schema) || all.size >= MAX_SUBSCHEMAS) return;
    const known = all.get(schema);
    if (known === true || known === isCertain) return;
    all.set(schema, isCertain);
    for (const one of [...(references.targets.get(schema) ?? []), ...listOf(schema.allOf)])
      visit(one, isCertain);
    const { anyOf, oneOf, if: condition, then: whenTrue, else: whenFalse, dependentSchemas } = schema;
    const others = [...listOf(anyOf), ...listOf(oneOf), condition, whenTrue, whenFalse];
    for (const one of [...others, ...Object.values(nodeOf(dependentSchemas))]) visit(one, false);
  };
  for (const one of certain) visit(one, true);
  for (const one of possible) visit(one, false);
  return all;
}

const matchPatterns = (schema: SchemaNode, name: string): readonly string[] =>
  Object.keys(nodeOf(schema.patternProperties)).filter((pattern) => new RegExp(pattern, "u").test(name));

const nodeOf = (value: unknown): SchemaNode => (isNode(value) ? value : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textsOf = (value: unknown): readonly string[] =>
  listOf(value).filter((one): one is string => typeof one === "string");
