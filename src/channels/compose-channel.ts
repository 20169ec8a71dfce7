/** A list that Inlet polls, or an object at which it registers a channel's address, with the members of a preset that name it. */
export type ProviderApi =
  | { readonly config: Readonly<Record<string, unknown>> }
  | { readonly target: string; readonly baseUrl: string };

/** Channel settings that several apps can share, as a blueprint contains them. */
export interface ChannelTemplate {
  readonly uid: string;
  readonly kind: string;
  readonly title: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly object[];
}

/** Channel settings of one app, which no blueprint may contain. */
export interface OwnSettings {
  readonly connectionId?: string | undefined;
  readonly registration?: Readonly<Record<string, unknown>> | undefined;
  readonly secrets?: readonly { readonly value: string }[] | undefined;
}

export interface ApiCall {
  readonly method: "POST";
  readonly path: string;
  readonly body: object;
}

/** Returns the channel that receives the webhooks of a provider, or of any sender if `preset` is `undefined`. */
export const composeWebhook = (
  uid: string,
  title: string,
  preset: string | undefined,
  types: readonly string[],
): ChannelTemplate => ({
  uid,
  kind: "webhook",
  title,
  config: preset === undefined ? {} : { preset },
  events: types.map((type) => ({ type })),
});

/** Returns the channel that polls a list of a provider. */
export const composePoll = (
  uid: string,
  title: string,
  { preset, stream }: { readonly preset: string; readonly stream: string },
  params: Readonly<Record<string, unknown>>,
): ChannelTemplate => ({ uid, kind: "polling", title, config: { preset, stream, params }, events: [] });

/** Settings of a channel that polls any API. */
export interface UrlPoll {
  readonly itemsPath: string;
  /** `undefined` to tell items apart by their whole content. */
  readonly itemId: string | undefined;
  readonly intervalSeconds: number;
}

/** Returns the channel that polls any API, and publishes each item that it has not seen. */
export const composeUrlPoll = (
  uid: string,
  url: string,
  { itemsPath, itemId, intervalSeconds }: UrlPoll,
  events: readonly object[],
): ChannelTemplate => ({
  uid,
  kind: "polling",
  title: titleOf(url),
  config: {
    request: { url },
    schedule: { intervalSeconds },
    itemsPath,
    ...(itemId !== undefined && { itemId }),
    order: "unordered",
    discriminator: { by: "seenSet" },
    startAt: "earliest",
    run: "always",
  },
  events,
});

/** Returns the channel that reads a stream of server-sent events. */
export const composeStream = (uid: string, url: string, events: readonly object[]): ChannelTemplate => ({
  uid,
  kind: "sse",
  title: titleOf(url),
  config: { url, run: "always" },
  events,
});

const titleOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : url);

/** Returns the call that creates the blueprint of a new app with one channel. */
export const composeBlueprint = (uid: string, title: string, channel: ChannelTemplate): ApiCall => ({
  method: "POST",
  path: "/blueprints",
  body: { uid, title, channels: [channel] },
});

/** Returns the call that installs such a blueprint as an app. */
export const composeInstall = (blueprintId: string, uid: string, settings: OwnSettings): ApiCall => ({
  method: "POST",
  path: "/apps/install",
  body: {
    blueprintId,
    channels: Object.values(settings).some((value) => value !== undefined) ? { [uid]: settings } : {},
  },
});

/** Returns the call that adds a channel to an existing app. */
export function composeAddition(
  appId: string,
  channel: ChannelTemplate,
  { connectionId, registration, secrets }: OwnSettings,
): ApiCall {
  const config = {
    ...channel.config,
    ...(registration && { registration }),
    ...(secrets && { secrets }),
  };
  return {
    method: "POST",
    path: `/apps/${encodeURIComponent(appId)}/channels`,
    body: { ...channel, config, ...(connectionId !== undefined && { connectionId }) },
  };
}

/** Returns the origin that Inlet calls, or `undefined` while a parameter of it is missing. */
export function findOrigin(
  api: ProviderApi,
  params: Readonly<Record<string, unknown>>,
  baseUrl?: string,
): string | undefined {
  const url = "target" in api ? (baseUrl ?? api.baseUrl) : String(toRecord(api.config.request).url ?? "");
  const filled = url.replace(/\{\{params\.(\w+)\}\}/g, (text, name) => String(params[name] ?? text));
  const [start = ""] = /^https?:\/\/[^/?#]+/.exec(filled) ?? [];
  return URL.canParse(start) && !start.includes("{{") ? new URL(start).origin : undefined;
}

const toRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
