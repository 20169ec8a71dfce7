import { z } from "zod";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { type BodyReading, DEFAULT_READING } from "../../src/event/body-reading.ts";
import { type ChannelIdentity, commonFields } from "../../src/event/channel.ts";
import type { Definition } from "../../src/event/definition.ts";
import type { OutgoingEvent } from "../../src/event/event.ts";
import type { VerifiedDelivery } from "../../src/event/received.ts";
import type { CompiledSchema } from "../../src/lib/json-schema/compiled-schema.ts";
import {
  type NormalizeDeps,
  type Normalized,
  normalize,
  type Selection,
} from "../../src/normalize/normalize.ts";
import { compileRules, type RuleSet } from "../../src/normalize/rule-set.ts";

export type Settings = z.input<z.ZodObject<typeof commonFields>>;

export const channel: ChannelIdentity = {
  number: 1,
  uid: "hook",
  kind: "webhook",
  appId: "app_1",
  organizationId: "org_1",
};

export const settings = (changes: Settings = {}) => z.strictObject(commonFields).parse(changes);

export const rulesOf = (definitions: readonly Definition[], changes: Settings = {}): RuleSet =>
  compileWith(DEFAULT_READING, definitions, changes);

/** Like `rulesOf`, for a channel that reads its bodies in another way. */
export function compileWith(
  reading: BodyReading,
  definitions: readonly Definition[],
  changes: Settings = {},
): RuleSet {
  const compiled = compileRules({
    channel,
    profile: webhook.profile,
    config: settings(changes),
    definitions,
    reading,
  });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
  return compiled.value;
}

export function deliveryOf(body: unknown, changes: Partial<VerifiedDelivery> = {}): VerifiedDelivery {
  const isRaw = typeof body === "string" || Buffer.isBuffer(body);
  return {
    method: "POST",
    headers: {},
    query: {},
    body: Buffer.from(isRaw ? body : JSON.stringify(body)),
    arrivedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    ...changes,
  };
}

export type Outcome = Extract<Normalized, { kind: "normalized" }>;

export interface Given {
  readonly definitions: readonly Definition[];
  readonly config?: Settings;
  readonly delivery?: Partial<VerifiedDelivery>;
  readonly validatorFor?: NormalizeDeps["validatorFor"];
  readonly only?: Selection;
}

const acceptingSchema: CompiledSchema = { validate: () => undefined };

export function normalizeBody(body: unknown, given: Given): Outcome {
  const outcome = start(body, given);
  if (outcome instanceof Promise || outcome.kind !== "normalized")
    throw new Error("not normalized synchronously");
  return outcome;
}

export function start(body: unknown, given: Given): Normalized | Promise<Normalized> {
  const { config, definitions, delivery, only, validatorFor = () => acceptingSchema } = given;
  let ids = 0;
  const deps = { validatorFor, newEventId: () => `fresh_${++ids}` };
  return normalize(rulesOf(definitions, config), deliveryOf(body, delivery), deps, only);
}

export function fieldOf(event: OutgoingEvent | undefined, name: string): string | undefined {
  if (event === undefined) return undefined;
  for (let at = 0; at < event.fields.length; at += 2)
    if (event.fields[at] === name) return event.fields[at + 1];
  return undefined;
}

export const dataOf = (outcome: Outcome): (string | undefined)[] =>
  outcome.events.map((event) => fieldOf(event, "data") ?? fieldOf(event, "data_base64"));

export const all = { definitions: [{ type: "all" }] };
export const byId: Given = { definitions: [{ type: "all", idPath: "$.id" }] };
export const typed = (contentType: string) => ({ headers: { "content-type": contentType } });
