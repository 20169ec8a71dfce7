import type { HandshakeReply } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { isEncodedSecretIn, isSecretIn } from "../../lib/constant-time.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { compilePins } from "../keys/pinned-url.ts";
import { compilePresence, compileSource, consumedBy, RequestView } from "../message/request-view.ts";
import type { Consumed } from "../verifier.ts";
import type { Condition, Handshake } from "./config.ts";
import { compileReply } from "./reply.ts";

/** A handshake that matches a request, with the actions to complete before the gateway responds. */
export interface MatchedHandshake {
  /** Secret from the request, which must be stored before the gateway responds. `undefined` if there is none. */
  readonly captured: Result<string, string> | undefined;
  /** URL from the request, which the gateway must call before it responds. `undefined` if there is none. */
  readonly visit: Result<string, string> | undefined;
  readonly reply: () => Result<HandshakeReply, string>;
}

export interface Handshakes {
  /** HTTP methods that the channel's URL accepts: those of deliveries and those of its handshakes. */
  readonly methods: readonly string[];
  readonly findOpen: FindHandshake;
  /**
   * Finds the first matching handshake that requires verification. Only call this for a verified request, because it may parse the
   * body.
   */
  readonly findVerified: FindHandshake;
}

/** `undefined` if no handshake can match, as for most channels. */
export type FindHandshake = ((request: RawRequest) => MatchedHandshake | undefined) | undefined;

/**
 * Returns the secrets that are valid at a time, in configured order. Without `name`, returns the unnamed secrets, which verify
 * deliveries.
 */
export type SecretsAt = (nowMs: number, name?: string) => readonly string[];

interface HandshakeDeps {
  /** HTTP methods of deliveries. */
  readonly deliveryMethods: readonly string[];
  readonly secretsAt: SecretsAt;
  /** All secrets that verify deliveries, including those outside their validity window. */
  readonly ownSecrets: readonly string[];
  readonly readAs: string | undefined;
  /** Derives the HMAC key from a secret, in the way that the channel's verification scheme does. */
  readonly hmacKeyOf: (secret: string) => Buffer | undefined;
  /** Returns whether the channel's verification scheme accepts a text as a secret. */
  readonly isSecret: (text: string) => boolean;
}

const MAX_CAPTURED_LENGTH = 4_096;

/**
 * Compiles the handshakes of a channel. A handshake is a request with which a provider checks a webhook URL, and the first match
 * applies.
 *
 * @throws Error for a handshake that `handshakeSchema` rejects
 */
export function compileHandshakes(handshakes: readonly Handshake[], deps: HandshakeDeps): Handshakes {
  const { deliveryMethods } = deps;
  if (handshakes.length === 0)
    return { methods: deliveryMethods, findOpen: undefined, findVerified: undefined };
  const compiled = handshakes.map((handshake) => compileHandshake(handshake, deps));
  const finder = (requireVerified: boolean): FindHandshake => {
    const some = compiled.filter((one) => one.requireVerified === requireVerified);
    if (some.length === 0) return undefined;
    const byMethod = Map.groupBy(some, ({ method }) => method);
    return (request) => {
      const candidates = byMethod.get(request.method);
      if (candidates === undefined) return undefined;
      const view = new RequestView(request, deps.readAs);
      return candidates.find(({ matches }) => matches(view))?.match(view);
    };
  };
  return {
    methods: [...new Set([...deliveryMethods, ...compiled.map(({ method }) => method)])],
    findOpen: finder(false),
    findVerified: finder(true),
  };
}

/** Lists the places in requests where handshakes transport secrets, so that the values there can be hidden. */
export function consumedByHandshakes(handshakes: readonly Handshake[]): Consumed {
  const secretPlaces = handshakes.flatMap(({ when, captureSecret }) => [
    ...when.all.filter(({ equalsSecret }) => equalsSecret !== undefined),
    ...(captureSecret ? [captureSecret] : []),
  ]);
  const consumed = secretPlaces.map(consumedBy);
  return {
    consumedHeaders: consumed.flatMap(({ consumedHeaders }) => consumedHeaders),
    consumedQuery: consumed.flatMap(({ consumedQuery }) => consumedQuery),
    consumedBody: consumed.flatMap(({ consumedBody }) => consumedBody),
  };
}

function compileHandshake(handshake: Handshake, deps: HandshakeDeps) {
  const { when, requireVerified, captureSecret, visit } = handshake;
  // Check conditions on the body last. Most requests are not handshakes, and already fail a cheaper condition.
  const { body: ofBody = [], others = [] } = Object.groupBy(when.all, (one) =>
    one.in === "body" ? "body" : "others",
  );
  const conditions = [
    ...others.map((condition) => compileCondition(condition, deps)),
    compileBodyPrefilter(ofBody),
    ...ofBody.map((condition) => compileCondition(condition, deps)),
  ];
  const reply = compileReply(handshake.respond);
  if (!reply.ok) throw new Error(`the response of a handshake ${reply.error[0]?.message}`);
  const readSecret = captureSecret && compileSource(captureSecret);
  const readUrl = visit && compileSource(visit);
  const isPinned = compilePins(visit?.pinned ?? []);

  return {
    method: when.method as string,
    requireVerified,
    matches: (view: RequestView): boolean => conditions.every((holds) => holds(view)),
    match(view: RequestView): MatchedHandshake {
      const nowMs = view.request.arrivedAtMs;
      const url = readUrl?.(view);
      return {
        captured: readSecret && capture(readSecret(view), deps),
        visit:
          readUrl &&
          (url !== undefined && isPinned(url)
            ? ok(url)
            : err("contains no URL that the settings allow to call")),
        reply: () =>
          reply.value({
            view,
            secret: (name) => deps.secretsAt(nowMs, name)[0],
            hmacKey: () => deps.secretsAt(nowMs).map(deps.hmacKeyOf)[0],
          }),
      };
    },
  };
}

/**
 * Extracts a secret from the request. Returns `undefined` if the channel already has this secret, or an error if it has a different
 * one.
 */
function capture(
  text: string | undefined,
  { ownSecrets, isSecret }: HandshakeDeps,
): MatchedHandshake["captured"] {
  if (text === undefined || !isCapturable(text) || !isSecret(text)) {
    return err("contains no valid secret");
  }
  if (ownSecrets.length === 0) return ok(text);
  return isSecretIn(text, ownSecrets) ? undefined : err("the channel already has a different secret");
}

const isCapturable = (text: string): boolean =>
  text.length > 0 && text.length <= MAX_CAPTURED_LENGTH && /^[\x21-\x7e]+$/.test(text);

function compileCondition(
  { in: where, name, equals, equalsSecret, absent }: Condition,
  { secretsAt }: HandshakeDeps,
): (view: RequestView) => boolean {
  const read = compileSource({ in: where, name });
  if (absent) {
    const isThere = compilePresence({ in: where, name });
    return (view) => !isThere(view);
  }
  if (equals !== undefined) return (view) => read(view) === equals;
  if (equalsSecret === undefined) return (view) => (read(view) ?? "") !== "";
  const isSecret = where === "header" ? isSecretIn : isEncodedSecretIn;
  return (view) => isSecret(read(view) ?? "", secretsAt(view.request.arrivedAtMs, equalsSecret));
}

/**
 * Compiles a fast search in the raw body for texts that a match requires. The search avoids parsing the body of nearly every
 * delivery.
 */
function compileBodyPrefilter(conditions: readonly Condition[]): (view: RequestView) => boolean {
  const needles = conditions.flatMap(({ name, equals, absent }) => {
    const needle = equals ?? /\.(?<last>[A-Za-z0-9_]+)$/.exec(name)?.groups?.last ?? "";
    return absent !== true && SAME_IN_ALL_FORMATS.test(needle) ? [needle] : [];
  });
  return ({ request }) => needles.every((needle) => request.body.includes(needle));
}

/** Matches texts that are written identically in JSON and in URL-encoded forms. */
const SAME_IN_ALL_FORMATS = /^[A-Za-z0-9_.-]+$/;
