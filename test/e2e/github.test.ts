import { createRequire } from "node:module";
import { Ajv } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { EVENT_NAMES, eventSchema } from "../lib/json-schema/github.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";

interface Example {
  readonly event: string;
  readonly delivery: string;
  /** As a sender spells it: with blanks and an own order, so that a re-serialized one would differ. */
  readonly text: string;
}

const require = createRequire(import.meta.url);
const events = require("@octokit/webhooks-examples") as { name: string; examples: object[] }[];
const examples: readonly Example[] = events.flatMap(({ name, examples: payloads }) =>
  payloads.map((payload, i) => ({
    event: name,
    delivery: `${name}-${i}`,
    text: JSON.stringify(payload, null, i % 3),
  })),
);

let stores: SharedStores;
let gateway: GatewayProcess;
beforeAll(async () => {
  stores = await startSharedStores();
  gateway = await startGatewayProcess(stores.env);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

interface App {
  readonly id: string;
  readonly channels: readonly { readonly uid: string; readonly url: string }[];
}

const definitionOf = (event: string, schema?: object) => ({
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

async function install(uid: string, channels: readonly object[]): Promise<App> {
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid,
    title: "GitHub",
    channels,
  });
  return gateway.api<App>("POST", "/apps/install", { blueprintId: blueprint.id });
}

async function send(url: string, { event, delivery, text }: Example): Promise<Outcome> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-github-event": event, "x-github-delivery": delivery },
    body: text,
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Outcome;
}

describe("GitHub's deliveries", () => {
  it("stand byte for byte each on its topic, and a second sending publishes nothing", async () => {
    const definitions = events.map(({ name }) => definitionOf(name));
    const app = await install("github", [{ uid: "hooks", kind: "webhook", config: {}, events: definitions }]);
    const url = app.channels[0]?.url ?? "";
    expect(examples.length).toBe(329);
    for (const example of examples) {
      const {
        published,
        events: [receipt],
      } = await send(url, example);
      expect(published).toBe(1);
      const [[, fields = []] = []] = await stores.client.xrange(
        receipt?.topic ?? "",
        receipt?.entryId ?? "",
        "+",
        "COUNT",
        1,
      );
      expect(receipt?.topic.endsWith(`.${example.event}`)).toBe(true);
      expect(fields[fields.indexOf("data") + 1]).toBe(example.text);
      expect(fields[fields.indexOf("id") + 1]).toBe(example.delivery);
    }
    const again = await Promise.all(examples.map((example) => send(url, example)));
    expect(again.reduce((sum, { published }) => sum + published, 0)).toBe(0);
    expect(again.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(329);
  });

  it("publish or stay in quarantine, one by one, as Ajv alone says of GitHub's own schemas", async () => {
    const app = await install("github-schemas", []);
    const urls = new Map<string, string>();
    // A channel each: all of GitHub's schemas together are larger than a request to the API may be.
    await Promise.all(
      events.map(async ({ name }) => {
        const channel = {
          uid: name,
          kind: "webhook",
          config: {},
          events: [definitionOf(name, schemaOf(name))],
        };
        const { url } = await gateway.api<{ url: string }>("POST", `/apps/${app.id}/channels`, channel);
        urls.set(name, url);
      }),
    );
    const ajv = new Ajv({ strict: false, formats: fullFormats });
    const fitsOf = new Map(events.map(({ name }) => [name, ajv.compile(schemaOf(name) ?? {})]));
    let valid = 0;
    for (const example of examples) {
      const fits = fitsOf.get(example.event)?.(JSON.parse(example.text));
      const { published, quarantine } = await send(urls.get(example.event) ?? "", example);
      expect({ example: example.delivery, published }).toEqual({
        example: example.delivery,
        published: fits ? 1 : 0,
      });
      if (fits) valid++;
      else expect(quarantine.map(({ reason }) => reason)).toEqual(["schema_mismatch"]);
    }
    expect(valid).toBe(276);
  });
});
