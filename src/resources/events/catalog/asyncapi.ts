import { isNode, type SchemaNode } from "../../../lib/json-schema/generate/references.ts";
import { type ResolvedSchema, resolveSchema } from "../../../lib/json-schema/resolved-schema.ts";
import { createNames } from "../../../lib/json-schema/typescript/names.ts";
import type { EventType } from "./event-types.ts";
import type { AsyncApiDocument } from "./schema.ts";

const DRAFT_07 = "application/schema+json;version=draft-07";
const DRAFT_2020_12 = "application/schema+json;version=2020-12";
/** Keywords that only draft 2020-12 has, or that have another meaning there. */
const NEW_KEYWORDS = [
  ...["prefixItems", "dependentRequired", "dependentSchemas", "minContains", "maxContains"],
  ...["unevaluatedItems", "unevaluatedProperties"],
];

const ATTRIBUTES = {
  id: { type: "string", description: "Unique per `source`." },
  source: { type: "string", format: "uri-reference" },
  time: { type: "string", format: "date-time" },
  datacontenttype: { type: "string" },
  subject: { type: "string" },
  dataschema: { type: "string", format: "uri" },
};

/**
 * Describes the event types of an app as an AsyncAPI document. Each topic is a channel with one message. The address of Redis is left to
 * a server variable, because readers get it from the operator.
 */
export function createAsyncApi(
  app: { readonly uid: string; readonly title: string },
  types: readonly EventType[],
): AsyncApiDocument {
  const nameOf = createNames([]);
  const channels: Record<string, unknown> = {};
  const operations: Record<string, unknown> = {};
  const messages: Record<string, unknown> = {};
  for (const { channelUid, type, topic, definition } of types) {
    const key = nameOf(channelUid, type);
    const channel = { $ref: `#/channels/${key}` };
    channels[key] = {
      address: topic,
      title: type,
      description: `Events of the type \`${type}\` from the channel \`${channelUid}\`.`,
      servers: [{ $ref: "#/servers/redis" }],
      messages: { event: { $ref: `#/components/messages/${key}` } },
    };
    operations[`send${key}`] = {
      action: "send",
      channel,
      messages: [{ $ref: `#/channels/${key}/messages/event` }],
    };
    messages[key] = {
      name: type,
      title: type,
      contentType: "application/cloudevents+json",
      payload: createPayload(key, type, definition.schema),
    };
  }
  return {
    asyncapi: "3.1.0",
    info: {
      title: app.title === "" ? app.uid : app.title,
      version: "1.0.0",
      description: `Events of the app \`${app.uid}\`, each a CloudEvents 1.0 event on a Redis stream. An entry of the stream has one field per attribute; \`data\` is JSON text, or \`data_base64\` has binary data.`,
    },
    defaultContentType: "application/cloudevents+json",
    servers: {
      redis: {
        host: "{address}",
        protocol: "redis",
        variables: { address: { description: "Host and port of Redis, from the operator of the gateway." } },
      },
    },
    channels,
    operations,
    components: { messages },
  };
}

function createPayload(key: string, type: string, schema: EventType["definition"]["schema"]): object {
  const resolved = schema === undefined ? undefined : resolveSchema(schema);
  const base = `#/components/messages/${key}/payload/schema/properties/data`;
  const needsNew = resolved !== undefined && placeReferences(resolved, base);
  return {
    schemaFormat: needsNew ? DRAFT_2020_12 : DRAFT_07,
    schema: {
      type: "object",
      required: ["specversion", "id", "source", "type"],
      properties: {
        specversion: { const: "1.0" },
        type: { const: type },
        ...ATTRIBUTES,
        data: resolved?.root ?? true,
        data_base64: { type: "string" },
      },
    },
  };
}

/**
 * Makes the references of a schema start at the root of the document. Returns true if the schema means something else, or less, in
 * draft 7.
 */
function placeReferences({ dialect, references }: ResolvedSchema, base: string): boolean {
  let needsNew = false;
  for (const node of references.places.keys()) {
    delete node.$schema;
    for (const [keyword, value] of Object.entries(node)) {
      if (keyword !== "$ref" && hasForeignReference(value, references)) delete node[keyword];
      // Parsers take a property with this name for a reference.
      else if (isNode(value) && !references.places.has(value)) delete value.$ref;
    }
    if (typeof node.$ref === "string") node.$ref = `${base}${node.$ref.slice(1)}`;
    if (dialect === "draft-07") continue;
    // Draft 7 ignores the keywords next to a reference.
    if (node.$ref !== undefined && Object.keys(node).length > 1) {
      node.allOf = [...(Array.isArray(node.allOf) ? node.allOf : []), { $ref: node.$ref }];
      delete node.$ref;
    }
    needsNew ||= NEW_KEYWORDS.some((keyword) => Object.hasOwn(node, keyword));
  }
  return needsNew;
}

/**
 * Returns true if a literal value, such as a `const`, has a member `$ref`. Readers of the document would follow it, even to a file. Schemas
 * inside of the value do not count.
 */
function hasForeignReference(value: unknown, { places }: ResolvedSchema["references"]): boolean {
  const waiting = [value];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    if (typeof one !== "object" || one === null || places.has(one as SchemaNode)) continue;
    if ("$ref" in one && typeof one.$ref === "string") return true;
    for (const inside of Object.values(one)) if (typeof inside === "object") waiting.push(inside);
  }
  return false;
}
