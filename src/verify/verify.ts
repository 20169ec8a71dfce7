import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import type { Values } from "../event/values.ts";
import { parseAddress } from "../lib/addresses/client-address.ts";
import { createNetworkCheck, parseNetwork } from "../lib/addresses/networks.ts";
import { UnavailableError } from "../lib/errors.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { withoutChannelIds } from "../lib/secrets/channel-id.ts";
import { createRedact, type Redact, redactBytes } from "../lib/secrets/redact.ts";
import { queryValues } from "../lib/urlencoded.ts";
import {
  compileHandshakes,
  consumedByHandshakes,
  type Handshakes,
  type MatchedHandshake,
} from "./handshake/compile.ts";
import { CREDENTIAL_HEADERS, hideValues } from "./hidden-values.ts";
import type { KeySource } from "./keys/key-source.ts";
import { compileTexts, RequestView } from "./message/request-view.ts";
import { findScheme } from "./schemes.ts";
import { deriveKey, secretKeySchema } from "./secret-key.ts";
import { handshakesEnabled, type Sender, signsForAnyone } from "./sender.ts";
import type { Secret } from "./sender-config.ts";
import { type FailureReason, reject as rejection, type Verdict, type Verification } from "./verifier.ts";

/**
 * A delivery that failed verification. It has the shape of a verified delivery, so that quarantine can display it, but its body is
 * never parsed.
 */
export type UnverifiedDelivery = Omit<VerifiedDelivery, "deliveryId" | "boundTo" | "bodyHash">;

export interface RejectedRequest {
  /** Explanation for logs and operators, which is never sent to the sender. */
  readonly message: string;
  /**
   * Returns the request without credentials and signatures. Invalid credentials are removed too, because they may be valid
   * elsewhere.
   */
  readonly redacted: () => UnverifiedDelivery;
}

export type Verified = Result<VerifiedDelivery, RejectedRequest>;

export interface CompiledSender extends Pick<Handshakes, "methods"> {
  /** HTTP methods of deliveries, which are part of `methods`. */
  readonly deliveryMethods: readonly string[];
  /**
   * Verifies a raw request, and returns a delivery whose body may be parsed. Returns a promise only if the scheme is asynchronous.
   *
   * @throws UnavailableError if the sender's keys cannot be fetched
   */
  readonly verify: (request: RawRequest) => Verified | Promise<Verified>;
  /** Finds the matching handshake among those that do not require verification. */
  readonly findOpenHandshake: Handshakes["findOpen"];
  /**
   * Finds the matching handshake among those that require verification. Matches none if shadow mode accepted the delivery despite a
   * failed verification.
   */
  readonly findHandshake: (request: RawRequest, delivery: VerifiedDelivery) => MatchedHandshake | undefined;
  /**
   * Creates a function that redacts texts of a delivery. It hides the channel's secrets, the channel's URLs and signatures in the
   * body.
   */
  readonly createRedactor: (delivery: Pick<VerifiedDelivery, "headers" | "body">) => Redact;
  /** Returns whether a delivery failed verification, but was accepted because the channel is in shadow mode. */
  readonly isShadowed: (delivery: VerifiedDelivery) => boolean;
  /** Whether verification fetches public keys, and therefore needs a source of keys. */
  readonly fetchesKeys: boolean;
  /** Rejects a request without verifying it. Removes the credentials from the request, as `verify` would. */
  readonly reject: (request: RawRequest, message: string) => RejectedRequest;
}

export interface SenderDeps {
  /** Public base URL of the gateway, without `/hooks/…`. */
  readonly hooksUrl: string;
  readonly keys: KeySource;
  /** Called for each request that fails verification, but is accepted because of shadow mode. */
  readonly onShadowed: (reason: FailureReason) => void;
}

/** Compiled config without the secrets, shared by all senders that differ only in their secrets. */
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
    /** Request values to hide while handshakes are enabled (`open`) or disabled (`shut`). */
    hidden: { open: compileHidden(sender.handshakes), shut: compileHidden([]) },
    // Disabled handshakes count too, because the signatures that they returned earlier are still valid.
    isSigning: sender.handshakes.some(signsForAnyone),
  };
}

/** @param program existing compiled config, to avoid compiling the same config again */
export const compileSender = (
  sender: Sender,
  deps: SenderDeps,
  program: SenderProgram = compileSenderProgram(sender),
): CompiledSender => new ActiveSender(sender, deps, program);

/** Use a class instead of closures to save memory, because there can be many thousands of channels. */
class ActiveSender implements CompiledSender {
  readonly deliveryMethods: readonly string[];
  readonly methods: readonly string[];
  readonly findOpenHandshake: Handshakes["findOpen"];
  readonly #readAs: string | undefined;
  readonly #deps: SenderDeps;
  readonly #program: SenderProgram;
  readonly #hidden: SenderProgram["hidden"]["open"];
  readonly #handshakes: Handshakes;
  readonly #secrets: SecretWindows;
  /** Deliveries that were only accepted because of shadow mode. `undefined` if the channel is not in shadow mode. */
  readonly #shadowed: WeakSet<VerifiedDelivery> | undefined;

  constructor(sender: Sender, deps: SenderDeps, program: SenderProgram) {
    const { secrets, shadow, readAs, methods } = sender;
    const { verification, scheme, key } = program;
    const isOpen = handshakesEnabled(sender);
    const windows = new SecretWindows(secrets);
    this.deliveryMethods = methods;
    this.#readAs = readAs;
    this.#deps = deps;
    this.#program = program;
    this.#hidden = isOpen ? program.hidden.open : program.hidden.shut;
    this.#secrets = windows;
    this.#shadowed = shadow ? new WeakSet() : undefined;
    this.#handshakes = compileHandshakes(isOpen ? sender.handshakes : [], {
      deliveryMethods: methods,
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
    return this.isShadowed(delivery) ? undefined : this.#handshakes.findVerified?.(request);
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
    return createRedact([...this.#secrets.all(), ...inBody], {
      wholeValues: inBody,
      andThen: withoutChannelIds,
    });
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
    if (verdict.ok) return ok(this.#redact(request, verdict.value));
    const { reason, message } = verdict.error;
    return this.#shadowed
      ? this.#accept(request, reason, this.#shadowed)
      : err(this.reject(request, message));
  }

  /** Accepts an unverified request in shadow mode. The resulting delivery claims no verified facts, such as a delivery id. */
  #accept(request: RawRequest, reason: FailureReason, shadowed: WeakSet<VerifiedDelivery>): Verified {
    this.#deps.onShadowed(reason);
    const delivery = this.#redact(request);
    shadowed.add(delivery);
    return ok(delivery);
  }

  /**
   * Handles an error of the verifier. In shadow mode, a failed key fetch does not reject the request. Otherwise, rethrows the error
   * so that the sender retries.
   */
  #fail(request: RawRequest, error: unknown): Verified {
    if (this.#shadowed && error instanceof UnavailableError)
      return this.#accept(request, "unavailable", this.#shadowed);
    throw error;
  }
}

const ADDRESS_NOT_ALLOWED = rejection("address", "the client address is not in `allowedAddresses`");

/** Compiles a check that rejects disallowed client addresses. Returns `undefined` if all addresses may send deliveries. */
function compileAddresses(networks: Sender["allowedAddresses"]) {
  if (networks === undefined) return undefined;
  const isAllowed = createNetworkCheck(networks.flatMap((text) => parseNetwork(text) ?? []));
  return (text = ""): boolean => {
    const address = parseAddress(text);
    return address === undefined || !isAllowed(address);
  };
}

/** Replaces the content type in a set of headers. The result has no prototype, like all objects with values from a sender. */
const withContentType = (headers: Values, type: string): Values =>
  Object.assign(Object.create(null), headers, { "content-type": type });

/** The secrets of a channel with the times at which they are valid. */
class SecretWindows {
  readonly #windows: readonly (Pick<Secret, "value" | "name"> & Record<"fromMs" | "toMs", number>)[];
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

  /**
   * Returns the secrets that are valid at a time: those named `wanted`, or the unnamed ones. While the valid unnamed secrets stay
   * the same, so does the array, because derived values are cached per array instance.
   */
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
