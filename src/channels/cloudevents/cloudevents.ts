import { ApiError } from "../../http/problem.ts";
import { ITEM_ROOT, type KindProfile, type RootSource } from "../../normalize/profile.ts";
import { needsSetup } from "../../verify/sender.ts";
import type { ChannelKind } from "../kind.ts";
import { createReceiveDelivery, requireMethod } from "../push/receive-delivery.ts";
import { acceptsContentType, readEvents } from "./read-events.ts";
import { type CloudEventsSettings, cloudEventsSettings } from "./settings.ts";
import { createValidationRequests } from "./validation-request.ts";

const BATCH = /^\s*application\/cloudevents-batch\b/i;

const ATTRIBUTES = ["time", "datacontenttype", "dataschema", "subject"];

/** Paths in rules start at roots named after the attributes of the CloudEvents specification. An item is the event's data. */
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
  settings: cloudEventsSettings,
  secretSettings: ["secrets"],
  addressed: true,
  profile,
  needsSetup,
  minimalDelivery: ([type = "test"]) => ({
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({ specversion: "1.0", id: "test", source: "/test", type, data: { test: true } }),
  }),
  async start({ ingest, bodies, outbound, clock, log }) {
    const receiveDelivery = createReceiveDelivery({ ingest, bodies, clock });
    const validations = createValidationRequests({ outbound, log });
    return {
      receive(channel, request) {
        // The cast is safe, because the schema of this kind parsed these settings.
        const { allowedOrigins, batch, limits } = channel.settings as CloudEventsSettings;
        const { method = "", headers } = request.incoming;
        if (method === "OPTIONS" && !channel.methods.includes(method)) {
          return validations.answer(request, { allowedOrigins, requestsPerSecond: limits.requestsPerSecond });
        }
        requireMethod(request, allowedOrigins.length > 0 ? [...channel.methods, "OPTIONS"] : channel.methods);
        if (batch === "refuse" && BATCH.test(headers["content-type"] ?? "")) {
          throw new ApiError("unsupported_media_type", "This channel does not accept batches.");
        }
        return receiveDelivery(channel, request);
      },
      [Symbol.asyncDispose]: () => validations[Symbol.asyncDispose](),
    };
  },
};
