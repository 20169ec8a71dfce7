import { unsupportedMediaType } from "../../ingest/body/read-body.ts";
import { methodNotAllowed } from "../../ingest/receive.ts";
import { ITEM_ROOT, type KindProfile, type RootSource } from "../../normalize/profile.ts";
import { needsSetup } from "../../verify/sender.ts";
import type { ChannelKind } from "../kind.ts";
import { type CloudEventsConfig, cloudEventsConfigSchema } from "./config.ts";
import { acceptsContentType, readEvents } from "./read-events.ts";
import { createValidationRequests } from "./validation-request.ts";

const BATCH = /^\s*application\/cloudevents-batch\b/i;

const ATTRIBUTES = ["time", "datacontenttype", "dataschema", "subject"];

/** How rules read a CloudEvents delivery: paths start at the names of the specification's attributes, and each item is the event's data. */
const profile: KindProfile = {
  roots: new Map<string, RootSource>([
    ["id", { valueIn: ({ item }) => item.event?.id }],
    ["source", { valueIn: ({ item }) => item.event?.source }],
    ["type", { valueIn: ({ item }) => item.event?.type }],
    ...ATTRIBUTES.map((name): [string, RootSource] => [
      name,
      { valueIn: ({ item }) => item.event?.attributes.get(name) },
    ]),
    ["data", ITEM_ROOT],
  ]),
  fixedPaths: { typePath: "$type", idPath: "$id", payloadPath: "$data" },
  readItems: readEvents,
  acceptsContentType,
};

export const cloudevents: ChannelKind = {
  kind: "cloudevents",
  configSchema: cloudEventsConfigSchema,
  secretFields: ["secrets"],
  addressed: true,
  profile,
  needsSetup,
  minimalDelivery: ([type = "test"]) => ({
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({ specversion: "1.0", id: "test", source: "/test", type, data: { test: true } }),
  }),
  async start({ outbound, log }) {
    const validations = createValidationRequests({ outbound, log });
    return {
      push: {
        answerHead(channel, exchange) {
          // The cast is safe, because the schema of this channel kind has already parsed the settings.
          const { allowedOrigins, batch, limits } = channel.kindConfig as CloudEventsConfig;
          const { method, headers } = exchange;
          if (!channel.methods.includes(method)) {
            if (method === "OPTIONS")
              return validations.answer(exchange, {
                allowedOrigins,
                requestsPerSecond: limits.requestsPerSecond,
              });
            return methodNotAllowed(
              allowedOrigins.length > 0 ? [...channel.methods, "OPTIONS"] : channel.methods,
            );
          }
          return batch === "refuse" && BATCH.test(headers["content-type"] ?? "")
            ? unsupportedMediaType("This channel does not accept batches.")
            : undefined;
        },
      },
      [Symbol.asyncDispose]: () => validations[Symbol.asyncDispose](),
    };
  },
};
