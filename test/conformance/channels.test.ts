import { expect, it } from "vitest";
import { cloudevents } from "../../src/channels/cloudevents/cloudevents.ts";
import { channelKinds } from "../../src/channels/kinds.ts";
import { polling } from "../../src/channels/polling/polling.ts";
import { sse } from "../../src/channels/sse/sse.ts";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { type ChannelSamples, describeChannelKind } from "./channel.suite.ts";
import { describeSource, type SourceSamples } from "./source.suite.ts";

const hmac = { scheme: "hmac", algorithm: "sha256", encoding: "hex", in: "header", name: "x-signature" };
const secret = {
  config: { verification: hmac, secrets: [{ value: "not-to-be-shown" }] },
  text: "not-to-be-shown",
};
const rows = {
  request: { url: "https://api.example.com/rows", query: { since: "{{cursor}}" } },
  discriminator: { by: "sequence", path: "$.seq" },
};

const CHANNELS: readonly ChannelSamples[] = [
  {
    kind: webhook,
    config: {},
    refused: [
      ["retention.maxAgeSeconds", { retention: { maxAgeSeconds: 1 } }],
      ["itemsPath", { itemsPath: "items" }],
      ["verification", { verification: { scheme: "none", name: "x" } }],
    ],
    secret,
  },
  {
    kind: cloudevents,
    config: { allowedOrigins: ["example.com"] },
    refused: [
      ["batch", { batch: "split" }],
      ["allowedOrigins[0]", { allowedOrigins: ["https://example.com"] }],
      ["itemsPath", { itemsPath: "$.items" }],
    ],
    secret,
  },
  {
    kind: sse,
    config: { url: "https://example.com/stream" },
    refused: [
      ["url", { url: "ftp://example.com/" }],
      ["onInvalid", { url: "https://example.com/stream", onInvalid: "reject" }],
    ],
  },
  {
    kind: polling,
    config: rows,
    refused: [
      ["itemId", { ...rows, itemId: "id" }],
      ["onInvalid", { ...rows, onInvalid: "reject" }],
    ],
  },
];

const SOURCES: readonly SourceSamples[] = [
  {
    kind: sse,
    async openUpstream() {
      const server = await startStreamServer();
      return {
        config: { url: server.url },
        add: server.make,
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    },
    numbersIn: ({ body }) => [JSON.parse(body.toString()).n + 1],
  },
  {
    kind: polling,
    async openUpstream() {
      const server = await PollUpstream.start();
      server.clear({ by: "seq" });
      const request = { url: `${server.origin}/rows`, query: { since: "{{cursor}}" } };
      return {
        config: { ...rows, request, itemsPath: "$.rows", startAt: "earliest" },
        add(count) {
          for (let at = 0; at < count; at++) server.insert();
        },
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    },
    numbersIn: ({ body }) =>
      JSON.parse(body.toString()).rows.flatMap((row: { readonly seq: number } | null) => row?.seq ?? []),
  },
];

it("every registered channel kind is covered by the conformance suite, and every one without an address by the source suite", () => {
  const kinds = [...channelKinds.values()];
  expect(new Set(CHANNELS.map(({ kind }) => kind))).toEqual(new Set(kinds));
  expect(new Set(SOURCES.map(({ kind }) => kind))).toEqual(
    new Set(kinds.filter(({ addressed }) => !addressed)),
  );
});

for (const samples of CHANNELS) describeChannelKind(samples);
for (const samples of SOURCES) describeSource(samples);
