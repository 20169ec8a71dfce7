import { afterEach, describe, expect, it } from "vitest";
import type { StartEmulator } from "../support/providers/emulator.ts";
import { startGoogleCalendar } from "../support/providers/google-push.ts";
import { startStripe } from "../support/providers/stripe.ts";
import { eventually, type RegistrationRig, startRegistrationRig } from "./support.ts";

let rig: RegistrationRig | undefined;
afterEach(async () => {
  await rig?.[Symbol.asyncDispose]();
  rig = undefined;
});

async function given(start: StartEmulator): Promise<RegistrationRig> {
  rig = await startRegistrationRig(start);
  return rig;
}

const CALENDAR = { preset: "google-calendar", params: { calendarId: "primary" } };

describe("a registration that cannot be extended", () => {
  it("is replaced at half of its lifetime, and the old one is removed afterwards", async () => {
    const { register, startWorker, passDays } = await given(startGoogleCalendar);
    startWorker();
    const channel = await register(CALENDAR);
    const { providerId } = await channel.untilState("active");
    passDays(2);
    await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
    passDays(2);
    await eventually(() => expect(channel.hooks().map(({ id }) => id)).not.toContain(providerId));
    expect(channel.hooks()).toHaveLength(1);
    await channel.untilState("active");
  });

  it("stays until the new one is active, even if the provider fails for days", async () => {
    const { provider, register, startWorker, passDays, passSeconds } = await given(startGoogleCalendar);
    startWorker();
    const channel = await register(CALENDAR);
    const { providerId } = await channel.untilState("active");
    provider.failNext("create", { status: 503 }, 3);
    passDays(3.6);
    await channel.untilState("failed");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
    await eventually(() => {
      passSeconds(60);
      expect(channel.hooks().map(({ id }) => id)).not.toEqual([providerId]);
    });
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
  });

  it("is created again after all workers were down until its end", async () => {
    const { register, startWorker, passDays } = await given(startGoogleCalendar);
    const worker = startWorker();
    const channel = await register(CALENDAR);
    const { providerId } = await channel.untilState("active");
    await worker[Symbol.asyncDispose]();
    passDays(30);
    expect(channel.hooks()).toEqual([]);
    startWorker();
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
    expect(channel.hooks()[0]?.id).not.toBe(providerId);
  });

  it("that a lost response created counts as the registration, because its id was chosen by Inlet", async () => {
    const { provider, register, startWorker, passSeconds } = await given(startGoogleCalendar);
    provider.failNext("create", { lost: "response" });
    startWorker();
    const channel = await register(CALENDAR);
    await channel.untilState("failed");
    passSeconds(3_600);
    await channel.untilState("active");
    expect(channel.hooks()).toHaveLength(1);
  });
});

describe("a secret that the provider shows once", () => {
  it("is replaced together with the webhook if the response was lost", async () => {
    const { provider, register, startWorker, passSeconds } = await given(startStripe);
    provider.failNext("create", { lost: "response" });
    startWorker();
    const channel = await register({ preset: "stripe", params: {} });
    await channel.untilState("failed");
    const [lost] = channel.hooks();
    passSeconds(3_600);
    await channel.untilState("active");
    expect(channel.hooks()).toHaveLength(1);
    expect(channel.hooks()[0]?.id).not.toBe(lost?.id);
  });

  it("survives a change of the event types and a new address", async () => {
    const { api, provider, register, startWorker } = await given(startStripe);
    startWorker();
    const channel = await register({ preset: "stripe", params: {} });
    const { providerId } = await channel.untilState("active");
    const secret = channel.hooks()[0]?.secret;
    await api.call.put(channel.path, { events: [{ type: "charge.succeeded" }] });
    const { url } = await api.call.post(`${channel.path}/rotate`, {});
    await eventually(() =>
      expect(provider.hooks()).toMatchObject([
        { id: providerId, address: url, events: ["charge.succeeded"], secret },
      ]),
    );
  });
});
