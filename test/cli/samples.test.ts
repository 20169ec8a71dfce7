import { describe, expect, it } from "vitest";
import { findSampleBody, readSamples, SAMPLED_PRESETS } from "../../src/cli/samples/samples.ts";
import { readPresets } from "../../src/verify/presets.ts";
import { freshenSample } from "../../src/verify/sign/freshen-sample.ts";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const server = opened(() => startHookServer());
const presets = readPresets();

describe("the samples of `inlet send --event`", () => {
  it.each(SAMPLED_PRESETS)("are published under their own event type: %s", async (name) => {
    const preset = presets.get(name);
    if (preset === undefined) throw new Error(`there is no preset ${name}`);
    // Some of these providers sign with private keys, so the channel verifies a token instead.
    const verification = { scheme: "token", name: "x-token" };
    const samples = await readSamples(name);
    const { id } = await server.open(
      { preset: name, verification, secrets: [{ value: "a-secret" }] },
      [...samples.keys()].map((type) => ({ type })),
    );
    expect(samples.size).toBeGreaterThanOrEqual(3);
    for (const type of samples.keys()) {
      const body = await findSampleBody(name, type);
      if (!body.ok || body.value === undefined) throw new Error(`there is no sample of ${type}`);
      const request = {
        method: "POST",
        target: "/",
        headers: { ...preset.sample.headers, "x-token": "a-secret" },
        body: Buffer.from(body.value),
      };
      const fresh = freshenSample(request, preset, { type, random: Math.random });
      if (!fresh.ok) throw new Error(fresh.error);
      const sent = await server.send(id, { headers: fresh.value.headers, body: fresh.value.body.toString() });
      const { published, quarantined, events } = JSON.parse(sent.text);
      expect({ published, quarantined, type: events[0]?.type }).toEqual({
        published: 1,
        quarantined: 0,
        type,
      });
    }
  });

  it("differ by event type", async () => {
    for (const name of SAMPLED_PRESETS) {
      const bodies = [...(await readSamples(name)).values()].map((body) => JSON.stringify(body));
      expect(new Set(bodies).size, name).toBe(bodies.length);
    }
  });

  it("are named when there is none of the type", async () => {
    const found = await findSampleBody("github", "issue");
    expect(found.ok ? undefined : found.error).toMatch(/event type issue.*issues.*pull_request.*--data/);
    expect(await findSampleBody("svix", "anything")).toEqual({ ok: true, value: undefined });
  });
});
