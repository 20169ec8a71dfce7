/**
 * Resolves references within a schema by base URI, anchor or pointer, as JSON Schema specifies. References to other documents are
 * not supported.
 */
import type { Finding } from "../../errors.ts";
import type { Dialect } from "./dialect.ts";
import { escapeStep, subschemasOf } from "./subschemas.ts";

/** An object in a JSON Schema document. It may be modified, because the compiler parsed its own copy of the document. */
export type SchemaNode = Record<string, unknown>;

/** Position of a subschema: its JSON Pointer from the root, and the base URI that resolves references inside the subschema. */
interface Place {
  readonly pointer: string;
  readonly base: string;
}

interface Target extends Place {
  readonly schema: unknown;
}

/** Base URI for schemas without `$id`, because relative references can only be resolved against a base URI. */
const DEFAULT_BASE = "schema://self/";
/** Maximum number of characters of an invalid reference to quote in an error message. */
const SHOWN_LENGTH = 200;

export const isNode = (value: unknown): value is SchemaNode =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Collects all subschemas of a document, and replaces each reference by a JSON Pointer from the root. Keywords that only name
 * places are removed: `$id`, anchors and `$dynamicRef`.
 */
export class References {
  /** Positions of all subschemas. An object also counts as a subschema if only a reference points to it. */
  readonly places = new Map<SchemaNode, Place>();
  readonly findings: Finding[] = [];
  readonly targets = new Map<SchemaNode, readonly unknown[]>();
  readonly #dialect: Dialect;
  readonly #resources = new Map<string, Target>();
  readonly #anchors = new Map<string, Target>();
  /** For each `$dynamicAnchor` name, the base URIs of the schema resources that declare the anchor. */
  readonly #dynamicAnchors = new Map<string, Set<string>>();
  readonly #waiting: SchemaNode[] = [];

  constructor(root: SchemaNode | boolean, dialect: Dialect) {
    this.#dialect = dialect;
    this.#resources.set(DEFAULT_BASE, { schema: root, pointer: "", base: DEFAULT_BASE });
    this.#enter(root, { pointer: "", base: DEFAULT_BASE });
    // Following a reference can add subschemas to the list, because references may point into unknown keywords.
    for (let node = this.#waiting.pop(); node !== undefined; node = this.#waiting.pop()) this.#follow(node);
    for (const node of this.places.keys()) removeNames(node);
  }

  #enter(schema: unknown, { pointer, base: outer }: Place): void {
    if (!isNode(schema) || this.places.has(schema)) return;
    const base = this.#registerNames(schema, pointer, outer);
    this.places.set(schema, { pointer, base });
    this.#waiting.push(schema);
    for (const child of subschemasOf(schema)) {
      this.#enter(child.schema, { pointer: pointer + child.pointer, base });
    }
  }

  /** Registers the `$id` and the anchors of a subschema. Returns the base URI for references inside the subschema. */
  #registerNames(schema: SchemaNode, pointer: string, outer: string): string {
    const { $id, $ref, $anchor, $dynamicAnchor } = schema;
    const isDraft7 = this.#dialect === "draft-07";
    let base = outer;
    // In draft 7, a `$ref` disables all keywords next to it, including `$id`.
    if (typeof $id === "string" && !(isDraft7 && typeof $ref === "string")) {
      const [address = "", fragment = ""] = $id.split("#");
      if (address !== "") {
        base = resolveUri(outer, address);
        const known = this.#resources.get(base);
        if (known && known.schema !== schema) {
          const message = "is already the URI of another part of this schema";
          this.findings.push({ path: `${pointer}/$id`, message });
        }
        this.#resources.set(base, { schema, pointer, base });
      }
      if (isDraft7 && fragment !== "") this.#anchors.set(`${base}#${fragment}`, { schema, pointer, base });
    }
    if (isDraft7) return base;
    for (const anchor of [$anchor, $dynamicAnchor]) {
      if (typeof anchor === "string") this.#anchors.set(`${base}#${anchor}`, { schema, pointer, base });
    }
    if (typeof $dynamicAnchor === "string") {
      const addresses = this.#dynamicAnchors.get($dynamicAnchor) ?? new Set();
      this.#dynamicAnchors.set($dynamicAnchor, addresses.add(base));
    }
    return base;
  }

  #follow(node: SchemaNode): void {
    const place = this.places.get(node);
    if (!place) return;
    const targets: unknown[] = [];
    for (const keyword of this.#dialect === "draft-07" ? ["$ref"] : ["$ref", "$dynamicRef"]) {
      const reference = node[keyword];
      if (typeof reference !== "string") continue;
      const path = `${place.pointer}/${keyword}`;
      const target = this.#locate(reference, place.base);
      if (typeof target === "string") {
        const shown = JSON.stringify(reference.slice(0, SHOWN_LENGTH));
        this.findings.push({ path, message: `the ${keyword} ${shown} ${target}` });
        continue;
      }
      if (keyword === "$dynamicRef" && this.#isDynamic(reference, target)) {
        const message =
          "is not supported, because several schemas with their own $id declare its $dynamicAnchor";
        this.findings.push({ path, message });
        continue;
      }
      this.#enter(target.schema, target);
      targets.push(target.schema);
      const pointer = `#${target.pointer.split("/").map(encodeURIComponent).join("/")}`;
      if (keyword === "$ref" || node.$ref === undefined) node.$ref = pointer;
      else node.allOf = [...(Array.isArray(node.allOf) ? node.allOf : []), { $ref: pointer }];
    }
    if (targets.length > 0) this.targets.set(node, targets);
  }

  /**
   * Returns whether a dynamic reference can resolve to different targets at run time. This requires several resources with the same
   * `$dynamicAnchor`.
   */
  #isDynamic(reference: string, { schema }: Target): boolean {
    const name = reference.split("#")[1] ?? "";
    const isAnchored = isNode(schema) && schema.$dynamicAnchor === name;
    return isAnchored && (this.#dynamicAnchors.get(name)?.size ?? 0) > 1;
  }

  #locate(reference: string, base: string): Target | string {
    const [address = "", fragment = ""] = reference.split("#");
    const resource = this.#resources.get(address === "" ? base : resolveUri(base, address));
    if (!resource) return "does not point into this schema, and Inlet never fetches remote schemas";
    const name = decode(fragment);
    if (name === "") return resource;
    const found = name.startsWith("/")
      ? this.#walk(resource, fragment)
      : this.#anchors.get(`${resource.base}#${name}`);
    if (!found) return "does not exist in this schema";
    return typeof found.schema === "boolean" || isNode(found.schema) ? found : "does not point to a schema";
  }

  /** Follows a JSON Pointer that starts at a target. Ignores inherited properties. */
  #walk(from: Target, fragment: string): Target | undefined {
    let at = from;
    for (const part of fragment.slice(1).split("/")) {
      const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
      const { schema: parent } = at;
      if (typeof parent !== "object" || parent === null || !Object.hasOwn(parent, name)) return undefined;
      const schema: unknown = Object.getOwnPropertyDescriptor(parent, name)?.value;
      const base = isNode(schema) ? this.places.get(schema)?.base : undefined;
      at = { schema, pointer: `${at.pointer}/${escapeStep(name)}`, base: base ?? at.base };
    }
    return at;
  }
}

const NAMES = ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"];

function removeNames(node: SchemaNode): void {
  for (const name of NAMES) if (typeof node[name] !== "object") delete node[name];
}

/** Resolves a relative URI. Returns the reference unchanged if the base URI is not hierarchical, such as `urn:…`. */
const resolveUri = (base: string, address: string): string => URL.parse(address, base)?.href ?? address;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
