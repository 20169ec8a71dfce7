import { afterAll, beforeAll, expect, it } from "vitest";
import { lookAt, startTestConsole, type TestConsole } from "../support/console.ts";

let console: TestConsole;
beforeAll(async () => {
  console = await startTestConsole();
});
afterAll(() => console?.[Symbol.asyncDispose]());

it("a provider is chosen, its channel made, its secret set, and a test event is on its topic", async () => {
  await using opened = await console.open("/start");
  const { page } = opened;
  await page.getByLabel("Who sends?").fill("strip");
  await page.getByRole("button", { name: "Stripe", exact: true }).click();
  expect(await page.getByLabel("Events to take").inputValue()).toBe("charge.succeeded");
  await page.getByRole("button", { name: "Make the channel" }).click();
  await page.getByText("needs secret").waitFor();
  expect(await page.getByRole("figure", { name: "address" }).textContent()).toContain("/hooks/ch_");
  await page.getByLabel("Signing secret").fill("whsec_0123456789");
  await page.getByRole("button", { name: "Set the secret" }).click();
  await page.getByText("ready", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page.getByText("is on its topic").waitFor();
  const [app] = await console.gateway
    .api<{ id: string }[]>("GET", "/apps?limit=200")
    .then((all) => all.slice(-1));
  const events = await console.gateway.api<{ type: string }[]>("GET", `/apps/${app?.id}/events`);
  expect(events.map(({ type }) => type)).toEqual(["charge.succeeded"]);
  // The address leads back to the same step.
  await page.reload();
  await page.getByLabel("API key").waitFor();
});

it("the steps look as they should, and hold nothing that keeps people out, in both themes, wide and narrow", async () => {
  await lookAt(console, {
    name: "start",
    path: "/start",
    ready: (page) => page.getByRole("button", { name: "Stripe", exact: true }).waitFor(),
  });
  await lookAt(console, {
    name: "start-channel",
    path: "/start?preset=stripe",
    ready: (page) => page.getByRole("button", { name: "Make the channel" }).waitFor(),
  });
});
