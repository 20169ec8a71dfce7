import { describe, expect, it } from "vitest";
import { fillPaths } from "../../src/event/definition.ts";
import type { VerifiedDelivery } from "../../src/event/received.ts";
import type { MatchedHandshake } from "../../src/verify/handshake/compile.ts";
import { createKeyCaches } from "../../src/verify/keys/key-cache.ts";
import { type Preset, readPresets } from "../../src/verify/presets.ts";
import type { Sender } from "../../src/verify/sender.ts";
import type { FailureReason } from "../../src/verify/verifier.ts";
import { type CompiledSender, compileSender } from "../../src/verify/verify.ts";
import { fieldOf, normalizeBody } from "../normalize/support.ts";
import type { Case, CaseKind, Expected } from "../vectors/verify/makers/kit.ts";
import { readVectors, type Vectors } from "./preset-vectors.ts";
import { HOOKS_URL, parseSender, requestOf, TARGET } from "./support.ts";

const presets = readPresets();
const vectors = readVectors();
const allCases = [...vectors.values()].flatMap(({ cases }) => cases);

/** Those whose signed bytes hold the event's id, or may come again as another event. */
const REPLAYS_TAKEN = [
  ...["adyen", "aftership", "aws-sns", "checkout-com", "circleci", "clickup", "coinbase-commerce"],
  ...["customer-io", "discourse", "dropbox", "dwolla", "gocardless", "grafana", "heroku", "intercom"],
  ...["klaviyo", "launchdarkly", "line", "mollie", "notion", "nylas", "orb", "pagerduty", "segment"],
  ...["sendgrid", "shopify", "square", "tally", "trello", "twilio", "typeform", "vercel", "webex"],
  ...["websub", "woocommerce"],
];

const bindingOf = (way: object): unknown => ("bindDedupe" in way ? way.bindDedupe : undefined);

interface Met {
  readonly sender: Sender;
  readonly compiled: CompiledSender;
  /** Why the request would be refused, as the same channel tells it in shadow mode. */
  readonly findReason: () => Promise<FailureReason | undefined>;
}

/** The channel of a case, made as the gateway makes it of its settings. */
function meet({ preset, fetched = {} }: Vectors, one: Case): Met {
  const config = { ...one.config, preset, secrets: one.secrets };
  const reasons: FailureReason[] = [];
  const keysOf = createKeyCaches(async (url) => {
    const text = fetched[url];
    if (text === undefined) throw new Error(`nothing stands at ${url}`);
    return Buffer.from(text);
  });
  const deps = {
    hooksUrl: one.hooksUrl ?? HOOKS_URL,
    keys: keysOf("org_1"),
    onShadowed: (why: FailureReason) => reasons.push(why),
  };
  const sender = parseSender(config, presets);
  return {
    sender,
    compiled: compileSender(sender, deps),
    async findReason() {
      const trying = compileSender(parseSender({ ...config, shadow: true }, presets), deps);
      await trying.verify(requestIn(one));
      return reasons[0];
    },
  };
}

const requestIn = ({ request, arrivedAt }: Case) =>
  requestOf({ ...request, arrivedAtMs: Date.parse(arrivedAt) });

type Outcome =
  | { readonly kind: "handshake"; readonly handshake: MatchedHandshake }
  | { readonly kind: "delivery"; readonly delivery: VerifiedDelivery }
  | { readonly kind: "refused"; readonly message: string };

/** As the gateway does it: handshakes that need no verification come first. */
async function receive({ compiled }: Met, one: Case): Promise<Outcome> {
  const request = requestIn(one);
  const open = compiled.findOpenHandshake(request);
  if (open) return { kind: "handshake", handshake: open };
  const verified = await compiled.verify(request);
  if (!verified.ok) return { kind: "refused", message: verified.error.message };
  const handshake = compiled.findHandshake(request, verified.value);
  return handshake ? { kind: "handshake", handshake } : { kind: "delivery", delivery: verified.value };
}

async function deliveryOf(met: Met, one: Case) {
  const outcome = await receive(met, one);
  if (outcome.kind !== "delivery") throw new Error(`no delivery: ${JSON.stringify(outcome)}`);
  return outcome;
}

async function expectAccepted(met: Met, one: Case, events: EventsOf<Expected> | undefined) {
  const outcome = await receive(met, one);
  if (outcome.kind !== "delivery") return expect(outcome).toEqual({ kind: "delivery" });
  if (events === undefined) return;
  const { itemsPath, ...paths } = met.sender.paths;
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

async function expectAnswered(met: Met, one: Case, expected: Extract<Expected, { reply: unknown }>) {
  const outcome = await receive(met, one);
  if (outcome.kind !== "handshake") return expect(outcome).toEqual({ kind: "handshake" });
  const { captured, visit, reply } = outcome.handshake;
  const expectedOf = (value: string | undefined) => (value === undefined ? undefined : { ok: true, value });
  expect({ captured, visit }).toEqual({
    captured: expectedOf(expected.captured),
    visit: expectedOf(expected.visit),
  });
  expect(reply()).toEqual({ ok: true, value: expected.reply });
}

async function check(vector: Vectors, one: Case): Promise<void> {
  const met = meet(vector, one);
  const { expect: expected } = one;
  if ("events" in expected) return expectAccepted(met, one, expected.events);
  if ("verified" in expected) return expectAccepted(met, one, undefined);
  if ("reply" in expected) return expectAnswered(met, one, expected);
  if ("handshake" in expected) return expect((await receive(met, one)).kind).not.toBe("handshake");
  expect(await receive(met, one)).toMatchObject({ kind: "refused" });
  expect(await met.findReason()).toBe(expected.refused);
}

describe.each([...vectors.values()])("the preset $preset", (vector) => {
  it.each(vector.cases)("$kind: $name ($origin)", (one) => check(vector, one));
});

/** The kinds of cases that a preset must have, by its settings. */
function neededBy({ verification, secret, handshakes }: Preset): readonly CaseKind[] {
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
  it("each have a file of vectors, and each file has its preset", () => {
    expect([...vectors.keys()].sort()).toEqual([...presets.keys()].sort());
    expect([...vectors].filter(([file, { preset }]) => file !== preset)).toEqual([]);
    const counted = (wanted: Case["origin"]) => allCases.filter(({ origin }) => origin === wanted).length;
    const [documented, computed] = [counted("documented"), counted("computed")];
    console.log(
      `${presets.size} presets, ${allCases.length} vectors (${documented} documented, ${computed} computed)`,
    );
  });

  it("each have a vector of every kind that their settings call for", () => {
    const lacking = [...presets.values()].flatMap((preset) => {
      const kinds = new Set(vectors.get(preset.preset)?.cases.map(({ kind }) => kind));
      return neededBy(preset).flatMap((kind) => (kinds.has(kind) ? [] : [`${preset.preset}: ${kind}`]));
    });
    expect(lacking).toEqual([]);
  });

  it("each have a vector for every handshake", async () => {
    const unanswered: string[] = [];
    for (const { preset, handshakes } of presets.values()) {
      const vector = vectors.get(preset);
      const answered = vector?.cases.filter(({ expect: expected }) => "reply" in expected) ?? [];
      for (const handshake of handshakes) {
        const kinds = answered.map(async (one) => {
          const alone = { ...one, config: { ...one.config, handshakes: [handshake] } };
          return vector && (await receive(meet(vector, alone), alone)).kind;
        });
        if (!(await Promise.all(kinds)).includes("handshake"))
          unanswered.push(`${preset}: ${handshake.title}`);
      }
    }
    expect(unanswered).toEqual([]);
  });

  it("each decide on replays, and say why, where no time limits a signature: those that are not listed bind the signed bytes", () => {
    const isUnlimited = (way: object): boolean =>
      /"scheme":"(?:hmac|asymmetric|jwt)"/.test(JSON.stringify(way)) &&
      !/"toleranceSeconds":|"maxAgeSeconds":|"requireExpiry":true/.test(JSON.stringify(way));
    const unlimited = [...presets.values()].filter(({ verification }) =>
      "of" in verification ? (verification.of as object[]).some(isUnlimited) : isUnlimited(verification),
    );
    expect(unlimited.length).toBeGreaterThan(60);
    expect(unlimited.filter(({ replays }) => replays === undefined).map(({ preset }) => preset)).toEqual([]);
    const isFree = (way: object): boolean =>
      "of" in way ? (way.of as object[]).some(isFree) : isUnlimited(way) && bindingOf(way) !== "signedBytes";
    const free = unlimited.filter(({ verification }) => isFree(verification));
    expect(free.map(({ preset }) => preset).sort()).toEqual(REPLAYS_TAKEN);
  });

  it("each have a sample that gives the events of its provider, and holds no header by which it is verified", async () => {
    for (const { preset, sample } of presets.values()) {
      const vector = vectors.get(preset);
      const one = vector?.cases.find(({ kind }) => kind === "accept");
      if (vector === undefined || one === undefined || !("events" in one.expect)) throw new Error(preset);
      const query = new URLSearchParams(sample.query).toString();
      const request = { headers: sample.headers, target: `${TARGET}?${query}`, body: sample.body };
      const trying = { ...one, request, config: { ...one.config, shadow: true } };
      const met = meet(vector, trying);
      const { delivery } = await deliveryOf(met, trying);
      expect(Object.keys(delivery.headers), preset).toEqual(Object.keys(sample.headers));
      await expectAccepted(met, trying, one.expect.events);
    }
  });

  it("give the source of each documented vector, and of no computed one", () => {
    const unsourced = allCases.filter(
      ({ origin, source }) => (origin === "documented") !== (source !== undefined),
    );
    expect(unsourced).toEqual([]);
  });
});
