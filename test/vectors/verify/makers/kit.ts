import { createHash, createHmac } from "node:crypto";

/** A request as a provider sends it. */
export interface Sent {
  readonly method?: string;
  /** Path and query. */
  readonly target?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A secret of the channel; `key` is what the provider signs with where that is not the same text. */
export interface Pair {
  readonly secret: string;
  readonly key: string;
}

/** What a vector expects of a request. */
export type Expected =
  | { readonly events: readonly { readonly type: string; readonly id: string | null }[] }
  /** Accepted; the body is an example and no event of the provider's. */
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
  /** Not answered as one. */
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
  /** documented: published by the provider, `source` says where; computed: by the provider's documented scheme. */
  readonly origin: "documented" | "computed";
  readonly source?: string;
  readonly secrets: readonly ChannelSecret[];
  readonly request: Sent;
  readonly arrivedAt: string;
  /** The address before the target. */
  readonly hooksUrl?: string;
  /** What the channel sets beside its preset. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly expect: Expected;
}

export interface Recipe {
  /** The provider's page that documents the scheme. */
  readonly source: string;
  /** The one in use, the next, and another one. Absent: texts. Null: the provider has none. */
  readonly secrets?: readonly [Pair, Pair, Pair] | null;
  /** As it is before it is signed. */
  readonly sent: Sent;
  readonly sign: (sent: Sent, key: string, atMs: number) => Sent;
  readonly events: readonly { readonly type: string; readonly id: string | null }[];
  /** Changes what is signed; absent: the body. */
  readonly alter?: (signed: Sent) => Sent;
  /** Changes what is not: it passes all the same. */
  readonly uncovered?: (signed: Sent) => Sent;
  readonly toleranceSeconds?: number;
  /** Why the wrong secret is refused, where that is not for a signature that does not match. */
  readonly wrong?: "malformed" | "mismatch";
  readonly altered?: "malformed" | "mismatch" | "missing";
  readonly config?: Readonly<Record<string, unknown>>;
  /** What is fetched, by address. */
  readonly fetched?: Readonly<Record<string, string>>;
  /** Vectors that the provider publishes, and handshakes. */
  readonly more?: readonly Case[];
}

export const AT_MS = Date.parse("2026-01-01T00:00:00Z");
export const AT_SECONDS = String(AT_MS / 1_000);
export const HOOKS_URL = "https://hooks.example.com";
export const TARGET = "/hooks/ch_1";
export const URL_OF_CHANNEL = HOOKS_URL + TARGET;

const HOUR_MS = 3_600_000;
const same = (secret: string): Pair => ({ secret, key: secret });

/** Secrets that are the key as they stand. */
export const texts = (...all: readonly [string, string, string]): readonly [Pair, Pair, Pair] => [
  same(all[0]),
  same(all[1]),
  same(all[2]),
];
const TEXTS = texts("c6f1bd0ac3a34b7e9d0f5a", "7e2b9c51d8424fd0b6a3f1", "00000000000000000000ff");

/** A JSON body without spaces, as most senders write it. */
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

/** A JSON body with the headers that say what it is. */
export const delivery = (headers: Readonly<Record<string, string>>, body: unknown): Sent => ({
  headers: { ...JSON_TYPE, ...headers },
  body: json(body),
});

/** The same with another body, of which nothing is signed. */
export const hidden = (sent: Sent): Sent => ({ ...sent, body: sent.body.replace("{", '{"altered":true,') });

/** Signs by a keyed hash of the body in a header. */
export const ofBody =
  (name: string, prefix = "", hashName = "sha256", digest: Digest = "hex"): Recipe["sign"] =>
  (sent, key) =>
    withHeaders(sent, { [name]: prefix + hmac(hashName, key, sent.body, digest) });

/** Sends `user:password` along (RFC 7617). */
export const basic = (sent: Sent, credentials: string): Sent =>
  withHeaders(sent, { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` });

/** One case, computed unless it says otherwise. */
export const caseOf = (parts: Pick<Case, "name" | "kind" | "request" | "expect"> & Partial<Case>): Case => {
  const { name, kind, origin = "computed", ...rest } = parts;
  return { name, kind, origin, secrets: [], arrivedAt: iso(AT_MS), ...rest };
};

/** The answer to a handshake. */
export const answer = (
  body: string,
  parts: Partial<Extract<Expected, { reply: unknown }>["reply"]> = {},
) => ({
  status: 200, contentType: "text/plain", headers: {}, body,
  ...parts,
});

/** All cases of a provider: what it sends, and what is to be refused. */
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
  const cases: Case[] = [make({ name: "a delivery", kind: "accept", request: signed, expect: { events } })];
  if (uncovered !== undefined) {
    const name = "another body, of which nothing is signed";
    cases.push(make({ name, kind: "uncovered", request: uncovered(signed), expect: { events } }));
  }
  if (recipe.secrets === null) return [...cases, ...(recipe.more ?? [])];
  cases.push(
    make({
      name: "signed under another secret",
      kind: "wrong secret",
      request: sign(sent, other.key, AT_MS),
      expect: { refused: recipe.wrong ?? "mismatch" },
    }),
    make({
      name: "altered after it was signed",
      kind: "altered",
      request: alter(signed),
      expect: { refused: recipe.altered ?? "mismatch" },
    }),
  );
  if (toleranceSeconds !== undefined) {
    const arrivedAt = iso(AT_MS + (toleranceSeconds + 1) * 1_000);
    const expect = { refused: "stale" } as const;
    cases.push(make({ name: "too late", kind: "stale", request: signed, arrivedAt, expect }));
  }
  const lateMs = AT_MS + 2 * HOUR_MS;
  cases.push(
    make({
      name: "under the old secret, while both are valid",
      kind: "rotated",
      secrets: rotation,
      request: signed,
      expect: { events },
    }),
    make({
      name: "under the new secret, while both are valid",
      kind: "rotated",
      secrets: rotation,
      request: sign(sent, next.key, AT_MS),
      expect: { events },
    }),
    make({
      name: "under the old secret, after its end",
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
