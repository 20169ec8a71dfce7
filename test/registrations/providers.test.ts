import { describe, expect, it } from "vitest";
import { getPresets } from "../../src/verify/presets.ts";
import { installApp } from "../support/channels.ts";
import { givenGateway } from "../support/given-gateway.ts";
import type { StartEmulator } from "../support/providers/emulator.ts";
import { startGitHub } from "../support/providers/github.ts";
import { startGoogleCalendar, startGoogleDrive } from "../support/providers/google-push.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { startStripe } from "../support/providers/stripe.ts";
import { startWebSubHub } from "../support/providers/websub-hub.ts";
import { eventually, type Registration } from "./support.ts";

/** A registration of a preset with its emulator. */
interface Sample {
  readonly preset: string;
  readonly target: string;
  readonly start: StartEmulator;
  readonly params: (origin: string) => Readonly<Record<string, unknown>>;
  /** Whether the provider needs no credentials. */
  readonly isOpen?: boolean;
  /** Whether the hooks end only with their lease, because Inlet confirms no removal. */
  readonly endsWithLease?: boolean;
  readonly events?: readonly object[];
}

const SAMPLES: readonly Sample[] = [
  {
    preset: "github",
    target: "repository",
    start: startGitHub,
    params: () => ({ owner: "acme", repo: "shop" }),
  },
  { preset: "github", target: "organization", start: startGitHub, params: () => ({ org: "acme" }) },
  { preset: "google-calendar", target: "events", start: startGoogleCalendar, params: () => ({}) },
  { preset: "google-drive", target: "changes", start: startGoogleDrive, params: () => ({}) },
  {
    preset: "microsoft-graph",
    target: "resource",
    start: startMicrosoftGraph,
    params: () => ({ resource: "me/messages" }),
  },
  { preset: "stripe", target: "account", start: startStripe, params: () => ({}) },
  {
    preset: "websub",
    target: "topic",
    start: startWebSubHub,
    params: (hub) => ({ hub, topic: "https://example.com/feed" }),
    isOpen: true,
    endsWithLease: true,
    events: [{ type: "changed" }],
  },
];

/** Registrations whose requests equal those of another preset, apart from the address. */
const SAME_AS_OTHERS = ["youtube channel"];

const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  { registrarTiming: { tickMs: 50, settleMs: 100 } },
);

it("every registration of a preset is tested", () => {
  const all = [...getPresets().values()].flatMap(({ preset, registrations }) =>
    registrations.map(({ target }) => `${preset} ${target}`),
  );
  const tested = SAMPLES.map(({ preset, target }) => `${preset} ${target}`);
  expect([...tested, ...SAME_AS_OTHERS].sort()).toEqual(all.sort());
});

describe.each(SAMPLES)("$preset, $target", (sample) => {
  it("registers the channel once, verifies the provider's deliveries, and removes the registration", async () => {
    const { preset, target, start, params, isOpen = false, endsWithLease = false, events } = sample;
    await using provider = await start({ clock: Date.now });
    const foreign = provider.addForeign("https://other.example/hooks");
    const connection = isOpen
      ? undefined
      : await gateway.api<{ id: string }>("POST", "/connections", {
          name: preset,
          kind: "bearer",
          config: { token: provider.token },
          allowedOrigins: [provider.url],
        });
    const app = await installApp(gateway, []);
    const { url } = await gateway.api<{ url: string }>("POST", `/apps/${app.id}/channels`, {
      uid: "hooks",
      kind: "webhook",
      config: {
        preset,
        registration: {
          ...(connection && { connectionId: connection.id, baseUrl: provider.url }),
          target,
          params: params(provider.url),
        },
      },
      ...(events && { events }),
    });
    const path = `/apps/${app.id}/channels/hooks`;
    const own = () => provider.hooks().filter(({ address }) => address === url);
    await eventually(async () =>
      expect(await gateway.api<Registration>("GET", `${path}/registration`)).toMatchObject({
        state: "active",
        lastError: null,
      }),
    );
    expect(own()).toHaveLength(1);
    const sent = await provider.deliver();
    expect(sent.filter(({ hook }) => hook.address === url)).toMatchObject([{ status: 200 }]);
    await gateway.api("DELETE", path);
    if (!endsWithLease) await eventually(() => expect(own()).toEqual([]));
    await eventually(async () => expect(await gateway.api("GET", "/registrations")).toEqual([]));
    expect(provider.hooks()).toContainEqual(foreign);
  });
});
