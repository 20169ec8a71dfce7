import { hasAddress } from "../../src/data/channels/address-columns.ts";
import type { Outcome } from "../../src/event/outcome.ts";
import { deliver } from "./deliver.ts";
import type { GatewayProcess } from "./gateway-process.ts";
import type { TestSpine } from "./spine.ts";

export interface InstalledChannel {
  readonly id: string;
  readonly uid: string;
  readonly appId: string;
  readonly organizationId: string;
  /** `null` for channels that fetch. */
  readonly url: string | null;
  readonly state: string;
}

export interface InstalledApp {
  readonly id: string;
  readonly organizationId: string;
  readonly channels: readonly InstalledChannel[];
  /** Returns the topic of a channel's events of this type. */
  readonly topicOf: (channelUid: string, type: string) => string;
}

/** Creates a blueprint with these channels and installs it. */
export async function installApp(
  { api }: Pick<GatewayProcess, "api">,
  channels: readonly object[],
): Promise<InstalledApp> {
  const { id: blueprintId } = await api<{ id: string }>("POST", "/blueprints", { title: "test", channels });
  const app = await api<Omit<InstalledApp, "topicOf">>("POST", "/apps/install", { blueprintId });
  return {
    ...app,
    topicOf: (channelUid, type) =>
      `events.${app.organizationId}.apps.app.event_received.${app.id}.${channelUid}.${type}`,
  };
}

/** For apps with a single channel. Throws when the app has none. */
export function channelOf({ channels: [channel] }: InstalledApp): InstalledChannel {
  if (channel === undefined) throw new Error("the app has no channel");
  return channel;
}

/** An installed channel, the only one of its app. */
export interface GivenChannel extends InstalledChannel {
  readonly app: InstalledApp;
  /** API path of the app. */
  readonly appPath: string;
  /** API path of the channel. */
  readonly path: string;
  /** Path of the hook on any gateway. */
  readonly hookPath: string;
  /** Returns the topic of events of this type. */
  readonly topicOf: (type: string) => string;
  /** Sends a delivery that must be accepted. Returns the outcome. */
  readonly send: (body: unknown, headers?: Readonly<Record<string, string>>) => Promise<Outcome>;
}

export interface ChannelInput {
  readonly uid?: string;
  readonly kind?: string;
  readonly config?: object;
  readonly events?: readonly object[];
}

/**
 * Installs an app with this channel. By default it is a webhook channel `main` with one event definition `e`. Secrets are set after the
 * installation, because a blueprint has none.
 */
export async function givenChannel(
  on: TestSpine | Pick<GatewayProcess, "api" | "origin">,
  input: ChannelInput = {},
): Promise<GivenChannel> {
  const { secrets, ...config } = { ...input.config } as { readonly secrets?: readonly object[] };
  const isSpine = "deliver" in on;
  const api: GatewayProcess["api"] = isSpine
    ? async (method, path, body) => (method === "PUT" ? on.api.call.put : on.api.call.post)(path, body)
    : on.api;
  const channel = { uid: "main", kind: "webhook", events: [{ type: "e" }], ...input, config };
  const app = await installApp({ api }, [channel]);
  const { id, uid } = channelOf(app);
  const appPath = `/apps/${app.id}`;
  const path = `${appPath}/channels/${id}`;
  const hookPath = `/hooks/${id}`;
  return {
    ...(secrets === undefined
      ? channelOf(app)
      : await api<InstalledChannel>("PUT", path, { config: { secrets } })),
    app,
    appPath,
    path,
    hookPath,
    topicOf: (type) => app.topicOf(uid, type),
    send: (body, headers) =>
      isSpine ? on.send(id, body, headers) : deliver(`${on.origin}${hookPath}`, body, headers),
  };
}

/** Returns the internal channel id that a channel's address stands for. */
export async function numberOf({ api }: Pick<TestSpine, "api">, address: string): Promise<number> {
  const { number } = await api.database.db
    .selectFrom("channels")
    .select("number")
    .where(hasAddress(api.keyring, address))
    .executeTakeFirstOrThrow();
  return number;
}
