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
} from "./handshake/compile.ts";
import type { KeySource } from "./keys/key-source.ts";
import { compileTexts, RequestView } from "./message/request-view.ts";
import { findScheme } from "./schemes.ts";
import { deriveKey, secretKeySchema } from "./secret-key.ts";
import { lacksSecret, type Sender, signsForAnyone } from "./sender.ts";
import type { Secret } from "./sender-settings.ts";
import { type FailureReason, reject as rejection, type Verdict, type Verification } from "./verifier.ts";

/** Shaped as a verified one, so that quarantine keeps both; it is for the operator to look at and never parsed. */
export type UnverifiedDelivery = Omit<VerifiedDelivery, "deliveryId" | "boundTo" | "bodyHash">;

export interface RejectedRequest {
  /** For the log and the operator, never for the sender. */
  readonly message: string;
  /** Without what the scheme reads: a signature under the wrong secret is somebody's right one. */
  readonly redacted: () => UnverifiedDelivery;
}

export type Verified = Result<VerifiedDelivery, RejectedRequest>;

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
  readonly createRedactor: (delivery: Pick<VerifiedDelivery, "headers" | "body">) => Redact;
  /** True of a delivery that was accepted only because the channel tries its settings out. */
  readonly isShadowed: (delivery: VerifiedDelivery) => boolean;
  /** True where it may ask for keys: no other needs those of its channel. */
  readonly fetchesKeys: boolean;
  /** As `verify` refuses, for a request that is not to be verified. */
  readonly reject: (request: RawRequest, message: string) => RejectedRequest;
}

export interface SenderDeps {
  /** The part of addresses before `/hooks/…`, as the gateway tells them. */
  readonly hooksUrl: string;
  readonly keys: KeySource;
  /** Told of each request that is accepted only because the channel tries its settings out. */
  readonly onShadowed: (reason: FailureReason) => void;
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
  const compileHidden = (handshakes: Sender["handshakes"]) => {
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
    isAddressRejected: compileAddresses(sender.allowedAddresses),
    key: secretKeySchema.parse(verification.key),
    /** What of a request nobody is shown, while handshakes are answered, and while they are not. */
    hidden: { open: compileHidden(sender.handshakes), shut: compileHidden([]) },
    // Also those that are no longer answered: a signature that was given stays right.
    isSigning: sender.handshakes.some(signsForAnyone),
  };
}

/**
 * Compiles a sender's settings once; what comes of it runs for each of its requests.
 *
 * @param program of the same settings, where it is at hand
 */
export const compileSender = (
  sender: Sender,
  deps: SenderDeps,
  program: SenderProgram = compileSenderProgram(sender),
): CompiledSender => new ActiveSender(sender, deps, program);

/** One object for all that a channel with a secret of its own holds: there may be many thousands. */
class ActiveSender implements CompiledSender {
  readonly methods: readonly string[];
  readonly findOpenHandshake: Handshakes["findOpen"];
  readonly #readAs: string | undefined;
  readonly #deps: SenderDeps;
  readonly #program: SenderProgram;
  readonly #hidden: SenderProgram["hidden"]["open"];
  readonly #handshakes: Handshakes;
  readonly #secrets: SecretWindows;
  /** Where the channel tries its settings out. */
  readonly #shadowed: WeakSet<VerifiedDelivery> | undefined;

  constructor(sender: Sender, deps: SenderDeps, program: SenderProgram) {
    const { secrets, shadow, readAs } = sender;
    const { verification, scheme, key } = program;
    const isOpen = handshakesEnabled(sender);
    const windows = new SecretWindows(secrets);
    this.#readAs = readAs;
    this.#deps = deps;
    this.#program = program;
    this.#hidden = isOpen ? program.hidden.open : program.hidden.shut;
    this.#secrets = windows;
    this.#shadowed = shadow ? new WeakSet() : undefined;
    this.#handshakes = compileHandshakes(isOpen ? sender.handshakes : [], {
      readAs,
      secretsAt: (nowMs, name) => windows.at(nowMs, name),
      ownSecrets: secrets.flatMap(({ name, value }) => (name === undefined ? [value] : [])),
      hmacKeyOf: (secret) => deriveKey(key, secret),
      isSecret: (text) => scheme.findWrongSecret(verification, text) === undefined,
    });
    this.methods = this.#handshakes.methods;
    this.findOpenHandshake = this.#handshakes.findOpen;
  }

  get fetchesKeys(): boolean {
    return this.#program.verifier.fetchesKeys === true;
  }

  verify(request: RawRequest): Verified | Promise<Verified> {
    const { verifier, isAddressRejected, isSigning } = this.#program;
    if (isAddressRejected?.(request.clientAddress)) return this.#conclude(request, ADDRESS_NOT_ALLOWED);
    const context = {
      secrets: this.#secrets.at(request.arrivedAtMs),
      hooksUrl: this.#deps.hooksUrl,
      readAs: this.#readAs,
      keys: this.#deps.keys,
      signsForAnyone: isSigning,
    };
    try {
      const verdict = verifier.verify(request, context);
      if (!(verdict instanceof Promise)) return this.#conclude(request, verdict);
      return verdict.then(
        (settled) => this.#conclude(request, settled),
        (error) => this.#fail(request, error),
      );
    } catch (error) {
      return this.#fail(request, error);
    }
  }

  findHandshake(request: RawRequest, delivery: VerifiedDelivery): MatchedHandshake | undefined {
    return this.isShadowed(delivery) ? undefined : this.#handshakes.findVerified(request);
  }

  isShadowed(delivery: VerifiedDelivery): boolean {
    return this.#shadowed?.has(delivery) === true;
  }

  reject(request: RawRequest, message: string): RejectedRequest {
    return {
      message,
      redacted: () => ({
        ...this.#redact(request),
        body: redactBytes(request.body, this.createRedactor(request)),
      }),
    };
  }

  createRedactor({ headers, body }: Pick<RawRequest, "headers" | "body">): Redact {
    const request: RawRequest = { method: "POST", target: "/", headers, body, arrivedAtMs: 0 };
    const view = new RequestView(request, this.#readAs);
    const inBody = this.#hidden.inBody.flatMap((texts) => texts(view) ?? []);
    const redact = createRedact([...this.#secrets.all(), ...inBody]);
    return (text) => withoutChannelIds(redact(text));
  }

  #redact(request: RawRequest, { deliveryId, boundTo, bodyHash }: Verification = {}): VerifiedDelivery {
    const readAs = this.#readAs;
    const headers = hideValues(request.headers, this.#hidden.headers);
    return {
      method: request.method,
      headers: readAs === undefined ? headers : withContentType(headers, readAs),
      query: hideValues(queryValues(request.target), this.#hidden.query),
      body: request.body,
      arrivedAtMs: request.arrivedAtMs,
      deliveryId,
      boundTo,
      bodyHash,
    };
  }

  #conclude(request: RawRequest, verdict: Verdict): Verified {
    if (verdict.ok) {
      return ok(this.#redact(request, verdict.value));
    }
    const { reason, message } = verdict.error;
    return this.#shadowed
      ? this.#accept(request, reason, this.#shadowed)
      : err(this.reject(request, message));
  }

  /** In shadow: as a delivery like all others, but one that proves nothing. */
  #accept(request: RawRequest, reason: FailureReason, shadowed: WeakSet<VerifiedDelivery>): Verified {
    this.#deps.onShadowed(reason);
    const delivery = this.#redact(request);
    shadowed.add(delivery);
    return ok(delivery);
  }

  /** Where nobody can tell, the delivery is not accepted, and its sender tries again. */
  #fail(request: RawRequest, error: unknown): Verified {
    if (this.#shadowed && error instanceof UnavailableError)
      return this.#accept(request, "unavailable", this.#shadowed);
    throw error;
  }
}

interface SecretWindow extends Pick<Secret, "value" | "name"> {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Secrets, each valid in a time of its own. */
class SecretWindows {
  readonly #windows: readonly SecretWindow[];
  #last: readonly string[] = NO_SECRETS;

  constructor(secrets: readonly Secret[]) {
    this.#windows = secrets.map(({ value, name, notBefore, notAfter }) => ({
      value,
      name,
      fromMs: notBefore === undefined ? Number.NEGATIVE_INFINITY : Date.parse(notBefore),
      toMs: notAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(notAfter),
    }));
  }

  all(): readonly string[] {
    return this.#windows.map(({ value }) => value);
  }

  /** The texts of those that are valid at a time, in their order: those without a name, or those of one. The same list for as long as the same are valid: what is made of them is kept by it. */
  at(nowMs: number, wanted?: string): readonly string[] {
    const valid: string[] = [];
    for (const { value, name, fromMs, toMs } of this.#windows) {
      if (name === wanted && fromMs <= nowMs && nowMs < toMs) valid.push(value);
    }
    if (wanted !== undefined) return valid;
    const last = this.#last;
    if (valid.length !== last.length || valid.some((value, index) => value !== last[index]))
      this.#last = valid;
    return this.#last;
  }
}

const NO_SECRETS: readonly string[] = [];

const ADDRESS_NOT_ALLOWED = rejection(
  "address",
  "the address that it comes from is none of `allowedAddresses`",
);

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
const withContentType = (headers: Values, type: string): Values =>
  Object.assign(Object.create(null), headers, { "content-type": type });

/**
 * Without what is hidden, and without the address, which a page that leads here may name, as may a proxy. The same object where
 * nothing is to be taken out: nearly always.
 */
function hideValues(values: Values, hidden: ReadonlySet<string>): Values {
  const kept = omitValues(values, hidden);
  // Not `for…in`: V8 learns nothing from its reads where all objects have one shape, and optimizes this function again and again in vain.
  for (const name of Object.keys(kept)) {
    const value = kept[name];
    if (value !== undefined && holdsChannelId(value))
      return Object.assign(Object.create(null), redactTexts({ ...kept }, withoutChannelIds));
  }
  return kept;
}

const holdsChannelId = (value: string | readonly string[]): boolean =>
  typeof value === "string" ? mayHoldChannelId(value) : value.some(mayHoldChannelId);
