import { isDeepStrictEqual } from "node:util";
import {
  type CheckChannelDeps,
  type CheckedChannel,
  channelInputSchema,
  checkChannel,
} from "../../channels/check-channel.ts";
import type { Channel } from "../../channels/entity.ts";
import { channelKinds } from "../../channels/kinds.ts";
import { mergePatch } from "../../lib/json/merge-patch.ts";
import { readPresets } from "../../verify/presets.ts";
import type { Blueprint } from "../client/blueprint.ts";
import type { App } from "../client/entities.ts";
import { readSecretNames } from "../client/named-secrets.ts";

/** Entities of an organization, as the API returns them. */
export interface Existing {
  /** Name that the file gives the organization. */
  readonly organization: string;
  /** Names of the organization's spaces. */
  readonly spaces: readonly string[];
  readonly blueprints: readonly Blueprint[];
  readonly apps: readonly {
    readonly app: App;
    /** Name of the app's space. */
    readonly space: string;
    readonly channels: readonly Channel[];
  }[];
}

export interface Exported {
  /** Contents of a declarative configuration file. */
  readonly file: object;
  /** Names of the environment variables to which the file refers. */
  readonly variables: readonly string[];
  /** Sentences about entities that the file cannot contain. */
  readonly omitted: readonly string[];
}

type JsonObject = Readonly<Record<string, unknown>>;
type Template = Pick<Blueprint["channels"][number], "uid" | "kind" | "title" | "config" | "events">;

/** Settings of a channel, as a config file contains them. */
interface Declared {
  readonly kind?: string | undefined;
  readonly title?: string | null | undefined;
  readonly config?: JsonObject | undefined;
  readonly events?: readonly unknown[] | undefined;
}

const deps: CheckChannelDeps = {
  channelKinds,
  presets: readPresets(),
  // The gateway has accepted the definitions, so they are not compiled again.
  checkDefinitions: async () => [],
};

/** Composes the file that declares existing entities. Applying it to them changes nothing. */
export async function composeFile({ organization, spaces, blueprints, apps }: Existing): Promise<Exported> {
  const omitted: string[] = [];
  const variables: string[] = [];
  const [firstSpace] = spaces;
  const declaredBlueprints: object[] = [];
  for (const { uid, title, description, channels } of blueprints)
    declaredBlueprints.push({
      uid,
      title,
      ...(description !== null && { description }),
      channels: await Promise.all(channels.map((one) => declare(undefined, one))),
    });
  const declaredApps: object[] = [];
  const paths = new Set<string>();
  for (const { app, space, channels } of apps) {
    const path = JSON.stringify([space, app.uid]);
    // A file contains each uid of a space once.
    if (paths.has(path)) {
      omitted.push(`The app ${app.id}, because another app of the space ${space} has the uid ${app.uid}.`);
      continue;
    }
    paths.add(path);
    const blueprint = blueprints.find(({ id }) => id === app.blueprintId);
    if (app.blueprintId !== null && blueprint === undefined)
      omitted.push(`The blueprint of the app ${app.uid} belongs to another organization.`);
    const declared: object[] = [];
    for (const channel of channels) {
      const template = blueprint?.channels.find(({ uid }) => uid === channel.uid);
      const own = await declare(template, channel);
      // The registration sets the secret that verifies deliveries. A list in the file would replace it.
      const isRegistered = channel.config.registration !== undefined;
      const secretNames = readSecretNames(channel);
      const named = secretNames.filter((name) => name !== null);
      if (isRegistered && named.length > 0)
        omitted.push(`The secrets ${named.join(", ")} of the channel ${channel.uid} of the app ${app.uid}.`);
      const secrets = [...new Set(isRegistered ? [] : secretNames)].map((name) => {
        const variable = nameVariable([space, app.uid, channel.uid], name, variables);
        variables.push(variable);
        return { ...(name !== null && { name }), value: { $env: variable } };
      });
      const config = { ...own.config, ...(secrets.length > 0 && { secrets }) };
      const { connectionId } = (channel.config.registration ?? {}) as { readonly connectionId?: string };
      if (channel.connectionId !== null)
        omitted.push(
          `The connection ${channel.connectionId} of the channel ${channel.uid} of the app ${app.uid}.`,
        );
      if (connectionId !== undefined)
        omitted.push(
          `The connection ${connectionId} of the registration of the channel ${channel.uid} of the app ${app.uid}. For another gateway, create it there and replace its id in the file.`,
        );
      const { uid: _, config: __, ...others } = own;
      if (template && Object.keys({ ...others, ...config }).length === 0) continue;
      declared.push({ ...own, ...(Object.keys(config).length > 0 && { config }) });
    }
    const { title, description } = app;
    declaredApps.push({
      uid: app.uid,
      ...(blueprint && { blueprint: blueprint.uid }),
      ...(title !== blueprint?.title && { title }),
      ...(description !== (blueprint?.description ?? null) && { description }),
      ...(space !== firstSpace && { space }),
      ...(declared.length > 0 && { channels: declared }),
    });
  }
  const content = {
    name: organization,
    ...(spaces.length > 0 && { spaces: spaces.map((name) => ({ name })) }),
    blueprints: declaredBlueprints,
    apps: declaredApps,
  };
  return { file: { organizations: [content] }, variables, omitted };
}

/**
 * Returns the shortest declaration that results in the channel.
 *
 * @param template channel of the blueprint, which supplies all members that the declaration omits
 */
async function declare(
  template: Template | undefined,
  { uid, kind, title, config, events }: Template,
): Promise<Declared & { readonly uid: string }> {
  const removed = Object.keys(template?.config ?? {}).filter((name) => !Object.hasOwn(config, name));
  const full: Declared = {
    ...(template === undefined && { kind }),
    title,
    config: { ...config, ...Object.fromEntries(removed.map((name) => [name, null])) },
    events,
  };
  const resolve = (declared: Declared): Promise<Resolved | undefined> =>
    resolveChannel(template, { uid, ...declared });
  const wanted = await resolve(full);
  if (wanted === undefined) return { uid, ...full };
  const isSame = async (declared: unknown): Promise<boolean> =>
    isDeepStrictEqual(await resolve(declared as Declared), wanted);
  return { uid, ...((await shorten(full as JsonObject, isSame)) as Declared) };
}

type Resolved = Pick<CheckedChannel, "kind" | "config" | "events"> & { readonly title: string | null };

/** Returns the channel that a declaration results in, or `undefined` if it is invalid. */
async function resolveChannel(
  template: Template | undefined,
  declared: JsonObject,
): Promise<Resolved | undefined> {
  const parsed = channelInputSchema.safeParse(mergePatch(template ?? {}, declared));
  if (!parsed.success) return undefined;
  const { title, ...channel } = parsed.data;
  const checked = await checkChannel(deps, channel, "");
  if (!checked.ok) return undefined;
  const { kind, config, events } = checked.value;
  return JSON.parse(JSON.stringify({ kind, title, config, events })) as Resolved;
}

/** Removes all members, also of inner objects, without which the test still holds. */
async function shorten(
  value: JsonObject,
  isSame: (shorter: JsonObject) => Promise<boolean>,
): Promise<JsonObject> {
  let kept = value;
  for (const [name, member] of Object.entries(value)) {
    const { [name]: _, ...others } = kept;
    if (await isSame(others)) kept = others;
    else if (typeof member === "object" && member !== null && !Array.isArray(member)) {
      const before = kept;
      const inner = await shorten(member as JsonObject, (shorter) => isSame({ ...before, [name]: shorter }));
      kept = { ...kept, [name]: inner };
    }
  }
  return kept;
}

/** Returns an unused name of an environment variable for a secret of a channel. */
function nameVariable(
  [space, app, channel]: readonly [string, string, string],
  secret: string | null,
  used: readonly string[],
): string {
  const ending = secret === null ? "" : `_${secret}`;
  const words = `${app === channel ? app : `${app}_${channel}`}${ending}`;
  const toName = (text: string): string => `SECRET_${text}`.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  const names = [toName(words), toName(`${space}_${words}`)];
  for (let number = 2; names.every((name) => used.includes(name)); number++)
    names.push(toName(`${space}_${words}_${number}`));
  return names.find((name) => !used.includes(name)) ?? "";
}
