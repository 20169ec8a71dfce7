import { randomBytes, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { Queryable } from "../../data/database.ts";
import { isConfirmed, recordConfirmation } from "../../data/subscriptions/agent-callbacks.ts";
import { type AgentDestination, createAgentControlRequest } from "../../event/agent-request.ts";
import { parseJson } from "../../event/parse-json.ts";
import type { Clock } from "../../lib/clock.ts";
import { createId } from "../../lib/ids.ts";
import { createAddressCheck } from "../../net/addresses.ts";
import { ALLOW_PRIVATE } from "../../net/name-blocked.ts";
import { type Outbound, OutboundError, type OutboundFailure } from "../../net/outbound.ts";
import type { EventsCaller } from "./events.ts";
import { EventsError } from "./revision.ts";

export interface CallbackDeps {
  readonly db: Queryable;
  readonly outbound: Pick<Outbound, "request" | "findBlockedAddress">;
  readonly clock: Clock;
}

const CHALLENGE_BYTES = 32;
const LIMITS = { totalTimeoutMs: 10_000, maxBytes: 64 * 1024, maxRedirects: 0 } as const;

/**
 * Checks that a callback URL may be called at all (SEP-3415, callback security).
 *
 * @throws EventsError -32602 unless it is an https URL of a public address, without credentials and fragment. The operator can allow other
 * networks, whose addresses may also use http
 */
export async function checkCallbackUrl({ outbound }: CallbackDeps, text: string): Promise<void> {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && !isPrivateHttp(url)))
    throw invalidUrl("must be an https URL");
  if (url.username !== "" || url.password !== "") throw invalidUrl("must not contain credentials");
  if (url.hash !== "") throw invalidUrl("must not contain a fragment");
  if ((await outbound.findBlockedAddress(text)) !== undefined)
    throw invalidUrl(`must not lead to a private address, as ${url.origin} does. ${ALLOW_PRIVATE}`);
}

const invalidUrl = (problem: string): EventsError =>
  new EventsError("invalidParams", `The parameters are invalid. delivery.url: ${problem}`);

const isPublic = createAddressCheck([]);

/** Returns whether a URL uses http with an address that is not public, which only works if the operator has allowed its network. */
function isPrivateHttp({ protocol, hostname }: URL): boolean {
  const address = hostname.replace(/^\[|\]$/g, "");
  return protocol === "http:" && isIP(address) !== 0 && !isPublic(address);
}

/**
 * Sends a challenge to a callback URL, unless it has answered one for this caller in the last 24 hours. Otherwise, a caller could make
 * Inlet send events to an address that does not want them.
 *
 * @throws EventsError -32015 with the category of the failure. It never contains the response
 */
export async function confirmCallback(
  { db, outbound, clock }: CallbackDeps,
  { principal, signal }: Pick<EventsCaller, "principal" | "signal">,
  destination: AgentDestination,
): Promise<void> {
  const callback = { principal, url: destination.url };
  if (await isConfirmed(db, callback, clock())) return;
  const challenge = randomBytes(CHALLENGE_BYTES).toString("base64url");
  const atMs = clock();
  const id = createId("ctl", atMs);
  const request = createAgentControlRequest({ type: "verification", challenge }, destination, { id, atMs });
  const response = await outbound.request(request, { ...LIMITS, signal }).catch((error: unknown) => {
    if (error instanceof OutboundError) throw callbackError(REASONS[error.code] ?? "challenge_failed");
    throw error;
  });
  if (response.status >= 400) throw callbackError(response.status >= 500 ? "http_5xx" : "http_4xx");
  if (response.status >= 300 || !repeats(response.body, challenge)) throw callbackError("challenge_failed");
  await recordConfirmation(db, callback, clock());
}

const REASONS: Readonly<Partial<Record<OutboundFailure, string>>> = {
  refused: "connection_refused",
  unresolved: "connection_refused",
  blocked: "connection_refused",
  reset: "connection_refused",
  timeout: "timeout",
  tls: "tls_error",
};

const callbackError = (reason: string): EventsError =>
  new EventsError(
    "callbackEndpoint",
    `The callback URL did not confirm the subscription (${reason}). It must respond to the signed challenge with 2xx and {"challenge": "<the same text>"}.`,
    { reason },
  );

function repeats(body: Buffer, challenge: string): boolean {
  try {
    const answer: unknown = parseJson(body.toString());
    const repeated = Buffer.from(String((answer as { readonly challenge?: unknown } | null)?.challenge));
    return repeated.length === challenge.length && timingSafeEqual(repeated, Buffer.from(challenge));
  } catch {
    return false;
  }
}
