import type { Schemas } from "../../api/client.ts";
import { parseSimplePath, readFirst } from "../../kit/text/simple-path.ts";
import { listFields } from "../definitions/delivery-fields.ts";

type Sample = Pick<Schemas["Preset"], "sample" | "typePath">;

/** Returns the event type in a provider's sample, or `undefined` if the path to the type is not a plain list of names. */
export function sampleType({ sample, typePath }: Sample): string | undefined {
  const path = parseSimplePath(typePath ?? "");
  const value = path && readFirst(rootOf(sample, path.root), path.steps);
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

function rootOf({ headers, query, body }: Sample["sample"], root: string): unknown {
  if (root === "headers") return headers;
  if (root === "query") return query;
  try {
    return JSON.parse(body);
  } catch {
    return Object.fromEntries(new URLSearchParams(body));
  }
}

/** A field of a sample body that can be its event type. */
export interface TypeField {
  readonly path: string;
  readonly name: string;
  readonly value: string;
}

/** Lists the text fields of a JSON body. */
export const listTypes = (body: string): readonly TypeField[] =>
  listFields({ body, headers: {} }, { kind: "webhook", itemsPath: undefined }).flatMap(
    ({ path, name, value }) =>
      value?.startsWith('"') ? [{ path, name: String(name), value: String(JSON.parse(value)) }] : [],
  );

const USUAL_NAME = /^(?:type|event|event_?type|event_?name|kind|topic|action)$/i;

/** Returns the path of the field whose name suggests that it is the event type. */
export const guessTypePath = (fields: readonly TypeField[]): string | undefined =>
  fields.find(({ name }) => USUAL_NAME.test(name))?.path;
