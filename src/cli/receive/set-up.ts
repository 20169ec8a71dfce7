import { isDeepStrictEqual } from "node:util";
import {
  type ApiCall,
  type ChannelTemplate,
  composeAddition,
  composeBlueprint,
  composeInstall,
  type OwnSettings,
} from "../../channels/compose-channel.ts";
import type { Channel } from "../../channels/entity.ts";
import { formatPath } from "../client/api.ts";
import type { Blueprint } from "../client/blueprint.ts";
import type { Client } from "../client/command.ts";
import type { App } from "../client/entities.ts";
import { usageError } from "../exit.ts";
import { formatCall, type Steps } from "./steps.ts";

export interface SetUp {
  readonly app: App;
  readonly channel: Channel;
  /** Whether the app has no other channel, as an app that `inlet receive` creates. */
  readonly isOwnApp: boolean;
}

/** Names of the shell variables that printed commands use for secrets. */
const SECRET_VARIABLE = "INLET_SECRET";

/** App and channel that exist before the set-up. */
export interface Place {
  /** App that the user has selected, which gets the channel. */
  readonly selected: App | undefined;
  /** Channel of an earlier run. */
  readonly found: SetUp | undefined;
}

/** Looks for the channel of an earlier run. @throws CommandError if the names belong to something else */
export async function findPlace(client: Client, template: ChannelTemplate): Promise<Place> {
  const selected = await client.selectedApp();
  const existing = selected ?? (await findOwnApp(client, template.uid));
  const found = existing && (await findChannel(client, existing, template));
  if (existing && !selected && !found)
    throw usageError(
      `The app ${existing.uid} has no channel ${template.uid}. Add one with --app ${existing.uid}, or choose another name with --name.`,
    );
  return { selected, found: found && { ...found, isOwnApp: selected === undefined && found.isOwnApp } };
}

/** Creates the channel with its blueprint and app, or changes the settings of the existing channel. A secret replaces the stored one. */
export async function setUpChannel(
  client: Client,
  steps: Steps,
  { selected, found }: Place,
  template: ChannelTemplate,
  settings: OwnSettings,
): Promise<SetUp> {
  if (found) return reuse(client, steps, found, settings);
  if (selected) return addTo(client, steps, selected, template, settings);
  return install(client, steps, template, settings);
}

async function findOwnApp({ api }: Client, uid: string): Promise<App | undefined> {
  const { items } = await api.list<App>("/apps");
  const [found, ...others] = items.filter((app) => app.uid === uid && app.spaceId !== null);
  if (others.length > 0) throw usageError(`Several apps have the uid ${uid}. Choose one with --app.`);
  return found;
}

/** Returns the app's channel with the uid of the template. @throws CommandError if it receives something else */
async function findChannel(
  { api }: Client,
  app: App,
  { uid, kind, config, events }: ChannelTemplate,
): Promise<SetUp | undefined> {
  const { items } = await api.list<Channel>(formatPath("apps", app.id, "channels"));
  const found = items.find((channel) => channel.uid === uid);
  if (found === undefined) return undefined;
  // The stored settings include defaults, so only the given members of objects are compared.
  const hasEvents = events.length === 0 || isDeepStrictEqual(found.events, events);
  if (found.kind === kind && hasEvents && contains(found.config, config))
    return { app, channel: found, isOwnApp: items.length === 1 && app.blueprintId !== null };
  throw usageError(
    `The channel ${uid} of the app ${app.uid} has other settings. Choose another name with --name, or delete the channel first.`,
  );
}

function contains(stored: unknown, given: unknown): boolean {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return isDeepStrictEqual(stored, given);
  if (typeof stored !== "object" || stored === null) return false;
  return Object.entries(given).every(([name, value]) => contains(Reflect.get(stored, name), value));
}

async function reuse(
  client: Client,
  steps: Steps,
  found: SetUp,
  { secrets, registration, connectionId }: OwnSettings,
): Promise<SetUp> {
  const { app, channel } = found;
  const { uid } = channel;
  const facts = { id: app.id, uid: app.uid, channel: uid, created: false };
  steps.done(
    { step: "app", text: `${app.uid} exists, with the channel ${uid}`, facts },
    `inlet channels get ${uid} --app ${app.uid}`,
  );
  const config = { ...(secrets && { secrets }), ...(registration && { registration }) };
  const body = { ...(Object.keys(config).length > 0 && { config }), ...(connectionId && { connectionId }) };
  if (Object.keys(body).length === 0) return found;
  const path = formatPath("apps", app.id, "channels", uid);
  const changed = await client.api.put<Channel>(path, body);
  const text = secrets ? "stored the new secret" : "stored the new settings";
  steps.done({ step: "settings", text }, callText({ method: "PUT", path, body }, { secrets }));
  return { ...found, channel: changed };
}

async function addTo(
  { api }: Client,
  steps: Steps,
  app: App,
  template: ChannelTemplate,
  settings: OwnSettings,
): Promise<SetUp> {
  const call = composeAddition(app.id, template, settings);
  const channel = await api.post<Channel>(call.path, call.body);
  const facts = { uid: channel.uid, app: app.id, created: true };
  steps.done(
    { step: "channel", text: `${channel.uid} added to the app ${app.uid}`, facts },
    callText(call, settings),
  );
  return { app, channel, isOwnApp: false };
}

async function install(
  { api }: Client,
  steps: Steps,
  template: ChannelTemplate,
  settings: OwnSettings,
): Promise<SetUp> {
  const { uid, title } = template;
  const call = composeBlueprint(uid, title, template);
  const { items } = await api.list<Blueprint>("/blueprints");
  const found = items.find((one) => one.uid === uid);
  if (
    found !== undefined &&
    !found.channels.some((one) => one.uid === uid && contains(one.config, template.config))
  )
    throw usageError(`The blueprint ${uid} has other settings. Choose another name with --name.`);
  const blueprint = found ?? (await api.post<Blueprint>(call.path, call.body));
  const facts = { id: blueprint.id, uid, created: found === undefined };
  if (found) steps.done({ step: "blueprint", text: `${uid} exists`, facts }, `inlet blueprints get ${uid}`);
  else steps.done({ step: "blueprint", text: `${uid} created`, facts }, formatCall(call));

  const installing = composeInstall(blueprint.id, uid, settings);
  const app = await api
    .post<App & { readonly channels: readonly Channel[] }>(installing.path, installing.body)
    .catch(async (error: unknown) => {
      // The next run can then create the blueprint with other settings. The first error is the one to report.
      if (found === undefined) await api.delete(formatPath("blueprints", blueprint.id)).catch(() => {});
      throw error;
    });
  const made = { id: app.id, uid: app.uid, created: true };
  steps.done({ step: "app", text: `${app.uid} installed`, facts: made }, callText(installing, settings));
  const channel = app.channels.find((one) => one.uid === uid);
  if (channel === undefined) throw new Error(`the blueprint ${uid} has no channel ${uid}`);
  return { app, channel, isOwnApp: true };
}

const callText = (
  call: Omit<ApiCall, "method"> & { readonly method: string },
  { secrets = [] }: Pick<OwnSettings, "secrets">,
): string => formatCall(call, Object.fromEntries(secrets.map(({ value }) => [value, SECRET_VARIABLE])));
