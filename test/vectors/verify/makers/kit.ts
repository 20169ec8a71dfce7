import { createHash, createHmac } from "node:crypto";

/** A request as a provider sends it. */
export interface Sent {
  readonly method?: string;
  /** Path and query. */
  readonly target?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A secret of the channel, and the key with which the provider signs. Both are equal for shared secrets. */
export interface Pair {
  readonly secret: string;
  readonly key: string;
}

/** The expected result of a request. */
export type Expected =
  | { readonly events: readonly { readonly type: string; readonly id: string | null }[] }
  /** The request is accepted, but its body is not an event of the provider. */
  | { readonly verified: true }
  | { readonly refused: "no_secret" | "missing" | "malformed" | "stale" | "mismatch" }
  | {
      readonly reply: {
        readonly status: number;
        readonly contentType: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      };
      readonly captured?: string;
      readonly visit?: string;
    }
  /** The request is not treated as a handshake. */
  | { readonly handshake: "none" };

export interface ChannelSecret {
  readonly value: string;
  readonly name?: string;
  readonly notBefore?: string;
  readonly notAfter?: string;
}

export type CaseKind =
  | "accept"
  | "wrong secret"
  | "altered"
  | "stale"
  | "rotated"
  | "uncovered"
  | "handshake";

export interface Case {
  readonly name: string;
  readonly kind: CaseKind;
  /** `documented`: published by the provider at `source`. `computed`: calculated with the documented scheme. */
  readonly origin: "documented" | "computed";
  readonly source?: string;
  readonly secrets: readonly ChannelSecret[];
  readonly request: Sent;
  readonly arrivedAt: string;
  /** Public URL before `target`. */
  readonly hooksUrl?: string;
  /** Channel settings in addition to the preset. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly expect: Expected;
}

export interface Recipe {
  /** The provider's page that documents the scheme. */
  readonly source: string;
  /** Current, next and unrelated secret. Text secrets by default; `null` if the provider has no secret. */
  readonly secrets?: readonly [Pair, Pair, Pair] | null;
  /** The request before it is signed. */
  readonly sent: Sent;
  readonly sign: (sent: Sent, key: string, atMs: number) => Sent;
  readonly events: readonly { readonly type: string; readonly id: string | null }[];
  /** Changes the signed content, by default the body. */
  readonly alter?: (signed: Sent) => Sent;
  /** Changes content that is not signed, so that the request is still accepted. */
  readonly uncovered?: (signed: Sent) => Sent;
  readonly toleranceSeconds?: number;
  /** Reason of the rejection with a wrong secret. Default: `mismatch`. */
  readonly wrong?: "malformed" | "mismatch";
  /** Reason of the rejection of an altered request. Default: `mismatch`. */
  readonly altered?: "malformed" | "mismatch" | "missing";
  readonly config?: Readonly<Record<string, unknown>>;
  /** Responses to fetches, by URL. */
  readonly fetched?: Readonly<Record<string, string>>;
  /** Additional cases, such as published examples and handshakes. */
  readonly more?: readonly Case[];
}

export const AT_MS = Date.parse("2026-01-01T00:00:00Z");
export const AT_SECONDS = String(AT_MS / 1_000);
export const HOOKS_URL = "https://hooks.example.com";
export const TARGET = "/hooks/ch_1";
export const URL_OF_CHANNEL = HOOKS_URL + TARGET;

const HOUR_MS = 3_600_000;
const sharedSecret = (secret: string): Pair => ({ secret, key: secret });

/** Creates secrets that are used directly as the key. */
export const texts = (...all: readonly [string, string, string]): readonly [Pair, Pair, Pair] => [
  sharedSecret(all[0]),
  sharedSecret(all[1]),
  sharedSecret(all[2]),
];
const TEXTS = texts("c6f1bd0ac3a34b7e9d0f5a", "7e2b9c51d8424fd0b6a3f1", "00000000000000000000ff");

/** Formats a JSON body without whitespace, as most senders do. */
export const json = (value: unknown): string => JSON.stringify(value);
export const JSON_TYPE = { "content-type": "application/json" } as const;
export const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" } as const;

type Text = string | Buffer;
export type Digest = "hex" | "base64" | "base64url";
export const hmac = (hash: string, key: Text, text: Text, digest: Digest): string =>
  createHmac(hash, key).update(text).digest(digest);
export const hash = (name: string, text: Text, digest: Digest): string =>
  createHash(name).update(text).digest(digest);

export const withHeaders = (sent: Sent, headers: Readonly<Record<string, string>>): Sent => ({
  ...sent,
  headers: { ...sent.headers, ...headers },
});

/** Creates a request with a JSON body and its content type. */
export const delivery = (headers: Readonly<Record<string, string>>, body: unknown): Sent => ({
  headers: { ...JSON_TYPE, ...headers },
  body: json(body),
});

/** Alters the body of a request whose body is not signed. */
export const hidden = (sent: Sent): Sent => ({ ...sent, body: sent.body.replace("{", '{"altered":true,') });

/** Returns a function that puts the HMAC of the body into a header. */
export const ofBody =
  (name: string, prefix = "", hashName = "sha256", digest: Digest = "hex"): Recipe["sign"] =>
  (sent, key) =>
    withHeaders(sent, { [name]: prefix + hmac(hashName, key, sent.body, digest) });

/** Adds `user:password` as basic authentication (RFC 7617). */
export const basic = (sent: Sent, credentials: string): Sent =>
  withHeaders(sent, { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` });

/** Creates a case, with the origin `computed` by default. */
export const caseOf = (parts: Pick<Case, "name" | "kind" | "request" | "expect"> & Partial<Case>): Case => {
  const { name, kind, origin = "computed", ...rest } = parts;
  return { name, kind, origin, secrets: [], arrivedAt: iso(AT_MS), ...rest };
};

/** Creates the expected response to a handshake. */
export const answer = (
  body: string,
  parts: Partial<Extract<Expected, { reply: unknown }>["reply"]> = {},
) => ({
  status: 200, contentType: "text/plain", headers: {}, body,
  ...parts,
});

/** Creates all cases of a provider, for accepted and rejected requests. */
export function casesOf(recipe: Recipe): readonly Case[] {
  const { sent, sign, events, alter = alterBody, uncovered, toleranceSeconds, config } = recipe;
  const [current, next, other] = recipe.secrets === null ? NO_SECRETS : (recipe.secrets ?? TEXTS);
  const secrets = recipe.secrets === null ? [] : [{ value: current.secret }];
  const make = (parts: Pick<Case, "name" | "kind" | "request" | "expect"> & Partial<Case>): Case =>
    caseOf({ secrets, ...(config ? { config } : {}), ...parts });
  const signed = sign(sent, current.key, AT_MS);
  const rotation = [
    { value: current.secret, notAfter: iso(AT_MS + HOUR_MS) },
    { value: next.secret, notBefore: iso(AT_MS - HOUR_MS) },
  ];
  const cases: Case[] = [make({ name: "a valid delivery", kind: "accept", request: signed, expect: { events } })];
  if (uncovered !== undefined) {
    const name = "a change outside the signed content";
    cases.push(make({ name, kind: "uncovered", request: uncovered(signed), expect: { events } }));
  }
  if (recipe.secrets === null) return [...cases, ...(recipe.more ?? [])];
  cases.push(
    make({
      name: "a delivery signed with another secret",
      kind: "wrong secret",
      request: sign(sent, other.key, AT_MS),
      expect: { refused: recipe.wrong ?? "mismatch" },
    }),
    make({
      name: "a delivery altered after signing",
      kind: "altered",
      request: alter(signed),
      expect: { refused: recipe.altered ?? "mismatch" },
    }),
  );
  if (toleranceSeconds !== undefined) {
    const arrivedAt = iso(AT_MS + (toleranceSeconds + 1) * 1_000);
    const expect = { refused: "stale" } as const;
    cases.push(make({ name: "a delivery that arrives too late", kind: "stale", request: signed, arrivedAt, expect }));
  }
  const lateMs = AT_MS + 2 * HOUR_MS;
  cases.push(
    make({
      name: "a delivery with the old secret while both are valid",
      kind: "rotated",
      secrets: rotation,
      request: signed,
      expect: { events },
    }),
    make({
      name: "a delivery with the new secret while both are valid",
      kind: "rotated",
      secrets: rotation,
      request: sign(sent, next.key, AT_MS),
      expect: { events },
    }),
    make({
      name: "a delivery with the old secret after its expiry",
      kind: "rotated",
      secrets: rotation,
      request: sign(sent, current.key, lateMs),
      arrivedAt: iso(lateMs),
      expect: { refused: recipe.wrong ?? "mismatch" },
    }),
  );
  return [...cases, ...(recipe.more ?? [])];
}

const NO_SECRETS = texts("", "", "");
const iso = (ms: number): string => new Date(ms).toISOString();

function alterBody(sent: Sent): Sent {
  const { body } = sent;
  if (body.startsWith("{")) return { ...sent, body: `{"altered":true,${body.slice(1)}` };
  if (body.startsWith("[{")) return { ...sent, body: `[{"altered":true,${body.slice(2)}` };
  return { ...sent, body: `${body}&altered=true` };
}
