import {
  type CheckChannelDeps,
  type CheckedChannel,
  channelInputSchema,
  checkChannel,
  type UncheckedChannel,
} from "../../channels/check-channel.ts";
import { findReconcileErrors, type ValidChannel } from "../../channels/check-reconcile.ts";
import { findWrongWakes } from "../../channels/check-wakes.ts";
import type { BlueprintChannel } from "../../data/tables.ts";
import type { ChannelKindName } from "../../event/channel.ts";
import type { Finding } from "../../lib/errors.ts";
import { findingsOf, findingUnder, formatPath } from "../../lib/findings.ts";
import { mergePatch } from "../../lib/json/merge-patch.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { checkBlueprintChannels } from "../../resources/apps/blueprints/content.ts";
import { comesFromEnv, resolveEnv, type Variables } from "./environment.ts";
import { type DeclaredApp, type DeclaredChannel, type DeclaredOrganization, findWrongNames } from "./file.ts";

/** A channel in the config file. Secret fields that the file omits stay unchanged. */
export interface WantedChannel extends UncheckedChannel {
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly title: string | null;
  readonly fromBlueprint: boolean;
}

/**
 * An app in the config file. If the file omits title or description, an existing app keeps its own, and a new app uses the
 * blueprint's.
 */
export interface WantedApp extends Omit<DeclaredApp, "space" | "channels"> {
  readonly template: { readonly title: string; readonly description: string | null };
  readonly space: string;
  readonly channels: readonly WantedChannel[];
}

export interface WantedBlueprint {
  readonly uid: string;
  readonly title: string;
  readonly description: string | null;
  readonly channels: readonly BlueprintChannel[];
}

export interface WantedOrganization {
  readonly name: string;
  /** Names of the organization's spaces. Never empty. */
  readonly spaces: readonly string[];
  readonly blueprints: readonly WantedBlueprint[];
  readonly apps: readonly WantedApp[];
}

type CheckDeps = CheckChannelDeps & { readonly env: Variables };

/** Validates the whole config file by the rules of the API. Returns the validated objects, or all errors. */
export async function checkSetUp(
  deps: CheckDeps,
  declared: readonly DeclaredOrganization[],
): Promise<Result<readonly WantedOrganization[], readonly Finding[]>> {
  const findings: Finding[] = [...findWrongNames(declared)];
  const wanted: WantedOrganization[] = [];
  for (const [index, organization] of declared.entries()) {
    const base = ["organizations", index] as const;
    const blueprints: WantedBlueprint[] = [];
    for (const [number, blueprint] of organization.blueprints.entries()) {
      const checked = await checkBlueprintChannels(deps, blueprint.channels, "");
      if (checked.ok) blueprints.push({ ...blueprint, channels: checked.value });
      else findings.push(...under([...base, "blueprints", number], checked.error));
    }
    const apps: WantedApp[] = [];
    for (const [number, app] of organization.apps.entries()) {
      const at = [...base, "apps", number];
      const blueprint = organization.blueprints.find(({ uid }) => uid === app.blueprint);
      const channels = await checkChannels(deps, app, blueprint?.channels ?? [], at);
      findings.push(...channels.findings);
      const [first] = organization.spaces;
      const template = { title: blueprint?.title ?? app.uid, description: blueprint?.description ?? null };
      const space = app.space ?? first?.name ?? "default";
      apps.push({ ...app, template, space, channels: channels.wanted });
    }
    const spaces = organization.spaces.map(({ name }) => name);
    wanted.push({ name: organization.name, spaces, blueprints, apps });
  }
  const told = new Set<string>();
  const distinct = findings.filter(({ path }) => !told.has(path) && told.add(path));
  return distinct.length > 0 ? err(distinct) : ok(wanted);
}

/** Merges the app's channels into those of its blueprint. Channels that only the app declares are appended. */
async function checkChannels(
  deps: CheckDeps,
  app: DeclaredApp,
  fromBlueprint: DeclaredOrganization["blueprints"][number]["channels"],
  base: readonly PropertyKey[],
): Promise<{ readonly wanted: readonly WantedChannel[]; readonly findings: readonly Finding[] }> {
  const wanted: WantedChannel[] = [];
  const valid: (ValidChannel & { readonly at: readonly PropertyKey[] })[] = [];
  const findings: Finding[] = [];
  const own = app.channels.filter(({ uid }) => !fromBlueprint.some((channel) => channel.uid === uid));
  const templates = [...fromBlueprint, ...own];
  const named = templates.map(({ uid, kind = "" }) => ({ uid, kind }));
  for (const template of templates) {
    const index = app.channels.findIndex(({ uid }) => uid === template.uid);
    const said = app.channels[index];
    // Report an error at the app's own channel if there is one, or else at the blueprint, which supplies the omitted fields.
    const at = said ? [...base, "channels", index] : [...base, "blueprint"];
    const checked = await resolveChannel(deps, template === said ? {} : template, said ?? template, at);
    if (checked.ok) {
      const { config, ...channel } = checked.value.channel;
      wanted.push({ ...channel, config, fromBlueprint: template !== said });
      valid.push({ ...checked.value.settings, uid: channel.uid, at });
      findings.push(...under(at, findWrongWakes(deps.channelKinds, config, named)));
    } else if (said) findings.push(...checked.error);
  }
  if (findings.length === 0)
    for (const channel of valid)
      findings.push(...under(channel.at, findReconcileErrors(deps, channel, valid)));
  return { wanted, findings };
}

interface ResolvedChannel {
  readonly channel: Omit<WantedChannel, "fromBlueprint">;
  /** Its validated settings with defaults. */
  readonly settings: CheckedChannel;
}

async function resolveChannel(
  deps: CheckDeps,
  template: { readonly kind?: string | undefined },
  said: DeclaredChannel,
  at: readonly PropertyKey[],
): Promise<Result<ResolvedChannel, readonly Finding[]>> {
  const kind = deps.channelKinds.get(said.kind ?? template.kind ?? "");
  const resolved = Object.entries(said.config ?? {}).map(([name, value]) => {
    const path = [...at, "config", name];
    const refused = (message: string) => ({ name, value, findings: [{ path: formatPath(path), message }] });
    if (kind?.secretFields.includes(name) !== true) {
      return mentionsEnv(value)
        ? refused("is not a secret and must be written in the file, not in the environment")
        : { name, value, findings: [] };
    }
    if (!comesFromEnv(value))
      return refused('is a secret and must come from the environment, as {"$env": "NAME"}');
    return { name, ...resolveEnv(value, deps.env, path) };
  });
  const unresolved = resolved.flatMap(({ findings }) => findings);
  if (unresolved.length > 0) return err(unresolved);

  const config = Object.fromEntries(resolved.map(({ name, value }) => [name, value]));
  const merged = mergePatch(template, said.config === undefined ? said : { ...said, config });
  const parsed = channelInputSchema.safeParse(merged);
  if (!parsed.success) return err(findingsOf(parsed.error, merged, at));
  const { uid, title, ...channel } = parsed.data;
  const checked = await checkChannel(deps, channel, "");
  if (!checked.ok) return err(under(at, checked.error));
  return ok({
    channel: { uid, title, ...channel, kind: checked.value.kind },
    settings: checked.value,
  });
}

const mentionsEnv = (value: unknown): boolean => JSON.stringify(value)?.includes('"$env":') === true;

const under = (at: readonly PropertyKey[], findings: readonly Finding[]): readonly Finding[] =>
  findings.map((finding) => findingUnder(formatPath(at), finding));
