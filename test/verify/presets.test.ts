import { describe, expect, it } from "vitest";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { fillPaths } from "../../src/event/definition.ts";
import type { VerifiedDelivery } from "../../src/event/received.ts";
import { compileRoutes, getRoutePlace } from "../../src/normalize/routes.ts";
import type { MatchedHandshake } from "../../src/verify/handshake/compile.ts";
import { createKeyCaches } from "../../src/verify/keys/key-cache.ts";
import { type Preset, readPresets } from "../../src/verify/presets.ts";
import { coversPlace, type Sender } from "../../src/verify/sender.ts";
import type { FailureReason } from "../../src/verify/verifier.ts";
import { type CompiledSender, compileSender } from "../../src/verify/verify.ts";
import { fieldOf, normalizeBody } from "../normalize/support.ts";
import type { Case, CaseKind, Expected } from "../vectors/verify/makers/kit.ts";
import { readVectors, type Vectors } from "./preset-vectors.ts";
import { HOOKS_URL, parseSender, requestOf, TARGET } from "./support.ts";

const presets = readPresets();
const vectors = readVectors();
const allCases = [...vectors.values()].flatMap(({ cases }) => cases);

/** Presets that do not bind the signed bytes, which contain the event id or may be equal for different events. */
const UNBOUND_PRESETS = [
  ...["adyen", "aftership", "aws-sns", "checkout-com", "circleci", "clickup", "coinbase-commerce"],
  ...["customer-io", "discourse", "dropbox", "dwolla", "gocardless", "grafana", "heroku", "intercom"],
  ...["klaviyo", "launchdarkly", "line", "mollie", "notion", "nylas", "orb", "pagerduty", "segment"],
  ...[
    "sendgrid",
    "sendgrid-inbound",
    "shopify",
    "square",
    "tally",
    "trello",
    "twilio",
    "typeform",
    "vercel",
    "webex",
  ],
  ...["websub", "woocommerce"],
];

const getBinding = (scheme: object): unknown => ("bindDedupe" in scheme ? scheme.bindDedupe : undefined);

interface TestChannel {
  readonly sender: Sender;
  readonly compiled: CompiledSender;
  /** Returns the reason that the same channel would report in shadow mode. */
  readonly findReason: () => Promise<FailureReason | undefined>;
}

/** Creates the channel of a case from its settings, as the gateway does. */
function createChannel({ preset, fetched = {} }: Vectors, testCase: Case): TestChannel {
  const config = { ...testCase.config, preset, secrets: testCase.secrets };
  const reasons: FailureReason[] = [];
  const keysOf = createKeyCaches(async (url) => {
    const text = fetched[url];
    if (text === undefined) throw new Error(`no response for ${url}`);
    return Buffer.from(text);
  });
  const deps = {
    hooksUrl: testCase.hooksUrl ?? HOOKS_URL,
    keys: keysOf("org_1"),
    onShadowed: (reason: FailureReason) => reasons.push(reason),
  };
  const sender = parseSender(config, presets);
  return {
    sender,
    compiled: compileSender(sender, deps),
    async findReason() {
      const shadowed = compileSender(parseSender({ ...config, shadow: true }, presets), deps);
      await shadowed.verify(requestIn(testCase));
      return reasons[0];
    },
  };
}

const requestIn = ({ request, arrivedAt }: Case) =>
  requestOf({ ...request, arrivedAtMs: Date.parse(arrivedAt) });

type Outcome =
  | { readonly kind: "handshake"; readonly handshake: MatchedHandshake }
  | { readonly kind: "delivery"; readonly delivery: VerifiedDelivery }
  | { readonly kind: "rejected"; readonly message: string };

/** Receives a case's request as the gateway would, starting with handshakes that need no verification. */
async function receive({ compiled }: TestChannel, testCase: Case): Promise<Outcome> {
  const request = requestIn(testCase);
  const open = compiled.findOpenHandshake?.(request);
  if (open) return { kind: "handshake", handshake: open };
  const verified = await compiled.verify(request);
  if (!verified.ok) return { kind: "rejected", message: verified.error.message };
  const handshake = compiled.findHandshake(request, verified.value);
  return handshake ? { kind: "handshake", handshake } : { kind: "delivery", delivery: verified.value };
}

async function deliveryOf(channel: TestChannel, testCase: Case) {
  const outcome = await receive(channel, testCase);
  if (outcome.kind !== "delivery") throw new Error(`no delivery: ${JSON.stringify(outcome)}`);
  return outcome;
}

async function expectAccepted(channel: TestChannel, testCase: Case, events: EventsOf<Expected> | undefined) {
  const outcome = await receive(channel, testCase);
  if (outcome.kind !== "delivery") return expect(outcome).toEqual({ kind: "delivery" });
  if (events === undefined) return;
  const { itemsPath, ...paths } = channel.sender.paths;
  const { delivery } = outcome;
  const normalized = normalizeBody(delivery.body, {
    definitions: fillPaths(
      [...new Set(events.map(({ type }) => type))].map((type) => ({ type })),
      paths,
    ),
    config: itemsPath === undefined ? {} : { itemsPath },
    delivery,
  });
  expect(normalized.failures).toEqual([]);
  const published = normalized.events.map((event) => ({
    type: fieldOf(event, "type"),
    id: fieldOf(event, "id"),
  }));
  expect(published).toEqual(
    events.map(({ type, id }) => ({
      type,
      id: id ?? expect.stringMatching(delivery.boundTo === undefined ? /^fresh_/ : /^[\w-]{43}\/\d+$/),
    })),
  );
}

type EventsOf<E> = E extends { readonly events: infer Events } ? Events : never;

async function expectReply(
  channel: TestChannel,
  testCase: Case,
  expected: Extract<Expected, { reply: unknown }>,
) {
  const outcome = await receive(channel, testCase);
  if (outcome.kind !== "handshake") return expect(outcome).toEqual({ kind: "handshake" });
  const { captured, visit, reply } = outcome.handshake;
  const expectedOf = (value: string | undefined) => (value === undefined ? undefined : { ok: true, value });
  expect({ captured, visit }).toEqual({
    captured: expectedOf(expected.captured),
    visit: expectedOf(expected.visit),
  });
  expect(reply()).toEqual({ ok: true, value: expected.reply });
}

async function check(vector: Vectors, testCase: Case): Promise<void> {
  const channel = createChannel(vector, testCase);
  const { expect: expected } = testCase;
  if ("events" in expected) return expectAccepted(channel, testCase, expected.events);
  if ("verified" in expected) return expectAccepted(channel, testCase, undefined);
  if ("reply" in expected) return expectReply(channel, testCase, expected);
  if ("handshake" in expected) return expect((await receive(channel, testCase)).kind).not.toBe("handshake");
  expect(await receive(channel, testCase)).toMatchObject({ kind: "rejected" });
  expect(await channel.findReason()).toBe(expected.refused);
}

describe.each([...vectors.values()])("the preset $preset", (vector) => {
  it.each(vector.cases)("passes its test vector: $name ($kind, $origin)", (testCase) =>
    check(vector, testCase));
});

/** Returns the kinds of cases that a preset with these settings must have. */
function requiredKinds({ verification, secret, handshakes }: Preset): readonly CaseKind[] {
  const settings = JSON.stringify(verification);
  const provesNoBody =
    /"scheme":"(?:none|token)"|"signsBody":false/.test(settings) ||
    (verification.scheme === "jwt" && !settings.includes('"bodyHash"'));
  return [
    "accept",
    ...(verification.scheme === "none" ? [] : (["altered"] as const)),
    ...(secret === null ? [] : (["wrong secret", "rotated"] as const)),
    ...(/"toleranceSeconds":|"standardWebhooks"|"maxAgeSeconds":|"requireExpiry":true/.test(settings)
      ? (["stale"] as const)
      : []),
    ...(provesNoBody ? (["uncovered"] as const) : []),
    ...(handshakes.length > 0 ? (["handshake"] as const) : []),
  ];
}

describe("the presets", () => {
  it("correspond one to one to the files of test vectors", () => {
    expect([...vectors.keys()].sort()).toEqual([...presets.keys()].sort());
    expect([...vectors].filter(([file, { preset }]) => file !== preset)).toEqual([]);
    const count = (expectedOrigin: Case["origin"]) =>
      allCases.filter(({ origin }) => origin === expectedOrigin).length;
    const [documented, computed] = [count("documented"), count("computed")];
    console.log(
      `${presets.size} presets, ${allCases.length} vectors (${documented} documented, ${computed} computed)`,
    );
  });

  it("each have a test vector for every kind of request that their settings distinguish", () => {
    const missing = [...presets.values()].flatMap((preset) => {
      const kinds = new Set(vectors.get(preset.preset)?.cases.map(({ kind }) => kind));
      return requiredKinds(preset).flatMap((kind) => (kinds.has(kind) ? [] : [`${preset.preset}: ${kind}`]));
    });
    expect(missing).toEqual([]);
  });

  it("each have a test vector for every handshake (URL verification request)", async () => {
    const unhandled: string[] = [];
    for (const { preset, handshakes } of presets.values()) {
      const vector = vectors.get(preset);
      const replied = vector?.cases.filter(({ expect: expected }) => "reply" in expected) ?? [];
      for (const handshake of handshakes) {
        const kinds = replied.map(async (testCase) => {
          const single = { ...testCase, config: { ...testCase.config, handshakes: [handshake] } };
          return vector && (await receive(createChannel(vector, single), single)).kind;
        });
        if (!(await Promise.all(kinds)).includes("handshake"))
          unhandled.push(`${preset}: ${handshake.title}`);
      }
    }
    expect(unhandled).toEqual([]);
  });

  it("each document replay protection if signatures never expire, and dedupe by the signed bytes unless exempted", () => {
    const isUnlimited = (scheme: object): boolean =>
      /"scheme":"(?:hmac|asymmetric|jwt)"/.test(JSON.stringify(scheme)) &&
      !/"toleranceSeconds":|"maxAgeSeconds":|"requireExpiry":true/.test(JSON.stringify(scheme));
    const unlimited = [...presets.values()].filter(({ verification }) =>
      "of" in verification ? (verification.of as object[]).some(isUnlimited) : isUnlimited(verification),
    );
    expect(unlimited.length).toBeGreaterThan(60);
    expect(unlimited.filter(({ replays }) => replays === undefined).map(({ preset }) => preset)).toEqual([]);
    const isUnbound = (scheme: object): boolean =>
      "of" in scheme
        ? (scheme.of as object[]).some(isUnbound)
        : isUnlimited(scheme) && getBinding(scheme) !== "signedBytes";
    const unbound = unlimited.filter(({ verification }) => isUnbound(verification));
    expect(unbound.map(({ preset }) => preset).sort()).toEqual(UNBOUND_PRESETS);
  });

  it("each have a sample request that yields events and contains no signature header", async () => {
    for (const { preset, sample } of presets.values()) {
      const vector = vectors.get(preset);
      const testCase = vector?.cases.find(({ kind }) => kind === "accept");
      if (vector === undefined || testCase === undefined || !("events" in testCase.expect))
        throw new Error(preset);
      const query = new URLSearchParams(sample.query).toString();
      const request = { headers: sample.headers, target: `${TARGET}?${query}`, body: sample.body };
      const shadowCase = { ...testCase, request, config: { ...testCase.config, shadow: true } };
      const channel = createChannel(vector, shadowCase);
      const { delivery } = await deliveryOf(channel, shadowCase);
      expect(Object.keys(delivery.headers), preset).toEqual(Object.keys(sample.headers));
      await expectAccepted(channel, shadowCase, testCase.expect.events);
    }
  });

  it("each have route keys in the sample, which the verification signs unless the preset says otherwise", () => {
    const routed = [...presets.values()].filter(({ intake }) => intake !== undefined);
    expect(routed.length).toBeGreaterThan(15);
    for (const { preset, intake, itemsPath, sample, readAs } of routed) {
      const { routeBy = [], trustUnsigned = false } = intake ?? {};
      const compiled = compileRoutes(webhook.profile, {}, routeBy);
      if (!compiled.ok) throw new Error(preset);
      const sender = parseSender({ preset }, presets);
      const isSigned = compiled.value.every((path) => coversPlace(sender, getRoutePlace(path)));
      expect([preset, isSigned]).toEqual([preset, !trustUnsigned]);
      const items = intake?.itemsPath ?? itemsPath;
      const keysBy = (path: string) =>
        normalizeBody(sample.body, {
          definitions: [{ type: "any", typePath: null, idPath: path }],
          config: { ...(items !== undefined && { itemsPath: items }), ...(readAs && { readAs }) },
          delivery: { headers: sample.headers, query: sample.query },
        });
      const found = routeBy.map(keysBy).find(({ failures }) => failures.length === 0);
      expect([preset, found?.events.length ?? 0]).not.toEqual([preset, 0]);
    }
  });

  it("cite a source for exactly those test vectors that come from documentation", () => {
    const unsourced = allCases.filter(
      ({ origin, source }) => (origin === "documented") !== (source !== undefined),
    );
    expect(unsourced).toEqual([]);
  });
});
