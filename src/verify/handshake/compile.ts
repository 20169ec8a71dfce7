import type { HandshakeReply } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { isSecretIn } from "../../lib/constant-time.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { compilePins } from "../keys/pinned-url.ts";
import { compilePresence, compileSource, RequestView } from "../message/request-view.ts";
import { consumedBy } from "../message/signature.ts";
import type { Consumed } from "../verifier.ts";
import { compileReply } from "./reply.ts";
import type { Condition, Handshake } from "./settings.ts";

/** A request that is no delivery, and what is to be done. */
export interface MatchedHandshake {
  /** A secret that it brings, to be kept before it is answered; undefined where there is none to keep. */
  readonly captured: Result<string, string> | undefined;
  /** An address to be called before it is answered. */
  readonly visit: Result<string, string> | undefined;
  readonly reply: () => Result<HandshakeReply, string>;
}

export interface Handshakes {
  /** The methods of the channel's address: POST, and those that handshakes come by. */
  readonly methods: readonly string[];
  /** Of those that ask for no verification. */
  readonly findOpen: (request: RawRequest) => MatchedHandshake | undefined;
  /** Of those that must be verified: asked once that is so, since it may parse the body. */
  readonly findVerified: (request: RawRequest) => MatchedHandshake | undefined;
}

/** The texts of the secrets that are valid at a time, in their order: those without a name, or those of one. */
export type SecretsAt = (nowMs: number, name?: string) => readonly string[];

interface HandshakeDeps {
  readonly secretsAt: SecretsAt;
  /** All that deliveries may be signed with, at whatever time. */
  readonly ownSecrets: readonly string[];
  readonly readAs: string | undefined;
  /** The key of a secret's text, as the channel's scheme makes it. */
  readonly hmacKeyOf: (secret: string) => Buffer | undefined;
  /** True for what the channel's scheme takes for a secret. */
  readonly isSecret: (text: string) => boolean;
}

const MAX_CAPTURED_LENGTH = 4_096;
const DELIVERY_METHOD = "POST";

/** Compiles a channel's handshakes; the first whose conditions all hold is found. @throws Error for what `checkHandshake` refuses */
export function compileHandshakes(handshakes: readonly Handshake[], deps: HandshakeDeps): Handshakes {
  if (handshakes.length === 0) return NO_HANDSHAKES;
  const compiled = handshakes.map((handshake) => compileHandshake(handshake, deps));
  const finder = (requireVerified: boolean): Handshakes["findOpen"] => {
    const some = compiled.filter((one) => one.requireVerified === requireVerified);
    if (some.length === 0) return () => undefined;
    const byMethod = Map.groupBy(some, ({ method }) => method);
    return (request) => {
      const candidates = byMethod.get(request.method);
      if (candidates === undefined) return undefined;
      const view = new RequestView(request, deps.readAs);
      return candidates.find(({ matches }) => matches(view))?.match(view);
    };
  };
  return {
    methods: [...new Set([DELIVERY_METHOD, ...compiled.map(({ method }) => method)])],
    findOpen: finder(false),
    findVerified: finder(true),
  };
}

const NO_HANDSHAKES: Handshakes = {
  methods: [DELIVERY_METHOD],
  findOpen: () => undefined,
  findVerified: () => undefined,
};

/** Where handshakes bring secrets. */
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
  // Cheap checks come before those that read the body: most requests are deliveries.
  const { body: ofBody = [], others = [] } = Object.groupBy(when.all, (one) =>
    one.in === "body" ? "body" : "others",
  );
  const conditions = [
    ...others.map((condition) => compileCondition(condition, deps)),
    compileBodyPrefilter(ofBody),
    ...ofBody.map((condition) => compileCondition(condition, deps)),
  ];
  const reply = compileReply(handshake.respond);
  if (!reply.ok) throw new Error(`a reply ${reply.error[0]?.message}`);
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
          (url !== undefined && isPinned(url) ? ok(url) : err("brings no address that may be called")),
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

/** Nothing is to be kept, and nobody to be asked, where the channel has this secret already. */
function capture(
  text: string | undefined,
  { ownSecrets, isSecret }: HandshakeDeps,
): MatchedHandshake["captured"] {
  if (text === undefined || !isCapturable(text) || !isSecret(text)) {
    return err("brings no secret that can be kept");
  }
  if (ownSecrets.length === 0) return ok(text);
  return isSecretIn(text, ownSecrets) ? undefined : err("the channel already has another secret");
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
  return (view) => isSecretIn(read(view) ?? "", secretsAt(view.request.arrivedAtMs, equalsSecret));
}

/** Looks whether the bytes of the body hold at all what is asked of it: nearly no delivery does, and is not parsed for it. */
function compileBodyPrefilter(conditions: readonly Condition[]): (view: RequestView) => boolean {
  const needles = conditions.flatMap(({ name, equals, absent }) => {
    const needle = equals ?? /\.(?<last>[A-Za-z0-9_]+)$/.exec(name)?.groups?.last ?? "";
    return absent !== true && SAME_IN_ALL_FORMATS.test(needle) ? [needle] : [];
  });
  return ({ request }) => needles.every((needle) => request.body.includes(needle));
}

/** As it stands in JSON and in forms alike. */
const SAME_IN_ALL_FORMATS = /^[A-Za-z0-9_.-]+$/;
