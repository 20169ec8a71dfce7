import {
  type ChannelTemplate,
  composePoll,
  composeStream,
  composeUrlPoll,
  composeWebhook,
  findOrigin,
} from "../../channels/compose-channel.ts";
import { findNearest } from "../../lib/nearest.ts";
import type { Preset } from "../../verify/presets.ts";
import { type Api, ApiError, formatPath } from "../client/api.ts";
import { parseParams } from "../client/params.ts";
import { usageError } from "../exit.ts";

export interface PlanOptions {
  readonly name?: string;
  readonly type?: readonly string[];
  readonly typePath?: string;
  readonly secret?: string;
  readonly token?: string;
  readonly connection?: string;
  readonly stream?: string;
  readonly target?: string;
  readonly baseUrl?: string;
  readonly items?: string;
  readonly id?: string;
  readonly every?: number;
}

/** Channel that `inlet receive` sets up. */
export interface Plan {
  readonly channel: ChannelTemplate;
  /** Preset of the sender. `undefined` if there is none, or if Inlet polls the provider. */
  readonly preset: Preset | undefined;
  readonly registration:
    | { readonly target: string; readonly params: object; readonly baseUrl?: string }
    | undefined;
  /** API that Inlet calls. `undefined` if the sender only calls Inlet. */
  readonly called: CalledApi | undefined;
  /** Whether the channel fetches its events, so that it has no address. */
  readonly isFetched: boolean;
}

export interface CalledApi {
  readonly title: string;
  /** Credentials that the API needs. `null` if it is open. `undefined` if that is unknown. */
  readonly connection: Preset["streams"][number]["connection"] | undefined;
  /** Origin of the API. `undefined` if a parameter of it is missing. */
  readonly origin: string | undefined;
}

const POLL_SECONDS = 60;

/**
 * Translates the arguments of `inlet receive` to a channel.
 *
 * @throws CommandError if the arguments do not fit together, or name no provider
 */
export async function composePlan(
  api: Api,
  [from, ...rest]: readonly [string, ...string[]],
  options: PlanOptions,
): Promise<Plan> {
  rejectUnused(from, rest, options);
  switch (from) {
    case "webhook":
    case "cloudevents":
      if (rest.length > 0) throw usageError(`\`inlet receive ${from}\` takes no further arguments.`);
      return from === "webhook" ? planWebhook(options) : planCloudEvents(options);
    case "sse":
      return planStream(requireUrl(from, rest), options);
    case "poll":
      return isUrl(rest[0])
        ? planPoll(requireUrl(from, rest), options)
        : planProviderPoll(api, rest, options);
    default:
      return planProvider(await getPreset(api, from), rest, options);
  }
}

/** Options of each form of the command. All forms have `--name` and `--type`. */
const OPTIONS = {
  webhook: ["typePath"],
  cloudevents: [],
  sse: ["typePath", "token", "connection"],
  pollUrl: ["typePath", "token", "connection", "items", "id", "every"],
  pollProvider: ["typePath", "token", "connection", "stream", "every"],
  provider: ["typePath", "secret", "token", "connection", "target", "baseUrl"],
} as const satisfies Record<string, readonly (keyof PlanOptions)[]>;

const ALL_OPTIONS = [...new Set(Object.values(OPTIONS).flat())];

/** @throws CommandError if an option has no effect in this form of the command */
function rejectUnused(from: string, [named]: readonly string[], options: PlanOptions): void {
  const form = findForm(from, named);
  const accepted: readonly string[] = OPTIONS[form];
  const unused = ALL_OPTIONS.find((name) => options[name] !== undefined && !accepted.includes(name));
  const command = from === "poll" ? `poll ${form === "pollUrl" ? "<url>" : "<provider>"}` : from;
  if (unused === "secret")
    throw usageError(
      `\`inlet receive ${command}\` verifies no signature, so it has no --secret. For signed webhooks, name the provider, such as standard-webhooks.`,
    );
  if (unused !== undefined) {
    const others = ["--name", "--type", ...accepted.map(toFlag)].join(", ");
    throw usageError(
      `${toFlag(unused)} has no effect with \`inlet receive ${command}\`. Its options are ${others}.`,
    );
  }
  if (options.typePath !== undefined && !options.type?.length)
    throw usageError("--type-path needs --type with the types to publish.");
}

function findForm(from: string, named: string | undefined): keyof typeof OPTIONS {
  if (from === "poll") return isUrl(named) ? "pollUrl" : "pollProvider";
  return from === "webhook" || from === "cloudevents" || from === "sse" ? from : "provider";
}

const toFlag = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function planWebhook({ name = "webhook", type = [], typePath }: PlanOptions): Plan {
  const channel = composeWebhook(name, "Webhooks", undefined, type.length > 0 ? [] : ["received"]);
  return toPlan({
    ...channel,
    events: type.length > 0 ? define(type, typePath ?? "$.type") : channel.events,
  });
}

function planCloudEvents({ name = "cloudevents", type = [] }: PlanOptions): Plan {
  if (type.length === 0)
    throw usageError("`inlet receive cloudevents` needs --type with the types of the events.");
  return toPlan({ uid: name, kind: "cloudevents", title: "CloudEvents", config: {}, events: define(type) });
}

function planStream(url: string, { name = nameOf(url), type = [], typePath = "$event" }: PlanOptions): Plan {
  const events = type.length > 0 ? define(type, typePath) : define(["received"]);
  return toPlan(composeStream(name, url, events), calledAt(url));
}

function planPoll(url: string, options: PlanOptions): Plan {
  const {
    name = nameOf(url),
    type = [],
    typePath = "$.type",
    items: itemsPath = "$",
    id: itemId,
    every: intervalSeconds = POLL_SECONDS,
  } = options;
  const events = type.length > 0 ? define(type, typePath) : define(["received"]);
  return toPlan(composeUrlPoll(name, url, { itemsPath, itemId, intervalSeconds }, events), calledAt(url));
}

const calledAt = (url: string): CalledApi => ({
  title: url,
  connection: undefined,
  origin: new URL(url).origin,
});

async function planProviderPoll(
  api: Api,
  [named, ...texts]: readonly string[],
  { name, stream: wanted, every, type = [], typePath }: PlanOptions,
): Promise<Plan> {
  if (named === undefined) throw usageError("Name a URL or a provider: `inlet receive poll <url|provider>`.");
  const preset = await getPreset(api, named);
  const stream = preset.streams.find((one) => wanted === undefined || one.name === wanted);
  if (stream === undefined)
    throw usageError(
      preset.streams.length === 0
        ? `Inlet knows no list of ${preset.title} to poll. Receive its webhooks with \`inlet receive ${named}\`.`
        : `${preset.title} has no list ${wanted}. Choose one of ${preset.streams.map((one) => one.name).join(", ")}.`,
    );
  const params = parseParams(texts, stream.params);
  requireParams(stream.params, params, `inlet receive poll ${named}`);
  const uid = name ?? `${preset.preset}-${stream.name}`;
  const channel = composePoll(uid, stream.title, { preset: preset.preset, stream: stream.name }, params);
  const schedule = every === undefined ? {} : { schedule: { intervalSeconds: every } };
  const events = type.length > 0 ? define(type, typePath) : [];
  return toPlan(
    { ...channel, config: { ...channel.config, ...schedule, startAt: "earliest", run: "always" }, events },
    { title: preset.title, connection: stream.connection, origin: findOrigin(stream, params) },
  );
}

function planProvider(preset: Preset, texts: readonly string[], options: PlanOptions): Plan {
  const { name = preset.preset, type = [], typePath, token, connection, target: wanted, baseUrl } = options;
  const template = composeWebhook(name, preset.title, preset.preset, type);
  const channel = typePath === undefined ? template : { ...template, events: define(type, typePath) };
  const isRegistered =
    texts.length > 0 || [token, connection, wanted, baseUrl].some((value) => value !== undefined);
  if (!isRegistered) return { channel, preset, registration: undefined, called: undefined, isFetched: false };
  const target = preset.registrations.find((one) => wanted === undefined || one.target === wanted);
  if (target === undefined)
    throw usageError(
      preset.registrations.length === 0
        ? `${preset.title} offers no API for webhooks. Leave out the parameters, and enter the address there yourself.`
        : `${preset.title} has no target ${wanted}. Choose one of ${preset.registrations.map((one) => one.target).join(", ")}.`,
    );
  const params = parseParams(texts, target.params);
  requireParams(target.params, params, `inlet receive ${preset.preset}`);
  return {
    channel,
    preset,
    registration: { target: target.target, params, ...(baseUrl !== undefined && { baseUrl }) },
    called: {
      title: preset.title,
      connection: target.connection,
      origin: findOrigin(target, params, baseUrl),
    },
    isFetched: false,
  };
}

const toPlan = (channel: ChannelTemplate, called?: CalledApi): Plan => ({
  channel,
  preset: undefined,
  registration: undefined,
  called,
  isFetched: called !== undefined,
});

const define = (types: readonly string[], typePath?: string): readonly object[] =>
  types.map((type) => ({ type, ...(typePath !== undefined && { typePath }) }));

/** Returns the preset of a provider. @throws CommandError with a suggestion if there is none */
async function getPreset(api: Api, name: string): Promise<Preset> {
  try {
    return await api.get<Preset>(formatPath("presets", name));
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    const { items } = await api.list<Preset>("/presets");
    const nearest = findNearest(name, [
      ...items.map(({ preset }) => preset),
      "webhook",
      "cloudevents",
      "sse",
      "poll",
    ]);
    const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
    throw usageError(
      `Inlet knows no provider ${name}.${hint} \`inlet presets\` lists them. For any other sender, use \`inlet receive webhook\`.`,
    );
  }
}

function requireParams(schema: Readonly<Record<string, unknown>>, params: object, command: string): void {
  const required = (schema.required ?? []) as readonly string[];
  const missing = required.filter((name) => !Object.hasOwn(params, name));
  if (missing.length === 0) return;
  const example = required.map((name) => `${name}=…`).join(" ");
  throw usageError(`Parameters are missing: ${missing.join(", ")}. Write \`${command} ${example}\`.`);
}

const isUrl = (text: string | undefined): text is string => text !== undefined && /^https?:\/\//.test(text);

function requireUrl(from: string, [url, ...others]: readonly string[]): string {
  if (isUrl(url) && URL.canParse(url) && others.length === 0) return url;
  throw usageError(`\`inlet receive ${from}\` needs one URL, such as https://api.example.com/events.`);
}

/** Returns a name for an app and a channel that read a URL. */
const nameOf = (url: string): string => {
  const { hostname, pathname } = new URL(url);
  const words = `${hostname}${pathname}`.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-|-$/g, "");
  return words.slice(0, 64);
};
