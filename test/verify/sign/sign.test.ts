import { describe, expect, it } from "vitest";
import { createKeyCaches } from "../../../src/verify/keys/key-cache.ts";
import { readPresets } from "../../../src/verify/presets.ts";
import { freshenSample } from "../../../src/verify/sign/freshen-sample.ts";
import { signRequest } from "../../../src/verify/sign/sign.ts";
import { compileSender } from "../../../src/verify/verify.ts";
import { readVectors } from "../preset-vectors.ts";
import { HOOKS_URL, parseSender, TARGET } from "../support.ts";

const presets = readPresets();
const vectors = readVectors();
const NOW_MS = Date.parse("2027-05-05T05:05:05Z");

const keys = createKeyCaches(async () => {
  throw new Error("fetching is not available in this test");
})("org_1");

function sampleRequest(name: string) {
  const preset = presets.get(name);
  if (preset === undefined) throw new Error(name);
  const { headers, query, body } = preset.sample;
  const target = Object.keys(query).length === 0 ? TARGET : `${TARGET}?${new URLSearchParams(query)}`;
  const one = vectors.get(name)?.cases.find(({ kind }) => kind === "accept");
  return { preset, one, request: { method: "POST", headers, target, body: Buffer.from(body) } };
}

async function send(name: string, secret: string) {
  const { preset, one, request } = sampleRequest(name);
  const fresh = freshenSample(request, preset, { type: undefined, random: Math.random });
  if (!fresh.ok) throw new Error(fresh.error);
  const sender = parseSender({ ...one?.config, preset: name, secrets: one?.secrets }, presets);
  const options = { secret, hooksUrl: HOOKS_URL, nowMs: NOW_MS, readAs: sender.readAs };
  const signed = await signRequest(fresh.value, sender.verification, options);
  const verified = signed.ok
    ? await compileSender(sender, { hooksUrl: HOOKS_URL, keys, onShadowed: () => {} }).verify({
        ...signed.value,
        arrivedAtMs: NOW_MS,
      })
    : undefined;
  return { signed, verified, request: fresh.value };
}

describe("a sample request of a provider", () => {
  it("can be signed for every preset with a shared secret, and signing fails for all other presets", async () => {
    const unsigned: string[] = [];
    for (const name of presets.keys()) {
      const secret = vectors.get(name)?.cases.find(({ kind }) => kind === "accept")?.secrets[0]?.value ?? "";
      const { signed, verified } = await send(name, secret);
      if (signed.ok) expect(verified?.ok, name).toBe(true);
      else unsigned.push(`${name}: ${signed.error}`);
    }
    expect(unsigned.map((line) => line.split(":")[0])).toEqual([
      "aws-sns",
      "discord",
      "gmail",
      "google-pubsub",
      "paypal",
      "sendgrid",
      "sendgrid-inbound",
      "telnyx",
      "wise",
    ]);
    for (const line of unsigned) expect(line).toContain("private key");
  });

  it("is rejected if it was signed with another secret, and signing fails with an invalid secret", async () => {
    const { verified } = await send("github", "another");
    expect(verified?.ok).toBe(false);
    expect((await send("standard-webhooks", "no base64!")).signed.ok).toBe(false);
  });

  it("gets a new event id and the requested event type each time it is sent", () => {
    const freshen = (name: string, type: string | undefined) => {
      const { preset, request } = sampleRequest(name);
      return freshenSample(request, preset, { type, random: Math.random });
    };
    const [one, two] = [freshen("stripe", "invoice.paid"), freshen("stripe", undefined)].map((fresh) =>
      JSON.parse(fresh.ok ? fresh.value.body.toString() : "null"),
    );
    expect([one.type, two.type]).toEqual(["invoice.paid", "charge.succeeded"]);
    expect(one.id).toMatch(/^evt_\w{16}$/);
    expect(one.id).not.toBe(two.id);
    const push = freshen("github", "issues");
    expect(push.ok && push.value.headers["x-github-event"]).toBe("issues");
    expect(push.ok && push.value.headers["x-github-delivery"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-/);
    expect(freshen("docker-hub", "x").ok).toBe(false);
  });
});
