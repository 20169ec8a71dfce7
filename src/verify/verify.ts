import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import { omitValues, queryValues, type Values } from "../event/values.ts";
import { parseAddress } from "../lib/addresses/client-address.ts";
import { createNetworkCheck, parseNetwork } from "../lib/addresses/networks.ts";
import { UnavailableError } from "../lib/errors.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { mayHoldChannelId, withoutChannelIds } from "../lib/secrets/channel-id.ts";
import { createRedact, type Redact, redactBytes, redactTexts } from "../lib/secrets/redact.ts";
import {
  compileHandshakes,
  consumedByHandshakes,
  type Handshakes,
  type MatchedHandshake,
  type SecretsAt,
} from "./handshake/compile.ts";
import type { KeySource } from "./keys/key-source.ts";
import { compileTexts, RequestView } from "./message/request-view.ts";
import { findScheme } from "./schemes.ts";
import { deriveKey, secretKeySchema } from "./secret-key.ts";
import { lacksSecret, type Sender, signsForAnyone } from "./sender.ts";
import type { Secret } from "./sender-settings.ts";
import { type RefusalReason, refuse as refusal, type Verdict } from "./verifier.ts";

/** Shaped as a verified one, so that quarantine keeps both; it is for the operator to look at and never parsed. */
export type UnverifiedDelivery = Omit<VerifiedDelivery, "deliveryId" | "boundTo">;

export interface RefusedRequest {
  /** For the log and the operator, never for the sender. */
  readonly message: string;
  /** Without what the scheme reads: a signature under the wrong secret is somebody's right one. */
  readonly redacted: () => UnverifiedDelivery;
}

export type Verified = Result<VerifiedDelivery, RefusedRequest>;

/** A channel's sender, ready to be met. */
export interface CompiledSender extends Pick<Handshakes, "methods"> {
  /**
   * Turns a raw request into a delivery that may be parsed; nothing else does. At once, unless the scheme answers by a promise.
   *
   * @throws UnavailableError where the sender's keys cannot be had now.
   */
  readonly verify: (request: RawRequest) => Verified | Promise<Verified>;
  /** The handshake that a request is, and no delivery, of those that ask for no verification; undefined where it is none. */
  readonly findOpenHandshake: Handshakes["findOpen"];
  /** Of the others, where the delivery that came of the request is believed for more than being tried out. */
  readonly findHandshake: (request: RawRequest, delivery: VerifiedDelivery) => MatchedHandshake | undefined;
  /** What of a delivery nobody is shown: secrets of the channel, what its scheme reads of the body, channels' addresses. */
  readonly hide: (delivery: Pick<VerifiedDelivery, "headers" | "body">) => Redact;
  /** True of a delivery that was accepted only because the channel tries its settings out. */
  readonly isUnproved: (delivery: VerifiedDelivery) => boolean;
  /** True where it may ask for keys: no other needs those of its channel. */
  readonly fetchesKeys: boolean;
  /** As `verify` refuses, for a request that is not to be verified. */
  readonly refuse: (request: RawRequest, message: string) => RefusedRequest;
}

export interface SenderDeps {
  /** The part of addresses before `/hooks/…`, as the gateway tells them. */
  readonly hooksUrl: string;
  readonly keys: KeySource;
  /** Told of each request that is accepted only because the channel tries its settings out. */
  readonly onShadowed: (reason: RefusalReason) => void;
}

/**
 * Always taken out of `$headers`: credentials, whichever scheme reads them. The channel's address is one, and proxies repeat
 * it (Kong, Envoy, Traefik, nginx, IIS).
 */
const CREDENTIAL_HEADERS = [
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "api-key",
  "x-auth-token",
  "x-access-token",
  "x-envoy-original-path",
  "x-forwarded-path",
  "x-forwarded-uri",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
];

/** A sender's settings without its secrets, compiled: the same for all senders that differ in nothing else. */
export type SenderProgram = ReturnType<typeof compileSenderProgram>;

export function compileSenderProgram(sender: Omit<Sender, "secrets">) {
  const { verification } = sender;
  const scheme = findScheme(verification);
  const verifier = scheme.create(verification);
  const hiddenBeside = (handshakes: Sender["handshakes"]) => {
    const { consumedHeaders, consumedQuery, consumedBody } = consumedByHandshakes(handshakes);
    return {
      headers: new Set(CREDENTIAL_HEADERS.concat(verifier.consumedHeaders, consumedHeaders)),
      query: new Set([...verifier.consumedQuery, ...consumedQuery]),
      inBody: [...verifier.consumedBody, ...consumedBody].map(compileTexts),
    };
  };
  return {
    verification,
    scheme,
    verifier,
    isFromElsewhere: compileAddresses(sender.allowedAddresses),
    key: secretKeySchema.parse(verification.key),
    /** What of a request nobody is shown, while handshakes are answered, and while they are not. */
    hidden: { open: hiddenBeside(sender.handshakes), shut: hiddenBeside([]) },
    // Also those that are no longer answered: a signature that was given stays right.
    isSigning: sender.handshakes.some(signsForAnyone),
  };
}

/**
 * Compiles a sender's settings once; what comes of it runs for each of its requests.
 *
 * @param program of the same settings, where it is at hand
 */
export function compileSender(
  sender: Sender,
  deps: SenderDeps,
  program: SenderProgram = compileSenderProgram(sender),
): CompiledSender {
  const { shadow, readAs } = sender;
  const { verification, scheme, verifier, isFromElsewhere, key, isSigning } = program;
  const secretsAt = createSecretWindows(sender.secrets);
  const isOpen = handshakesEnabled(sender);
  const hidden = isOpen ? program.hidden.open : program.hidden.shut;
  const handshakes = compileHandshakes(isOpen ? sender.handshakes : [], {
    ...{ secretsAt, readAs },
    ownSecrets: sender.secrets.flatMap(({ name, value }) => (name === undefined ? [value] : [])),
    hmacKeyOf: (secret) => deriveKey(key, secret),
    isSecret: (text) => scheme.findWrongSecret(verification, text) === undefined,
  });
  const ownSecrets = sender.secrets.map(({ value }) => value);

  function hide({ headers, body }: Pick<RawRequest, "headers" | "body">): Redact {
    const view = new RequestView({ method: "POST", target: "/", headers, body, arrivedAtMs: 0 }, readAs);
    const redact = createRedact([...ownSecrets, ...hidden.inBody.flatMap((texts) => texts(view) ?? [])]);
    return (text) => withoutChannelIds(redact(text));
  }

  const unproved = new WeakSet<VerifiedDelivery>();
  const redact = (request: RawRequest): UnverifiedDelivery => {
    const headers = shown(request.headers, hidden.headers);
    return {
      method: request.method,
      headers: readAs === undefined ? headers : withType(headers, readAs),
      query: shown(queryValues(request.target), hidden.query),
      body: request.body,
      arrivedAtMs: request.arrivedAtMs,
    };
  };
  const refuse = (request: RawRequest, message: string): RefusedRequest => ({
    message,
    redacted: () => ({ ...redact(request), body: redactBytes(request.body, hide(request)) }),
  });

  function conclude(request: RawRequest, verdict: Verdict): Verified {
    if (verdict.ok) {
      const { deliveryId, boundTo } = verdict.value;
      const delivery = redact(request);
      if (deliveryId === undefined && boundTo === undefined) return ok(delivery);
      return ok({ ...delivery, ...verdict.value });
    }
    const { reason, message } = verdict.error;
    return shadow ? accept(request, reason) : err(refuse(request, message));
  }

  /** In shadow: as a delivery like all others, but one that proves nothing. */
  function accept(request: RawRequest, reason: RefusalReason): Verified {
    deps.onShadowed(reason);
    const delivery = redact(request);
    unproved.add(delivery);
    return ok(delivery);
  }

  /** Where nobody can tell, the delivery is not accepted, and its sender tries again. */
  function fail(request: RawRequest, error: unknown): Verified {
    if (shadow && error instanceof UnavailableError) return accept(request, "unavailable");
    throw error;
  }

  return {
    methods: handshakes.methods,
    fetchesKeys: verifier.fetchesKeys === true,
    findOpenHandshake: handshakes.findOpen,
    findHandshake: (request, delivery) =>
      unproved.has(delivery) ? undefined : handshakes.findVerified(request),
    refuse,
    hide,
    isUnproved: (delivery) => unproved.has(delivery),
    verify(request) {
      if (isFromElsewhere?.(request.clientAddress)) return conclude(request, FROM_ELSEWHERE);
      const context = {
        secrets: secretsAt(request.arrivedAtMs),
        hooksUrl: deps.hooksUrl,
        readAs,
        keys: deps.keys,
        signsForAnyone: isSigning,
      };
      try {
        const verdict = verifier.verify(request, context);
        if (!(verdict instanceof Promise)) return conclude(request, verdict);
        return verdict.then(
          (settled) => conclude(request, settled),
          (error) => fail(request, error),
        );
      } catch (error) {
        return fail(request, error);
      }
    },
  };
}

function createSecretWindows(secrets: readonly Secret[]): SecretsAt {
  const windows = secrets.map(({ value, name, notBefore, notAfter }) => ({
    ...{ value, name },
    fromMs: notBefore === undefined ? Number.NEGATIVE_INFINITY : Date.parse(notBefore),
    toMs: notAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(notAfter),
  }));
  let last: readonly string[] = [];
  return (nowMs, wanted) => {
    const valid: string[] = [];
    for (const { value, name, fromMs, toMs } of windows) {
      if (name === wanted && fromMs <= nowMs && nowMs < toMs) valid.push(value);
    }
    if (wanted !== undefined) return valid;
    // The same list for as long as the same are valid: what is made of them is kept by it.
    if (valid.length !== last.length || valid.some((value, index) => value !== last[index])) last = valid;
    return last;
  };
}

const FROM_ELSEWHERE = refusal("address", "the address that it comes from is none of `allowedAddresses`");

/** Undefined where deliveries may come from anywhere. */
function compileAddresses(networks: Sender["allowedAddresses"]) {
  if (networks === undefined) return undefined;
  const isAllowed = createNetworkCheck(networks.flatMap((text) => parseNetwork(text) ?? []));
  return (text = ""): boolean => {
    const address = parseAddress(text);
    return address === undefined || !isAllowed(address);
  };
}

function handshakesEnabled(sender: Sender): boolean {
  switch (sender.allowHandshakes) {
    case "always":
      return true;
    case "setup":
      return lacksSecret({ ...sender, shadow: false });
    case "never":
      return false;
    default:
      return sender.allowHandshakes satisfies never;
  }
}

/** Without a prototype, as all values of a sender's. */
const withType = (headers: Values, type: string): Values =>
  Object.assign(Object.create(null), headers, { "content-type": type });

/**
 * Without what is hidden, and without the address, which a page that leads here may name, as may a proxy. The same object where
 * nothing is to be taken out: nearly always.
 */
function shown(values: Values, hidden: ReadonlySet<string>): Values {
  // Not `for…in`: V8 learns nothing from its reads where all objects have one shape, and optimizes this function again and again in vain.
  for (const name of Object.keys(values)) {
    const value = values[name];
    if (hidden.has(name)) return shown(omitValues(values, hidden), hidden);
    if (value === undefined || !holdsAddress(value)) continue;
    // Behind an address there may be more to hide.
    const kept = { ...omitValues(values, hidden) };
    return Object.assign(Object.create(null), redactTexts(kept, withoutChannelIds));
  }
  return values;
}

const holdsAddress = (value: string | readonly string[]): boolean =>
  typeof value === "string" ? mayHoldChannelId(value) : value.some(mayHoldChannelId);
