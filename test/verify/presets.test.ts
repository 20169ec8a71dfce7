import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { fillPaths } from "../../src/event/definition.ts";
import { createKeyCache } from "../../src/verify/keys/key-cache.ts";
import { type Preset, readPresets } from "../../src/verify/presets.ts";
import type { Sender } from "../../src/verify/sender.ts";
import type { RefusalReason } from "../../src/verify/verifier.ts";
import { type CompiledSender, compileSender } from "../../src/verify/verify.ts";
import { fieldOf, normalizeBody } from "../normalize/support.ts";
import type { Case, CaseKind, Expected } from "../vectors/verify/makers/kit.ts";
import { HOOKS_URL, parseSender, requestOf } from "./support.ts";

interface Vectors {
  readonly preset: string;
  readonly source: string;
  /** What is fetched, by address. */
  readonly fetched?: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

const FOLDER = new URL("../vectors/verify/presets/", import.meta.url);
const presets = readPresets();
const vectors: ReadonlyMap<string, Vectors> = new Map(
  readdirSync(FOLDER).map((file) => [
    basename(file, ".json"),
    JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")),
  ]),
);
const allCases = [...vectors.values()].flatMap(({ cases }) => cases);

interface Met {
  readonly sender: Sender;
  readonly compiled: CompiledSender;
  /** Of the same channel, were it to try its settings out: why the request would be refused. */
  readonly findReason: () => Promise<RefusalReason | undefined>;
}

/** The channel of a case, as the gateway makes it of what is set. */
function meet({ preset, fetched = {} }: Vectors, one: Case): Met {
  const config = { ...one.config, preset, secrets: one.secrets };
  const reasons: RefusalReason[] = [];
  const keys = createKeyCache(async (url) => {
    const text = fetched[url];
    if (text === undefined) throw new Error(`nothing stands at ${url}`);
    return Buffer.from(text);
  });
  const deps = {
    hooksUrl: () => one.hooksUrl ?? HOOKS_URL,
    keys,
    onShadowed: (why: RefusalReason) => reasons.push(why),
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

async function expectAccepted(met: Met, one: Case, events: EventsOf<Expected> | undefined) {
  const request = requestIn(one);
  expect(met.compiled.findHandshake(request)).toBeUndefined();
  const verified = await met.compiled.verify(request);
  if (!verified.ok) throw new Error(verified.error.message);
  if (events === undefined) return;
  const { itemsPath, ...paths } = met.sender.paths;
  const outcome = normalizeBody(request.body, {
    definitions: fillPaths(
      [...new Set(events.map(({ type }) => type))].map((type) => ({ type })),
      paths,
    ),
    config: itemsPath === undefined ? {} : { itemsPath },
    delivery: verified.value,
  });
  expect(outcome.failures).toEqual([]);
  const published = outcome.events.map((event) => ({
    type: fieldOf(event, "type"),
    id: fieldOf(event, "id"),
  }));
  expect(published).toEqual(
    events.map(({ type, id }) => ({ type, id: id ?? expect.stringMatching(/^fresh_/) })),
  );
}

type EventsOf<E> = E extends { readonly events: infer Events } ? Events : never;

async function expectAnswered(met: Met, one: Case, expected: Extract<Expected, { reply: unknown }>) {
  const request = requestIn(one);
  const handshake = met.compiled.findHandshake(request);
  expect(handshake).toBeDefined();
  if (handshake?.requireVerified) expect((await met.compiled.verify(request)).ok).toBe(true);
  expect(handshake?.captured).toEqual(expected.captured && { ok: true, value: expected.captured });
  expect(handshake?.visit).toEqual(expected.visit && { ok: true, value: expected.visit });
  expect(handshake?.reply()).toEqual({ ok: true, value: expected.reply });
}

async function check(vector: Vectors, one: Case): Promise<void> {
  const met = meet(vector, one);
  const { expect: expected } = one;
  if ("events" in expected) return expectAccepted(met, one, expected.events);
  if ("verified" in expected) return expectAccepted(met, one, undefined);
  if ("reply" in expected) return expectAnswered(met, one, expected);
  if ("handshake" in expected) {
    const handshake = met.compiled.findHandshake(requestIn(one));
    if (expected.handshake === "none") return expect(handshake).toBeUndefined();
    expect(handshake?.requireVerified).toBe(true);
    return expect((await met.compiled.verify(requestIn(one))).ok).toBe(false);
  }
  expect((await met.compiled.verify(requestIn(one))).ok).toBe(false);
  expect(await met.findReason()).toBe(expected.refused);
}

describe.each([...vectors.values()])("the preset $preset", (vector) => {
  it.each(vector.cases)("$kind: $name ($origin)", (one) => check(vector, one));
});

/** The sorts of cases that a preset must have, by what it says of itself. */
function neededBy({ verification, secret, handshakes }: Preset): readonly CaseKind[] {
  const settings = JSON.stringify(verification);
  return [
    "accept",
    ...(verification.scheme === "none" ? [] : (["altered"] as const)),
    ...(secret === null ? [] : (["wrong secret", "rotated"] as const)),
    ...(/"toleranceSeconds":|"standardWebhooks"|"maxAgeSeconds":/.test(settings) ? (["stale"] as const) : []),
    ...(/"scheme":"(?:none|token)"|"signsBody":false/.test(settings) ? (["uncovered"] as const) : []),
    ...(handshakes.length > 0 ? (["handshake"] as const) : []),
  ];
}

describe("the presets", () => {
  it("have a file of vectors each, and no vector is without its preset", () => {
    expect([...vectors.keys()].sort()).toEqual([...presets.keys()].sort());
    expect([...vectors].filter(([file, { preset }]) => file !== preset)).toEqual([]);
    const counted = (wanted: Case["origin"]) => allCases.filter(({ origin }) => origin === wanted).length;
    const [documented, computed] = [counted("documented"), counted("computed")];
    console.log(
      `${presets.size} presets, ${allCases.length} vectors (${documented} documented, ${computed} computed)`,
    );
  });

  it("show what they accept, what they refuse, and what they leave unproved", () => {
    const lacking = [...presets.values()].flatMap((preset) => {
      const kinds = new Set(vectors.get(preset.preset)?.cases.map(({ kind }) => kind));
      return neededBy(preset).flatMap((kind) => (kinds.has(kind) ? [] : [`${preset.preset}: ${kind}`]));
    });
    expect(lacking).toEqual([]);
  });

  it("answer each of their handshakes in a vector", () => {
    const unanswered = [...presets.values()].flatMap(({ preset, handshakes }) => {
      const vector = vectors.get(preset);
      const answered = vector?.cases.filter(({ expect: expected }) => "reply" in expected) ?? [];
      return handshakes.flatMap(({ title }, index) => {
        const alone = { handshakes: handshakes.slice(index, index + 1) };
        const fits = answered.some(
          (one) =>
            vector &&
            meet(vector, { ...one, config: { ...one.config, ...alone } }).compiled.findHandshake(
              requestIn(one),
            ),
        );
        return fits ? [] : [`${preset}: ${title}`];
      });
    });
    expect(unanswered).toEqual([]);
  });

  it("say where each published vector is published", () => {
    const unsourced = allCases.filter(
      ({ origin, source }) => (origin === "documented") !== (source !== undefined),
    );
    expect(unsourced).toEqual([]);
  });
});
