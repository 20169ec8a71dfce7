import { beforeEach, describe, expect, it } from "vitest";
import { channelKinds } from "../../src/channels/kinds.ts";
import type { StoredChannel } from "../../src/data/channels/stored-channels.ts";
import type { Definition } from "../../src/event/definition.ts";
import { type CompiledChannel, createCompileChannel } from "../../src/ingest/compile-channel.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { getRuleTopic } from "../../src/normalize/entry.ts";
import { createPathCache } from "../../src/normalize/paths/jsonpath.ts";
import { sharedPresets } from "../support/presets.ts";

const DEFINITIONS: readonly Definition[] = [
  { type: "push", typePath: "$headers['x-type']" },
  { type: "a b", idPath: "$.id" },
];
const GITHUB = { preset: "github", verification: { scheme: "preset" } };

let askedFor: string[];
let compile: (stored: StoredChannel) => CompiledChannel;
beforeEach(() => {
  askedFor = [];
  compile = createCompileChannel({
    baseUrl: "http://inlet.example/v1",
    hooksUrl: "http://hooks.example",
    keysOf(organizationId) {
      askedFor.push(organizationId);
      return { get: () => [], renew: async () => undefined };
    },
    channelKinds,
    pathsOf: createPathCache(100),
    presets: sharedPresets(),
    onShadowed() {},
  });
});

const stored = (number: number, changes: Partial<StoredChannel> = {}): StoredChannel => ({
  identity: { number, uid: `hook-${number}`, kind: "webhook", appId: "app_1", organizationId: "org_1" },
  version: 1,
  state: "active",
  pause: undefined,
  config: {},
  definitions: structuredClone(DEFINITIONS),
  topics: new Map(),
  schemaVersions: new Map(),
  connectionId: null,
  dedupeChange: undefined,
  ...changes,
});

const topicsOf = ({ rules }: CompiledChannel): readonly string[] =>
  [...rules.always, ...rules.groups.flatMap(({ byType }) => [...byType.values()])].map((rule) =>
    getRuleTopic(rules, rule),
  );

describe("the compiled rules of two channels", () => {
  it("share definitions and verification only if the settings and event definitions of the channels are equal", () => {
    const first = compile(stored(1));
    const second = compile(stored(2));
    expect(second.kindConfig).toEqual(first.kindConfig);
    expect(second.sender).toBe(first.sender);
    expect(second.rules.groups).toBe(first.rules.groups);
    expect(second.shares?.slice(0, 2)).toEqual(first.shares?.slice(0, 2));
    expect(second.identity.uid).toBe("hook-2");
    expect(second.sampling).not.toBe(first.sampling);
    const other = compile(stored(3, { config: { onInvalid: "reject" } }));
    expect(other.config.onInvalid).toBe("reject");
    expect(other.rules.config.onInvalid).toBe("reject");
    const ignoring = (path: string) =>
      compile(stored(5, { config: { dedupe: { by: "content", ignore: [path] } } })).rules.ignored;
    expect([first.rules.ignored, ignoring("$.a"), ignoring("$.b")]).toMatchObject([
      undefined,
      [{ text: "$.a" }],
      [{ text: "$.b" }],
    ]);
    const less = compile(stored(4, { definitions: DEFINITIONS.slice(1) }));
    expect(less.rules.groups).toEqual([]);
  });

  it("share the event definitions, signature verification and unchanged settings if a single setting differs", () => {
    const [first, second] = [61, 62].map((expectEverySeconds, index) =>
      compile(stored(index, { config: { expectEverySeconds } })),
    );
    expect(second?.config.expectEverySeconds).toBe(62);
    expect(second?.rules.config.expectEverySeconds).toBe(62);
    expect(second?.rules.groups).toBe(first?.rules.groups);
    expect(second?.sender).toBe(first?.sender);
    expect(second?.config.retention).toBe(first?.config.retention);
  });

  it("do not share event definitions if the channels' settings interpret these definitions differently", () => {
    const definitions = [{ type: "a", idPath: "$.id" }];
    const [plain, plus, items] = [{}, { pathSyntax: "jsonpath-plus" }, { itemsPath: "$.items" }].map(
      (config, index) => compile(stored(index, { config, definitions })),
    );
    expect(plus?.rules.always).not.toBe(plain?.rules.always);
    expect(items?.rules.itemsPath).toBeDefined();
    expect(plain?.rules.itemsPath).toBeUndefined();
  });

  it("publish to different topics, even if they share event definitions", () => {
    expect([stored(1), stored(2)].map(compile).map(topicsOf)).toEqual([
      [
        "events.org_1.apps.app.event_received.app_1.hook-1.a%20b",
        "events.org_1.apps.app.event_received.app_1.hook-1.push",
      ],
      [
        "events.org_1.apps.app.event_received.app_1.hook-2.a%20b",
        "events.org_1.apps.app.event_received.app_1.hook-2.push",
      ],
    ]);
    const older = compile(stored(3, { topics: new Map([["a b", "named.before.a b"]]) }));
    expect(topicsOf(older)).toEqual([
      "named.before.a b",
      "events.org_1.apps.app.event_received.app_1.hook-3.push",
    ]);
  });

  it("never contain the secrets of the other channel, even if they share event definitions", () => {
    const [first, second] = ["secret-one", "secret-two"].map((value, index) =>
      compile(stored(index, { config: { ...GITHUB, secrets: [{ value }] } })),
    );
    expect(second?.rules.groups).toBe(first?.rules.groups);
    expect(second?.sender).not.toBe(first?.sender);
    expect(JSON.stringify(second?.kindConfig)).toContain("secret-two");
    expect(JSON.stringify(second?.rules)).not.toMatch(/secret-(one|two)/);
  });

  it("use separate signature verifiers if the verification keys are fetched from a URL", async () => {
    compile(stored(1));
    compile(stored(2, { config: { ...GITHUB, secrets: [{ value: "a-secret" }] } }));
    expect(askedFor).toEqual([]);
    const keys = { from: "url", url: "https://keys.example/jwks" };
    const verification = { scheme: "jwt", keys, algorithms: ["RS256"], issuer: "i", audience: "a" };
    const [third, fourth] = [3, 4].map((number) => compile(stored(number, { config: { verification } })));
    expect(askedFor).toEqual(["org_1", "org_1"]);
    expect(fourth?.sender).not.toBe(third?.sender);
    expect(fourth?.config.limits).toBe(third?.config.limits);
  });

  it("cannot be compiled if the stored settings are no longer valid, and the error names the channel", () => {
    const wrong = (number: number) => () => compile(stored(number, { config: { preset: "gone" } }));
    expect(wrong(7)).toThrow(UnavailableError);
    expect(wrong(7)).toThrow("channel 7");
    expect(wrong(8)).toThrow("channel 8");
    expect(() => compile(stored(9, { definitions: [{ type: "x", idPath: "$[" }] }))).toThrow("channel 9");
  });
});
