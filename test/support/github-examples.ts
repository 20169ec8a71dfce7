import { createRequire } from "node:module";
import { Ajv, type ValidateFunction } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { expect } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { EVENT_NAMES, eventSchema } from "../lib/json-schema/github.ts";
import { installApp, type TestGateway } from "./gateway.ts";

/** A delivery of GitHub, as octokit publishes it. */
export interface Example {
  readonly event: string;
  readonly delivery: string;
  /** As a sender spells it: with blanks and an own order, so that a re-serialized one would differ. */
  readonly text: string;
}

const require = createRequire(import.meta.url);
const events = require("@octokit/webhooks-examples") as { name: string; examples: object[] }[];

/** The names of all events. */
export const GITHUB_EVENTS: readonly string[] = events.map(({ name }) => name);

export const GITHUB_EXAMPLES: readonly Example[] = events.flatMap(({ name, examples }) =>
  examples.map((payload, i) => ({
    event: name,
    delivery: `${name}-${i}`,
    text: JSON.stringify(payload, null, i % 3),
  })),
);

/** A definition of that event by GitHub's headers. */
export const githubDefinition = (event: string, schema?: object): object => ({
  type: event,
  typePath: "$headers['x-github-event']",
  idPath: "$headers['x-github-delivery']",
  ...(schema ? { schema } : {}),
});

/** GitHub's schema of an event; its schemas name some events otherwise than its examples do. */
function schemaOf(event: string): object | undefined {
  const name = [`${event}_event`, `${event}$event`].find((each) => EVENT_NAMES.includes(each));
  return name === undefined ? undefined : eventSchema(name);
}

export async function sendExample(url: string, { event, delivery, text }: Example): Promise<Outcome> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-github-event": event, "x-github-delivery": delivery },
    body: text,
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Outcome;
}

/**
 * Sends all examples of these events to channels with GitHub's schemas: each is published or stays in quarantine as Ajv alone says.
 * Answers how many were sent, and how many published.
 */
export async function expectAsAjvSays(
  gateway: TestGateway,
  names: readonly string[],
): Promise<{ readonly sent: number; readonly valid: number }> {
  const app = await installApp(gateway, []);
  const urls = new Map<string, string>();
  // A channel each: all of GitHub's schemas together are larger than a request to the API may be.
  await Promise.all(
    names.map(async (name) => {
      const channel = { uid: name, kind: "webhook", events: [githubDefinition(name, schemaOf(name))] };
      const { url } = await gateway.api<{ url: string }>("POST", `/apps/${app.id}/channels`, channel);
      urls.set(name, url);
    }),
  );
  const ajv = new Ajv({ strict: false, formats: fullFormats });
  // Compiled one by one: all in one turn would stop the gateway, which shares this thread, for minutes on a slow machine.
  const fitsOf = new Map<string, ValidateFunction>();
  const examples = GITHUB_EXAMPLES.filter(({ event }) => names.includes(event));
  let valid = 0;
  for (const example of examples) {
    const fitsSchema = fitsOf.get(example.event) ?? ajv.compile(schemaOf(example.event) ?? {});
    fitsOf.set(example.event, fitsSchema);
    const fits = fitsSchema(JSON.parse(example.text));
    const { published, quarantine } = await sendExample(urls.get(example.event) ?? "", example);
    expect({ example: example.delivery, published }).toEqual({
      example: example.delivery,
      published: fits ? 1 : 0,
    });
    if (fits) valid++;
    else expect(quarantine.map(({ reason }) => reason)).toEqual(["schema_mismatch"]);
  }
  return { sent: examples.length, valid };
}
