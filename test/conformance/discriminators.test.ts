import { expect, it } from "vitest";
import { DISCRIMINATORS } from "../../src/channels/polling/discriminators/discriminators.ts";
import { type DiscriminatorSamples, describeDiscriminator } from "./discriminator.suite.ts";

const since = { since: "{{cursor}}" };
const next = { by: "cursorToken", path: "$.next", name: "token" } as const;
const start = (value: string) => ({ startAt: { value } });

const SAMPLES: readonly DiscriminatorSamples[] = [
  {
    config: { by: "timestamp", path: "$.at" },
    path: "/rows",
    query: since,
    view: { by: "at", paging: "cursorToken" },
    paged: next,
    refused: [
      ["discriminator.path", { by: "timestamp", path: "at" }],
      ["discriminator.path", { by: "timestamp", path: "$query.at" }],
      ["startAt.value", { by: "timestamp", path: "$.at" }, start("yesterday")],
    ],
  },
  {
    config: { by: "sequence", path: "$.seq" },
    path: "/rows",
    query: since,
    view: { by: "seq", paging: "cursorToken" },
    paged: next,
    refused: [
      ["discriminator.lookBack", { by: "sequence", path: "$.seq", compare: "text", lookBack: 1 }],
      ["startAt.value", { by: "sequence", path: "$.seq" }, start("x")],
      ["order", { by: "sequence", path: "$.seq" }, { order: "unordered", pagination: undefined }],
    ],
  },
  {
    config: { by: "seenSet" },
    path: "/rows",
    view: { showsAll: true, paging: "cursorToken" },
    paged: next,
    refused: [
      ["discriminator.key", { by: "seenSet", key: "id" }],
      ["startAt.value", { by: "seenSet" }, start("1")],
    ],
  },
  {
    config: { by: "token", path: "$.delta" },
    path: "/changes",
    query: { token: "{{cursor}}" },
    paged: next,
    refused: [
      ["discriminator.path", { by: "token" }],
      ["discriminator.path", { by: "token", path: "$.delta", header: "next" }],
      ["discriminator.expiredOn.path", { by: "token", path: "$.delta", expiredOn: { path: "$.e" } }],
      ["request", { by: "token", path: "$.delta" }, { request: { url: "https://api.example.com/" } }],
      ["order", { by: "token", path: "$.delta" }, { order: "descending" }],
    ],
  },
  {
    config: { by: "etag" },
    path: "/document",
    refused: [
      ["pagination", { by: "etag" }, { pagination: { by: "linkHeader" } }],
      ["startAt.value", { by: "etag" }, start("1")],
    ],
  },
];

it("every registered discriminator (the rule that tells new items of a poll) is covered by the conformance suite", () => {
  expect(SAMPLES.map(({ config }) => config.by).toSorted()).toEqual([...DISCRIMINATORS.keys()].toSorted());
});

for (const samples of SAMPLES) describeDiscriminator(samples);
