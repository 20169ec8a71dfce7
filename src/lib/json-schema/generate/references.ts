/** Resolves a schema's references as JSON Schema does: by base addresses, anchors and pointers, within the schema alone. */
import type { Finding } from "../../errors.ts";
import type { Dialect } from "./dialects.ts";
import { escapeStep, subschemasOf } from "./subschemas.ts";

/** A schema object that may be changed: the parsed text is the compiler's own. */
export type SchemaNode = Record<string, unknown>;

/** Where a schema stands: its JSON Pointer from the root, and the address that its references are relative to. */
interface Place {
  readonly pointer: string;
  readonly base: string;
}

interface Target extends Place {
  readonly schema: unknown;
}

/** Of a schema without an address: only relative ones meet in it. */
const NO_ADDRESS = "schema://self/";
/** Of a reference that is wrong. */
const SHOWN_LENGTH = 200;

export const isNode = (value: unknown): value is SchemaNode =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Every schema of a document by where it stands, found by reading it once; with each reference as a JSON Pointer from the root.
 * Keywords that only name places (`$id`, anchors, `$dynamicRef`) are gone from the document afterwards.
 */
export class References {
  /** All schema objects, those that only a reference makes a schema included. */
  readonly places = new Map<SchemaNode, Place>();
  readonly findings: Finding[] = [];
  /** The target of `$ref`. */
  readonly targets = new Map<SchemaNode, readonly unknown[]>();
  readonly #dialect: Dialect;
  readonly #resources = new Map<string, Target>();
  readonly #anchors = new Map<string, Target>();
  /** How many addresses declare a `$dynamicAnchor` of the name. */
  readonly #dynamicAnchors = new Map<string, Set<string>>();
  readonly #waiting: SchemaNode[] = [];

  constructor(root: SchemaNode | boolean, dialect: Dialect) {
    this.#dialect = dialect;
    this.#resources.set(NO_ADDRESS, { schema: root, pointer: "", base: NO_ADDRESS });
    this.#enter(root, { pointer: "", base: NO_ADDRESS });
    // References reach schemas where none are looked for; those are entered as they are reached.
    for (let node = this.#waiting.pop(); node !== undefined; node = this.#waiting.pop()) this.#follow(node);
    for (const node of this.places.keys()) removeNames(node);
  }

  #enter(schema: unknown, { pointer, base: outer }: Place): void {
    if (!isNode(schema) || this.places.has(schema)) return;
    const base = this.#nameOf(schema, pointer, outer);
    this.places.set(schema, { pointer, base });
    this.#waiting.push(schema);
    for (const child of subschemasOf(schema)) {
      this.#enter(child.schema, { pointer: pointer + child.pointer, base });
    }
  }

  /** Files the schema under the names that it declares, and answers the address that holds inside of it. */
  #nameOf(schema: SchemaNode, pointer: string, outer: string): string {
    const { $id, $ref, $anchor, $dynamicAnchor } = schema;
    const isDraft7 = this.#dialect === "draft-07";
    let base = outer;
    // Draft 7 ignores what stands beside a reference.
    if (typeof $id === "string" && !(isDraft7 && typeof $ref === "string")) {
      const [address = "", fragment = ""] = $id.split("#");
      if (address !== "") {
        base = addressOf(outer, address);
        const known = this.#resources.get(base);
        if (known && known.schema !== schema) {
          const message = "is the address of another part of this schema";
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
        const message = "is not supported where more than one $id declares its $dynamicAnchor";
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

  /** With a single `$dynamicAnchor` of the name, the way that led to the reference makes no difference. */
  #isDynamic(reference: string, { schema }: Target): boolean {
    const name = reference.split("#")[1] ?? "";
    const isAnchored = isNode(schema) && schema.$dynamicAnchor === name;
    return isAnchored && (this.#dynamicAnchors.get(name)?.size ?? 0) > 1;
  }

  /** The target of a reference, or why there is none. */
  #locate(reference: string, base: string): Target | string {
    const [address = "", fragment = ""] = reference.split("#");
    const resource = this.#resources.get(address === "" ? base : addressOf(base, address));
    if (!resource) return "is not part of this schema, and remote schemas are never fetched";
    const name = decode(fragment);
    if (name === "") return resource;
    const found = name.startsWith("/")
      ? this.#walk(resource, fragment)
      : this.#anchors.get(`${resource.base}#${name}`);
    if (!found) return "leads nowhere in this schema";
    return typeof found.schema === "boolean" || isNode(found.schema) ? found : "does not lead to a schema";
  }

  /** By own properties only: an object inherits others. */
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

/** Absolute; as it stands where it is relative to what takes none (`urn:…`). */
const addressOf = (base: string, address: string): string => URL.parse(address, base)?.href ?? address;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
