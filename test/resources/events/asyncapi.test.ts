import { Parser } from "@asyncapi/parser";
import { describe, expect, it } from "vitest";
import type { Definition } from "../../../src/event/definition.ts";
import { topicOf } from "../../../src/event/topic.ts";
import { createAsyncApi } from "../../../src/resources/events/catalog/asyncapi.ts";
import type { EventType } from "../../../src/resources/events/catalog/event-types.ts";
import { itDeep } from "../../support/deep-run.ts";

const parser = new Parser();
const ids = { organizationId: "org_1", appId: "app_1" };

const typesOf = (channelUid: string, definitions: readonly Definition[]): readonly EventType[] =>
  definitions.map((definition) => {
    const { type } = definition;
    return { channelNumber: 1, channelUid, type, topic: topicOf({ ...ids, channelUid, type }), definition };
  });

const DEFINITIONS: readonly Definition[] = [
  { type: "plain" },
  { type: "any", schema: true },
  {
    type: "tree/~1 .created",
    schema: {
      $id: "https://example.com/tree",
      $defs: {
        "a node": {
          $anchor: "node",
          type: "object",
          properties: { next: { $ref: "#node", description: "Next." } },
        },
      },
      properties: { root: { $ref: "tree#/$defs/a%20node" }, all: { $ref: "#" } },
    },
  },
  { type: "tuple", schema: { prefixItems: [{ type: "string" }], items: false } },
  {
    type: "old",
    schema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      definitions: { a: { type: "string" } },
      items: [{ $ref: "#/definitions/a" }],
    },
  },
  { type: "unresolvable", schema: { $ref: "https://example.com/other.json" } },
  {
    type: "Ключ",
    schema: {
      properties: { a: { enum: [{ b: { $ref: "file:///etc/passwd" } }], type: "object" }, $ref: true },
    },
  },
  { type: '"},{*/', schema: { description: "#" } },
];

const app = { uid: "shop", title: "Shop" };

async function parse(types: readonly EventType[]) {
  const document = createAsyncApi(app, types);
  const { document: parsed, diagnostics } = await parser.parse(JSON.stringify(document));
  return { document, parsed, diagnostics };
}

// biome-ignore lint/suspicious/noExplicitAny: a document of any shape
const payloadOf = (document: any, key: string) => document.components.messages[key].payload;

describe("the AsyncAPI document of an app", () => {
  itDeep(
    "is a valid AsyncAPI 3.1 document for the official parser, whatever the names and schemas are",
    async () => {
      const types = [...typesOf("main", DEFINITIONS), ...typesOf("other", DEFINITIONS.slice(0, 2))];
      const { parsed, diagnostics, document } = await parse(types);
      expect(diagnostics).toEqual([]);
      expect([parsed?.version(), parsed?.allChannels().length, parsed?.allMessages().length]).toEqual([
        "3.1.0",
        types.length,
        types.length,
      ]);
      expect(parsed?.allChannels().map((channel) => channel.address())).toEqual(
        types.map(({ topic }) => topic),
      );
      expect(JSON.stringify(document.servers)).not.toMatch(/localhost|127\.|:\d{4}/);
      expect((await parse([])).diagnostics).toEqual([]);
    },
  );

  it("describes each event as a CloudEvent, with the schema of its data", async () => {
    const { document } = await parse(typesOf("main", DEFINITIONS));
    const { schemaFormat, schema } = payloadOf(document, "MainTuple");
    expect([schemaFormat, schema.properties.data]).toEqual([
      "application/schema+json;version=2020-12",
      DEFINITIONS[3]?.schema,
    ]);
    expect(schema).toMatchObject({
      required: ["specversion", "id", "source", "type"],
      properties: { specversion: { const: "1.0" }, type: { const: "tuple" } },
    });
    expect(payloadOf(document, "Main").schema.properties.data.properties.a).toEqual({ type: "object" });
    expect(payloadOf(document, "MainPlain").schema.properties.data).toBe(true);
    expect(payloadOf(document, "MainUnresolvable").schema.properties.data).toBe(true);
  });

  it("makes references start at the root of the document, and uses draft 7 if the schema means the same there", async () => {
    const { document } = await parse(typesOf("main", DEFINITIONS));
    const base = "#/components/messages/MainTree1Created/payload/schema/properties/data";
    const { schemaFormat, schema } = payloadOf(document, "MainTree1Created");
    expect([schemaFormat, schema.properties.data]).toEqual([
      "application/schema+json;version=draft-07",
      {
        $defs: {
          "a node": {
            type: "object",
            properties: { next: { description: "Next.", allOf: [{ $ref: `${base}/%24defs/a%20node` }] } },
          },
        },
        properties: { root: { $ref: `${base}/%24defs/a%20node` }, all: { $ref: base } },
      },
    ]);
    const old = payloadOf(document, "MainOld");
    expect([old.schemaFormat, old.schema.properties.data.items[0].$ref]).toEqual([
      "application/schema+json;version=draft-07",
      "#/components/messages/MainOld/payload/schema/properties/data/definitions/a",
    ]);
  });
});
