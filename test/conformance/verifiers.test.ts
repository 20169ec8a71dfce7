import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { SignJWT } from "jose";
import { expect, it } from "vitest";
import { VERIFICATION_SCHEMES } from "../../src/verify/schemes.ts";
import { ARRIVED_AT_MS } from "../verify/support.ts";
import { describeVerifier, type VerifierSamples } from "./verifier.suite.ts";

/** A published delivery with its signature. `origin` is the URL of its source. */
interface Vector {
  readonly name: string;
  readonly origin: string;
  readonly config: {
    readonly verification: { readonly scheme: string; readonly keys?: { readonly keys?: readonly string[] } };
    readonly secrets?: readonly { readonly value: string }[];
  };
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly bodyHex?: string;
  readonly arrivedAtMs?: number;
}

const vectors = ["hmac", "standard-webhooks", "asymmetric"].flatMap(
  (file) =>
    JSON.parse(readFileSync(new URL(`../vectors/verify/${file}.json`, import.meta.url), "utf8")) as Vector[],
);

function partsOf({ target, headers, body = "", bodyHex, arrivedAtMs }: Vector) {
  return {
    body: bodyHex === undefined ? Buffer.from(body) : Buffer.from(bodyHex, "hex"),
    ...(target === undefined ? {} : { target }),
    ...(headers === undefined ? {} : { headers }),
    ...(arrivedAtMs === undefined ? {} : { arrivedAtMs }),
  };
}

const published = vectors.map(
  (vector): VerifierSamples => ({
    name: vector.name,
    config: vector.config,
    otherKey: { config: underAnotherKey(vector.config) },
    parts: partsOf(vector),
  }),
);

const rsa = () => generateKeyPairSync("rsa", { modulusLength: 2_048 });
const { privateKey, publicKey } = rsa();
const jwtBy = (key: typeof publicKey) => ({
  verification: {
    scheme: "jwt",
    algorithms: ["RS256"],
    keys: { from: "settings", keys: [key.export({ format: "pem", type: "spki" }).toString()] },
  },
});
const seconds = ARRIVED_AT_MS / 1_000;
const jwt = await new SignJWT({ iat: seconds, exp: seconds + 600 })
  .setProtectedHeader({ alg: "RS256" })
  .sign(privateKey);
const tokenBy = (value: string) => ({
  verification: { scheme: "token", name: "X-Token" },
  secrets: [{ value }],
});
const hmac = {
  scheme: "hmac",
  algorithm: "sha256",
  encoding: "hex",
  in: "header",
  name: "X-Signature",
};
const eitherBy = (value: string) => ({
  verification: { scheme: "anyOf", of: [hmac, { scheme: "token", name: "X-Token" }] },
  secrets: [{ value }],
});

const own: readonly VerifierSamples[] = [
  {
    name: "jwt",
    config: jwtBy(publicKey),
    otherKey: { config: jwtBy(rsa().publicKey) },
    parts: { body: "{}", headers: { authorization: `Bearer ${jwt}` } },
    bodyIsNotSigned: "the token signs its own claims",
  },
  {
    name: "token",
    config: tokenBy("s3cret"),
    otherKey: { config: tokenBy("an0ther") },
    parts: { body: "{}", headers: { "x-token": "s3cret" } },
    bodyIsNotSigned: "a token does not sign the body",
  },
  {
    name: "anyOf",
    config: eitherBy("s3cret"),
    otherKey: { config: eitherBy("an0ther") },
    parts: { body: "{}", headers: { "x-token": "s3cret" } },
    bodyIsNotSigned: "the weakest scheme is a token, which does not sign the body",
  },
  {
    name: "none",
    config: {},
    otherKey: { none: "the scheme has no key" },
    parts: { body: "{}" },
    bodyIsNotSigned: "the channel address is the only credential",
    needsNothing: "the channel address is the only credential",
  },
];

it("every registered verification scheme is covered by the conformance suite", () => {
  const run = [...vectors.map(({ config }) => config.verification.scheme), ...own.map(({ name }) => name)];
  expect(new Set(run)).toEqual(new Set(VERIFICATION_SCHEMES.map(({ scheme }) => scheme)));
});

for (const samples of [...published, ...own]) describeVerifier(samples);

/** Returns the same settings with another key of the same form, so that only the key itself is wrong. */
function underAnotherKey({ secrets, verification }: Vector["config"]): Vector["config"] {
  if (secrets !== undefined) {
    const other = (value: string): string => value.replace(/[0-9a-zA-Z](?=[0-9a-zA-Z]{3})/g, "4");
    const others = secrets.map(({ value }) => {
      const [prefix = ""] = /^whsec_/.exec(value) ?? [];
      return { value: prefix + other(value.slice(prefix.length)) };
    });
    return { verification, secrets: others };
  }
  const keys = verification.keys?.keys?.map((key) => {
    const { crv } = JSON.parse(key) as { readonly crv: string };
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: crv });
    return JSON.stringify(publicKey.export({ format: "jwk" }));
  });
  if (keys === undefined) throw new Error("the vector has no key");
  return { verification: { ...verification, keys: { ...verification.keys, keys } } };
}
