import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { Ajv, type ValidateFunction } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { expect } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { EVENT_NAMES, eventSchema } from "../lib/json-schema/github.ts";
import { channelOf, installApp } from "./channels.ts";
import type { TestGateway, TestStores } from "./gateway.ts";

/** An example delivery of GitHub, as octokit publishes it. */
export interface Example {
  readonly event: string;
  readonly delivery: string;
  /** The body as sent. Its spacing and key order would change if Inlet serialized it again. */
  readonly text: string;
}

const require = createRequire(import.meta.url);
const events = require("@octokit/webhooks-examples") as { name: string; examples: object[] }[];

export const GITHUB_EVENTS: readonly string[] = events.map(({ name }) => name);

export const GITHUB_EXAMPLES: readonly Example[] = events.flatMap(({ name, examples }) =>
  examples.map((payload, i) => ({
    event: name,
    delivery: `${name}-${i}`,
    text: JSON.stringify(payload, null, i % 3),
  })),
);

export const GITHUB_FIRSTS: readonly Example[] = GITHUB_EXAMPLES.filter(({ delivery }) =>
  delivery.endsWith("-0"),
);

/** Creates a definition of this event that reads GitHub's headers. */
export const githubDefinition = (event: string, schema?: object): object => ({
  type: event,
  typePath: "$headers['x-github-event']",
  idPath: "$headers['x-github-delivery']",
  ...(schema ? { schema } : {}),
});

/** Returns GitHub's schema of an event. The schemas use other names for some events than the examples. */
function schemaOf(event: string): object | undefined {
  const name = [`${event}_event`, `${event}$event`].find((each) => EVENT_NAMES.includes(each));
  return name === undefined ? undefined : eventSchema(name);
}

async function sendExample(
  url: string,
  { event, delivery, text }: Example,
  headers: object = { "content-type": "application/json" },
): Promise<Outcome> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "x-github-event": event, "x-github-delivery": delivery, ...headers },
    body: text,
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Outcome;
}

/**
 * Sends all examples of these events to channels with GitHub's schemas. Each must be published or quarantined as Ajv alone decides.
 * Returns the number of sent and of published examples.
 */
export async function expectAsAjvSays(
  gateway: TestGateway,
  names: readonly string[],
): Promise<{ readonly sent: number; readonly valid: number }> {
  const app = await installApp(gateway, []);
  const urls = new Map<string, string>();
  // Each event gets its own channel, because all of GitHub's schemas together exceed the body limit of the API.
  await Promise.all(
    names.map(async (name) => {
      const channel = { uid: name, kind: "webhook", events: [githubDefinition(name, schemaOf(name))] };
      const { url } = await gateway.api<{ url: string }>("POST", `/apps/${app.id}/channels`, channel);
      urls.set(name, url);
    }),
  );
  const ajv = new Ajv({ strict: false, formats: fullFormats });
  // Ajv compiles each schema on demand. Compiling all at once would block the gateway in this thread, for minutes on a slow machine.
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

/** Checks that each example is on its event's topic unchanged, and that sending all of them again publishes no event. */
export async function expectOnTopics(site: Site, examples: readonly Example[]): Promise<void> {
  const definitions = GITHUB_EVENTS.map((name) => githubDefinition(name));
  const app = await installApp(site.gateway, [{ uid: "hooks", kind: "webhook", events: definitions }]);
  const url = channelOf(app).url ?? "";
  for (const example of examples) {
    const outcome = await sendExample(url, example);
    expect(outcome.published).toBe(1);
    const entry = await entryOf(site, outcome);
    expect(entry).toMatchObject({ topic: app.topicOf("hooks", example.event), data: example.text });
    expect(entry.id).toBe(example.delivery);
  }
  const again = await Promise.all(examples.map((example) => sendExample(url, example)));
  expect(again.reduce((sum, { published }) => sum + published, 0)).toBe(0);
  expect(again.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(examples.length);
}

type SendSigned = (example: Example, contentType: string, body: string) => Promise<Outcome>;

/** Creates a channel with the preset `github` and a definition of each event. */
async function openSigned(gateway: TestGateway) {
  const secret = "It's a Secret to Everybody";
  const config = { preset: "github", secrets: [{ value: secret }] };
  const events = GITHUB_EVENTS.map((type) => ({ type }));
  const app = await installApp(gateway, []);
  const channel = { uid: "signed", kind: "webhook", config, events };
  const { url } = await gateway.api<{ readonly url: string }>("POST", `/apps/${app.id}/channels`, channel);
  const send: SendSigned = (example, contentType, body) => {
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const headers = { "content-type": contentType, "x-hub-signature-256": `sha256=${signature}` };
    return sendExample(url, { ...example, text: body }, headers);
  };
  return { send, topicOf: (event: string) => app.topicOf("signed", event) };
}

/** Checks that each example sent as a form, GitHub's default, is published with the same data as JSON. */
export async function expectFormsAsJson(site: Site, examples: readonly Example[]): Promise<void> {
  const { send, topicOf } = await openSigned(site.gateway);
  for (const example of examples) {
    const form = new URLSearchParams({ payload: example.text }).toString();
    const outcome = await send(example, "application/x-www-form-urlencoded", form);
    expect(outcome.published).toBe(1);
    const topic = topicOf(example.event);
    const datacontenttype = "application/json";
    expect(await entryOf(site, outcome)).toMatchObject({ topic, data: example.text, datacontenttype });
    // The same delivery as JSON has the same data, so it is a duplicate and not a conflict.
    expect(await send(example, "application/json", example.text)).toMatchObject({ duplicates: 1 });
  }
}

/** Checks that a captured delivery is published once, even when replayed under another id or event name, which GitHub does not sign. */
export async function expectReplaysKept(gateway: TestGateway, captured: Example): Promise<void> {
  const { send } = await openSigned(gateway);
  const sendAs = (unsigned: Partial<Example>) =>
    send({ ...captured, ...unsigned }, "application/json", captured.text);
  expect(await sendAs({})).toMatchObject({ published: 1 });
  expect(await sendAs({})).toMatchObject({ published: 0, duplicates: 1, quarantined: 0 });
  const replayed = { published: 0, duplicates: 0, quarantine: [{ reason: "replayed" }] };
  expect(await sendAs({ delivery: "another" })).toMatchObject(replayed);
  expect(await sendAs({ delivery: "a third" })).toMatchObject(replayed);
  const event = GITHUB_EVENTS.find((name) => name !== captured.event) ?? "";
  expect(await sendAs({ event })).toMatchObject(replayed);
}

interface Site {
  readonly stores: TestStores;
  readonly gateway: TestGateway;
}

/** Returns the entry that a delivery of one event has published, as an object. */
async function entryOf({ stores }: Site, { events: [event] }: Outcome): Promise<Record<string, string>> {
  const { topic = "", entryId = "" } = event ?? {};
  const [[, fields = []] = []] = await stores.client.xrange(topic, entryId, entryId);
  const pairs = Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i], fields[2 * i + 1]]);
  return { ...Object.fromEntries(pairs), topic };
}
