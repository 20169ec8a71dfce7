import { createHash } from "node:crypto";
import { z } from "zod";
import { type CursorOwner, hashCursorOwner } from "../../bus/topics/event-cursors.ts";
import type { Database } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import {
  deleteAgentSubscription,
  MAX_PER_PRINCIPAL,
  RefusedAgentError,
  saveAgentSubscription,
} from "../../data/subscriptions/agent-subscriptions.ts";
import { isSigningSecret } from "../../event/handler-request.ts";
import type { Log } from "../../log.ts";
import { type CallbackDeps, checkCallbackUrl, confirmCallback } from "./confirm-callback.ts";
import { argumentsSchema, type EventsCaller, type EventsDeps, followParams, locate } from "./events.ts";
import { EventsError } from "./revision.ts";

export interface SubscribeDeps extends EventsDeps, CallbackDeps {
  readonly db: Database["db"];
  readonly keyring: Keyring;
  readonly log: Log;
}

const MAX_URL_CHARS = 2_048;
const TTL_MS = { min: 60_000, default: 3_600_000, max: 86_400_000 } as const;

const url = z.string().max(MAX_URL_CHARS);

export const subscribeParams = followParams.extend({
  delivery: z.looseObject({ mode: z.string() }),
  /** Requested lifetime in ms. `null` requests the longest one. */
  ttlMs: z.number().nullish(),
});

const webhookSchema = z.looseObject({
  url,
  secret: z.string().refine(isSigningSecret, "must be whsec_ followed by the base64 of 24 to 64 bytes"),
});

export const unsubscribeParams = z.looseObject({
  name: z.string(),
  arguments: argumentsSchema.default({}),
  delivery: z.looseObject({ url }),
});

/**
 * Subscribes a callback URL to an event type, or extends the subscription (`events/subscribe`). Equal requests of a caller refer to one
 * subscription.
 *
 * @throws EventsError -32602 for invalid parameters, -32011 for an unknown name, and -32012 if the caller has lost its permissions
 * @throws EventsError -32013 for too many subscriptions, and -32014 for another delivery mode than `webhook`
 * @throws EventsError -32015 if the callback URL does not answer the challenge
 */
export async function subscribe(
  deps: SubscribeDeps,
  caller: EventsCaller,
  params: z.output<typeof subscribeParams>,
) {
  const { db, keyring, clock, log } = deps;
  const { url, secret } = parseWebhook(params.delivery);
  await checkCallbackUrl(deps, url);
  const { type, owner, start, seal } = await locate(deps, caller, params);
  const { isTruncated } = await deps.reader.readAfter(type.topic, start.position, { entries: 1, bytes: 1 });
  const agentId = idOf(owner, url);
  await confirmCallback(deps, caller, { url, agentId, secrets: { current: secret } });
  const nowMs = clock();
  const expiresAtMs = nowMs + ttlOf(params.ttlMs);
  const { after, appended = null } = start.position;
  const { author, principal } = caller;
  const { keyId, accountId } = author;
  const saved = await saveAgentSubscription(
    db,
    keyring,
    author,
    {
      ...{ agentId, principal, secret, expiresAtMs },
      appId: type.appId,
      eventUid: `${type.channelUid}:${type.definition.type}`,
      agent: { name: owner.name, arguments: owner.args, url, keyId, accountId, start: { after, appended } },
    },
    nowMs,
  ).catch((error: unknown) => {
    if (!(error instanceof RefusedAgentError)) throw error;
    if (error.reason === "forbidden")
      throw new EventsError(
        "forbidden",
        "The caller no longer has the permissions apps.read and apps.write.",
      );
    throw new EventsError("notFound", "The event type is no longer open to agents.", { kind: "event" });
  });
  if (saved === undefined)
    throw new EventsError(
      "resourceExhausted",
      `This caller has ${MAX_PER_PRINCIPAL} subscriptions. Unsubscribe from one, or wait until one expires.`,
      { limit: "subscriptions", max: MAX_PER_PRINCIPAL },
    );
  const { isNew, agent } = saved;
  if (isNew)
    log.info(
      { event: "agent.subscribed", type: owner.name, agent: agentId },
      "an agent has subscribed to events",
    );
  const first = { after: agent.start.after, appended: agent.start.appended ?? undefined };
  return {
    id: agentId,
    refreshBefore: new Date(expiresAtMs).toISOString(),
    // An active subscription keeps its own position. The client can still resume from its cursor later.
    cursor: isNew ? seal(start.position) : (params.cursor ?? seal(first)),
    truncated: isNew && (start.isTruncated || isTruncated),
  };
}

/** Ends a subscription (`events/unsubscribe`). Succeeds if it has ended already, so that the client can repeat the request. */
export async function unsubscribe(
  { db, clock }: SubscribeDeps,
  { author, principal }: EventsCaller,
  { name, arguments: args, delivery }: z.output<typeof unsubscribeParams>,
) {
  const agentId = idOf({ principal, name, args }, delivery.url);
  await deleteAgentSubscription(db, author, { agentId }, clock());
  return {};
}

/** @throws EventsError -32014 for another mode than `webhook`, and -32602 for an invalid URL or secret */
function parseWebhook(delivery: z.output<typeof subscribeParams>["delivery"]) {
  if (delivery.mode !== "webhook")
    throw new EventsError("unsupported", 'The delivery mode must be "webhook".', {
      feature: "deliveryMode",
      value: delivery.mode.slice(0, MAX_SHOWN_CHARS),
    });
  const parsed = webhookSchema.safeParse(delivery);
  if (parsed.success) return parsed.data;
  const findings = parsed.error.issues.map(({ path, message }) => `delivery.${path.join(".")}: ${message}`);
  throw new EventsError("invalidParams", `The parameters are invalid. ${findings.join("; ")}`);
}

const MAX_SHOWN_CHARS = 100;

/** Returns the id of a subscription: a hash of the caller, the callback URL, the name and the arguments (SEP-3415, subscription identity). */
const idOf = (owner: CursorOwner, callbackUrl: string): string =>
  `agent_${createHash("sha256")
    .update(JSON.stringify([hashCursorOwner(owner), callbackUrl]))
    .digest("base64url")}`;

/** Returns the lifetime of a subscription in ms, which can be shorter or longer than requested. */
function ttlOf(requested: number | null | undefined): number {
  if (requested === undefined) return TTL_MS.default;
  return Math.min(TTL_MS.max, Math.max(TTL_MS.min, requested ?? TTL_MS.max));
}
