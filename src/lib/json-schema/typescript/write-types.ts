import type { JsonSchema } from "../compiled-schema.ts";
import { isNode, type SchemaNode } from "../generate/references.ts";
import { type ResolvedSchema, resolveSchema } from "../resolved-schema.ts";
import { createNames, writeComment, writeKey, writeString } from "./names.ts";

/** A TypeScript type as text. */
interface Written {
  readonly text: string;
  /** Operator at the top level of the text, which decides where the type needs parentheses. */
  readonly operator?: "|" | "&";
}

/** Thrown if the written types are longer than allowed. */
export class TypesTooLongError extends Error {}

const UNKNOWN: Written = { text: "unknown" };
const NEVER: Written = { text: "never" };
/** Maximum depth of a type. Deeper parts become `unknown`. */
const MAX_DEPTH = 50;
/** Maximum number of values of an `enum` to list. A longer one becomes the union of the types of its values. */
const MAX_VALUES = 500;
/** Maximum number of schemas to visit in the search for a type that refers to itself. */
const MAX_VISITED = 100;

/** Writes the TypeScript types of JSON Schemas, one after the other. */
export interface TypeWriter {
  /**
   * Adds the type of a schema and the types to which it refers, and returns its name. The name is made from the given words.
   * @throws TypesTooLongError
   */
  readonly add: (words: readonly string[], schema: JsonSchema) => string;
  /** Declarations of all added types. */
  readonly text: () => string;
}

/**
 * Creates a writer of types. A type accepts each value that its schema accepts: constraints that TypeScript cannot express are left out.
 * Two rules make it stricter for convenience: a schema with `properties` describes objects only, and other properties are not declared.
 */
export function createTypeWriter(maxCharacters: number, reserved: readonly string[] = []): TypeWriter {
  const nameOf = createNames(reserved);
  const declarations: string[] = [];
  let left = maxCharacters;
  const charge = (text: string): string => {
    left -= text.length;
    if (left < 0) throw new TypesTooLongError(`the types have more than ${maxCharacters} characters`);
    return text;
  };
  return {
    add(words, schema) {
      const resolved = resolveSchema(schema);
      const name = nameOf(...words);
      const declare = (named: string, type: string, description: unknown): void => {
        const comment = writeComment(description);
        declarations.push(charge(`${comment ? `${comment}\n` : ""}export type ${named} = ${type};\n`));
      };
      if (resolved === undefined) declare(name, UNKNOWN.text, undefined);
      else for (const one of writeSchema(resolved, name, nameOf, charge)) declare(...one);
      return name;
    },
    text: () => declarations.join("\n"),
  };
}

/** Places in which a type must not refer to itself, because TypeScript would reject the cycle. */
interface Alias {
  readonly declared: SchemaNode;
  /** The declared schema if a reference to it is a cycle here. */
  readonly here?: SchemaNode | undefined;
  /** The declared schema if a reference to it is also a cycle inside of arrays. */
  readonly inArrays?: SchemaNode | undefined;
}

type Declaration = readonly [name: string, type: string, description: unknown];

/** Yields the declaration of the schema itself, then those of the schemas to which it refers. */
function* writeSchema(
  { root, dialect, references }: ResolvedSchema,
  rootName: string,
  nameOf: (...words: readonly string[]) => string,
  charge: (text: string) => string,
): Generator<Declaration> {
  const names = new Map<SchemaNode, string>();
  const waiting: SchemaNode[] = [];
  if (isNode(root)) {
    names.set(root, rootName);
    waiting.push(root);
  } else yield [rootName, root ? UNKNOWN.text : NEVER.text, undefined];
  for (let node = waiting.shift(); node !== undefined; node = waiting.shift())
    yield [
      names.get(node) ?? rootName,
      write(node, 0, { here: node, declared: node }).text,
      node.description,
    ];

  function write(schema: unknown, depth: number, alias: Alias): Written {
    if (schema === false) return NEVER;
    if (!isNode(schema) || depth > MAX_DEPTH) return UNKNOWN;
    const targets = (references.targets.get(schema) ?? []).map((target) => refer(target, alias));
    if (dialect === "draft-07" && targets.length > 0) return intersect(targets);
    const all = listOf(schema.allOf).map((one) => write(one, depth + 1, alias));
    const choices = [schema.anyOf, schema.oneOf].filter(Array.isArray);
    const chosen = choices.map((list) => unite(list.map((one) => write(one, depth + 1, alias))));
    const others = [...targets, ...all, ...chosen];
    return intersect([writeOwn(schema, depth, others.length > 0, alias), ...others]);
  }

  function refer(target: unknown, { here, inArrays }: Alias): Written {
    if (!isNode(target)) return target === false ? NEVER : UNKNOWN;
    if (here !== undefined && leadsTo(target, here, inArrays !== undefined)) return UNKNOWN;
    const name = names.get(target) ?? nameOf(rootName, lastStep(references.places.get(target)?.pointer));
    if (!names.has(target)) waiting.push(target);
    names.set(target, name);
    return { text: charge(name) };
  }

  /**
   * Returns whether a type would contain another one, but not in a property. TypeScript rejects such a cycle.
   *
   * @param throughArrays whether the elements of arrays count too
   */
  function leadsTo(from: SchemaNode, to: SchemaNode, throughArrays: boolean): boolean {
    const visited = new Set<unknown>([from]);
    for (const one of visited) {
      if (one === to || visited.size > MAX_VISITED) return true;
      if (!isNode(one)) continue;
      const elements = throughArrays ? [one.items, one.prefixItems, one.additionalItems].flat() : [];
      for (const next of [
        ...(references.targets.get(one) ?? []),
        ...[one.allOf, one.anyOf, one.oneOf].flatMap(listOf),
        ...elements,
      ])
        visited.add(next);
    }
    return false;
  }

  /** Writes the keywords of a schema that describe its value directly. */
  function writeOwn(schema: SchemaNode, depth: number, hasOthers: boolean, alias: Alias): Written {
    if (Object.hasOwn(schema, "const")) return writeValue(schema.const, depth);
    if (Array.isArray(schema.enum)) return writeValues(schema.enum, depth);
    return unite(typesOf(schema).map((type) => writeType(type, schema, depth, hasOthers, alias)));
  }

  function writeType(
    type: unknown,
    schema: SchemaNode,
    depth: number,
    hasOthers: boolean,
    alias: Alias,
  ): Written {
    switch (type) {
      case "string":
      case "boolean":
      case "null":
        return { text: charge(type) };
      case "integer":
      case "number":
        return { text: charge("number") };
      case "array":
        return writeArray(schema, depth, alias);
      case "object":
        return writeObject(schema, depth, hasOthers, { declared: alias.declared });
      default:
        return UNKNOWN;
    }
  }

  function writeArray(schema: SchemaNode, depth: number, { declared, inArrays }: Alias): Written {
    const isTuple = dialect === "draft-07" ? Array.isArray(schema.items) : Array.isArray(schema.prefixItems);
    const first = isTuple ? listOf(dialect === "draft-07" ? schema.items : schema.prefixItems) : [];
    const rest = isTuple && dialect === "draft-07" ? schema.additionalItems : schema.items;
    const alias = { declared, here: inArrays, inArrays };
    if (!isTuple) return { text: `${group(write(rest, depth + 1, alias), true)}[]` };
    const needed = typeof schema.minItems === "number" ? schema.minItems : 0;
    // TypeScript evaluates arrays in optional and rest elements at once, so they must not contain the declared type.
    const eager = { ...alias, inArrays: declared };
    const items = first.map((item, index) =>
      index < needed ? write(item, depth + 1, alias).text : `${group(write(item, depth + 1, eager), true)}?`,
    );
    const others = rest === false ? [] : [`...${group(write(rest, depth + 1, eager), true)}[]`];
    return { text: charge(`[${[...items, ...others].join(", ")}]`) };
  }

  function writeObject(schema: SchemaNode, depth: number, hasOthers: boolean, alias: Alias): Written {
    const properties = isNode(schema.properties) ? schema.properties : {};
    const required = new Set(listOf(schema.required).filter((name) => typeof name === "string"));
    const named = new Map<string, unknown>(Object.entries(properties));
    for (const name of required) if (!named.has(name)) named.set(name, true);
    const indent = "  ".repeat(depth + 1);
    if (named.size === 0) {
      const index = writeIndex(schema, depth, alias);
      return index === undefined && hasOthers
        ? UNKNOWN
        : { text: `{ [key: string]: ${index ?? "unknown"} }` };
    }
    const members = [...named].map(([name, member]) => {
      const comment = isNode(member) ? writeComment(member.description) : undefined;
      const key = `${writeKey(name)}${required.has(name) ? "" : "?"}`;
      const line = charge(`${comment ? `${indent}${comment}\n` : ""}${indent}${key}: `);
      return `${line}${write(member, depth + 1, alias).text};\n`;
    });
    return { text: `{\n${members.join("")}${charge("  ".repeat(depth))}}` };
  }

  /** Writes the type of properties without a declared name. Returns `undefined` if any value is accepted. */
  function writeIndex(schema: SchemaNode, depth: number, alias: Alias): string | undefined {
    const { additionalProperties: others = true } = schema;
    const patterns = isNode(schema.patternProperties) ? Object.values(schema.patternProperties) : [];
    const { text } = unite([...patterns, others].map((one) => write(one, depth + 1, alias)));
    return text === UNKNOWN.text ? undefined : text;
  }

  function writeValues(values: readonly unknown[], depth: number): Written {
    if (values.length <= MAX_VALUES) return unite(values.map((value) => writeValue(value, depth)));
    const types = new Set(values.map((value) => (value === null ? "null" : typeof value)));
    return types.has("object") ? UNKNOWN : unite([...types].map((text) => ({ text })));
  }

  function writeValue(value: unknown, depth: number): Written {
    if (depth > MAX_DEPTH) return UNKNOWN;
    if (typeof value === "string") return { text: charge(writeString(value)) };
    if (typeof value === "number") return { text: charge(Number.isFinite(value) ? String(value) : "number") };
    if (typeof value !== "object" || value === null) return { text: charge(String(value)) };
    const inside = Array.isArray(value)
      ? value.map((one) => writeValue(one, depth + 1).text)
      : Object.entries(value).map(
          ([name, one]) => `${charge(writeKey(name))}: ${writeValue(one, depth + 1).text}`,
        );
    return { text: charge(Array.isArray(value) ? `[${inside.join(", ")}]` : `{ ${inside.join("; ")} }`) };
  }
}

const OBJECT_KEYWORDS = ["properties", "required", "additionalProperties", "patternProperties"];
const ARRAY_KEYWORDS = ["items", "prefixItems"];

/** Returns the types of a schema's values. A schema without `type` gets the type that its keywords are about. */
function typesOf(schema: SchemaNode): readonly unknown[] {
  const { type } = schema;
  if (type !== undefined) return Array.isArray(type) ? type : [type];
  if (OBJECT_KEYWORDS.some((keyword) => Object.hasOwn(schema, keyword))) return ["object"];
  return ARRAY_KEYWORDS.some((keyword) => Object.hasOwn(schema, keyword)) ? ["array"] : [undefined];
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function unite(types: readonly Written[]): Written {
  return join(types, "|", NEVER.text, UNKNOWN);
}

function intersect(types: readonly Written[]): Written {
  return join(types, "&", UNKNOWN.text, NEVER);
}

/**
 * Joins types, each once.
 *
 * @param neutral type that changes nothing, and is the result if there is no other
 * @param absorbing type that is the result if it occurs
 */
function join(types: readonly Written[], operator: "|" | "&", neutral: string, absorbing: Written): Written {
  const different = new Map(types.map((type) => [type.text, type]));
  if (different.has(absorbing.text)) return absorbing;
  different.delete(neutral);
  const [first, ...others] = [...different.values()];
  if (first === undefined) return { text: neutral };
  if (others.length === 0) return first;
  const all = [first, ...others].map((type) => (type.operator === operator ? type.text : group(type)));
  return { text: all.join(` ${operator} `), operator };
}

/** @param isAlways whether a type with any operator needs parentheses, as before `[]` */
const group = ({ text, operator }: Written, isAlways = false): string =>
  operator !== undefined && (isAlways || operator === "|") ? `(${text})` : text;

const lastStep = (pointer = ""): string => pointer.slice(pointer.lastIndexOf("/") + 1);
