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

/** One definition per event of GitHub, on a channel of its own. */
async function installGithub(uid: string, schemaOf: (event: string) => object | undefined): Promise<string> {
  const definitions = events.map(({ name }) => ({
    type: name,
    typePath: "$headers['x-github-event']",
    idPath: "$headers['x-github-delivery']",
    schema: schemaOf(name),
  }));
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid,
    title: "GitHub",
    channels: [{ uid: "hooks", kind: "webhook", title: "Webhooks", config: {}, events: [] }],
  });
  const app = await gateway.api<{ id: string; channels: { id: string; url: string }[] }>(
    "POST",
    "/apps/install",
    {
      blueprintId: blueprint.id,
    },
  );
  const [channel] = app.channels;
  // GitHub's schemas together are larger than one request may be, so they are given in parts.
  for (let end = 20; end < definitions.length + 20; end += 20) {
    const path = `/apps/${app.id}/channels/${channel?.id}`;
    await gateway.api("PUT", path, { events: definitions.slice(0, end) });
  }
  return channel?.url ?? "";
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
    const url = await installGithub("github", () => undefined);
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
  }, 60_000);

  it("publish or stay in quarantine, one by one, as Ajv alone says of GitHub's own schemas", async () => {
    const definitionOf = (event: string): string | undefined =>
      [`${event}_event`, `${event}$event`].find((name) => EVENT_NAMES.includes(name));
    const url = await installGithub("github-schemas", (event) => {
      const name = definitionOf(event);
      return name === undefined ? undefined : eventSchema(name);
    });
    const ajv = new Ajv({ strict: false, formats: fullFormats });
    let valid = 0;
    for (const example of examples) {
      const name = definitionOf(example.event);
      const fits = name === undefined || ajv.validate(eventSchema(name), JSON.parse(example.text));
      const { published, quarantine } = await send(url, example);
      expect({ example: example.delivery, published }).toEqual({
        example: example.delivery,
        published: fits ? 1 : 0,
      });
      if (fits) valid++;
      else expect(quarantine.map(({ reason }) => reason)).toEqual(["schema_mismatch"]);
    }
    expect(valid).toBe(276);
  }, 120_000);
});
