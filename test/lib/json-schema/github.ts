import { createRequire } from "node:module";

/** GitHub's own schemas and webhook examples, from the packages of octokit. */
const require = createRequire(import.meta.url);
const { definitions, oneOf } = require("@octokit/webhooks-schemas") as {
  definitions: Record<string, Record<string, unknown>>;
  oneOf: { $ref: string }[];
};

/** Name of each event's definition, such as `pull_request_event`. */
export const EVENT_NAMES: readonly string[] = oneOf.map(({ $ref }) => nameOf($ref));

/** All events in one schema. */
export const unionSchema = (): Record<string, unknown> => structuredClone({ ...DRAFT, definitions, oneOf });

/** Returns the schema of one event with its definitions, as a separate object. */
export function eventSchema(name: string): Record<string, unknown> {
  const needed: Record<string, unknown> = {};
  const add = (each: string): void => {
    if (each in needed) return;
    const definition = definitions[each];
    needed[each] = definition;
    for (const [, ref = ""] of JSON.stringify(definition).matchAll(/"\$ref":"([^"]+)"/g)) add(nameOf(ref));
  };
  add(name);
  return structuredClone({ ...DRAFT, $ref: `#/definitions/${name}`, definitions: needed });
}

/** All payloads with the name of their event's definition. */
export const examples = (): readonly { readonly event: string; readonly payload: unknown }[] =>
  (require("@octokit/webhooks-examples") as { name: string; examples: unknown[] }[]).flatMap(
    ({ name, examples: payloads }) =>
      payloads.map((payload) => ({
        event: `${name}_event` in definitions ? `${name}_event` : `${name}$event`,
        payload,
      })),
  );

const DRAFT = { $schema: "http://json-schema.org/draft-07/schema#" };

function nameOf(ref: string): string {
  return ref.replace("#/definitions/", "");
}
