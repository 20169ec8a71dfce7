import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isVerified, senderOf } from "./support.ts";

/** A published delivery with its signature; `origin` is the address of its source. */
interface Vector {
  readonly name: string;
  readonly origin: string;
  readonly config: {
    readonly verification: { readonly keys?: { readonly keys?: readonly string[] } };
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

describe.each(vectors)("$name", (vector) => {
  const sender = senderOf(vector.config);
  const parts = partsOf(vector);

  it("is accepted", async () => {
    expect(await isVerified(sender, parts)).toBe(true);
  });

  it("is refused when any one byte of the body is changed, added or missing", async () => {
    for (let at = 0; at < parts.body.length; at++) {
      const body = Buffer.from(parts.body);
      body.writeUInt8((body.readUInt8(at) ^ 1) & 0xff, at);
      expect([at, await isVerified(sender, { ...parts, body })]).toEqual([at, false]);
    }
    for (const body of [Buffer.concat([parts.body, Buffer.from("x")]), parts.body.subarray(0, -1)]) {
      expect(await isVerified(sender, { ...parts, body })).toBe(false);
    }
  });

  it("is refused under another key", async () => {
    expect(await isVerified(senderOf(underAnotherKey(vector.config)), parts)).toBe(false);
  });
});

/** The same settings with a key of the same form, so that it is the key that is wrong and not how it is written. */
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
