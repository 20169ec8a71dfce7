import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isVerified, senderOf } from "./support.ts";

/** A delivery that somebody else has signed; `origin` says where it is published. */
interface Vector {
  readonly name: string;
  readonly origin: string;
  readonly config: { readonly secrets?: readonly { readonly value: string }[] };
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

  it("is refused with any one byte of the body changed, added or missing", async () => {
    for (let at = 0; at < parts.body.length; at++) {
      const body = Buffer.from(parts.body);
      body.writeUInt8((body.readUInt8(at) ^ 1) & 0xff, at);
      expect([at, await isVerified(sender, { ...parts, body })]).toEqual([at, false]);
    }
    for (const body of [Buffer.concat([parts.body, Buffer.from("x")]), parts.body.subarray(0, -1)]) {
      expect(await isVerified(sender, { ...parts, body })).toBe(false);
    }
  });

  it.runIf(vector.config.secrets)("is refused under another secret", async () => {
    // Of the same form, so that it is the key that is wrong and not how it is written.
    const secrets = vector.config.secrets?.map(({ value }) => ({
      value: value.replace(/[0-9a-zA-Z](?=[0-9a-zA-Z]{3})/g, "4"),
    }));
    expect(await isVerified(senderOf({ ...vector.config, secrets }), parts)).toBe(false);
  });
});
