import { toCertainSeconds } from "../event/dedupe.ts";
import type { Definition } from "../event/definition.ts";
import { fillPaths } from "../event/definition.ts";
import { parseJson } from "../event/parse-json.ts";
import type { Finding } from "../lib/errors.ts";
import type { JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import { readStoredConfig } from "../lib/stored-config.ts";
import { compileDefinitions, type RulePath } from "../normalize/compile.ts";
import { findNamesIn } from "../normalize/filter-names.ts";
import { HEADERS_ROOT, QUERY_ROOT } from "../normalize/profile.ts";
import type { Presets } from "../verify/presets.ts";
import { resolveSender } from "../verify/sender.ts";
import { senderConfigSchema } from "../verify/sender-config.ts";
import type { ChannelKind, ChannelKinds, ReconcileSettings } from "./kind.ts";

export interface ReconcileDeps {
  readonly channelKinds: ChannelKinds;
  readonly presets: Presets;
}

/** A valid channel. Its config need not contain secrets or defaults. */
export interface ValidChannel {
  readonly uid: string;
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
}

/** A reason why a channel cannot be reconciled, with the field to fix in each of the two channels. */
interface Obstacle {
  readonly inWebhook: Finding;
  readonly inSource: Finding;
}

/**
 * Returns the errors of a channel that result from other channels of its app: the channel that it reconciles, and the channels that
 * reconcile it. With these settings, events could be published twice or under wrong ids.
 */
export function findReconcileErrors(
  deps: ReconcileDeps,
  channel: ValidChannel,
  others: readonly ValidChannel[],
): readonly Finding[] {
  const settings = findSettings(deps, channel);
  const target = settings && others.find(({ uid }) => uid === settings.channelUid);
  const own = settings === undefined ? [] : findSourceErrors(deps, settings, target);
  return [...own, ...findTargetErrors(deps, channel, others)];
}

/** Returns the errors of a channel that result from the channels that reconcile it. */
export function findTargetErrors(
  deps: ReconcileDeps,
  channel: ValidChannel,
  others: readonly ValidChannel[],
): readonly Finding[] {
  const kind = deps.channelKinds.get(channel.kind);
  return others.flatMap((other) => {
    const settings = findSettings(deps, other);
    if (settings?.channelUid !== channel.uid) return [];
    if (kind === undefined || !isReconcilable(kind))
      return [{ path: "kind", message: `must be webhook, ${formatBecause(other.uid)}` }];
    return findObstacles(deps, settings, other.uid, channel).map(({ inWebhook }) => inWebhook);
  });
}

const findSettings = (
  { channelKinds }: ReconcileDeps,
  { config, kind }: ValidChannel,
): ReconcileSettings | undefined => channelKinds.get(kind)?.reconcileOf?.(config);

function findSourceErrors(
  deps: ReconcileDeps,
  settings: ReconcileSettings,
  target: ValidChannel | undefined,
): readonly Finding[] {
  const { channelUid } = settings;
  const kind = target && deps.channelKinds.get(target.kind);
  if (target === undefined || kind === undefined || !isReconcilable(kind)) {
    const problem = target
      ? `${channelUid} is a ${target.kind} channel`
      : `there is no channel ${channelUid}`;
    const message = `must be the uid of a webhook channel of the same app, but ${problem}`;
    return [{ path: "config.reconciles", message }];
  }
  return findObstacles(deps, settings, "", target).map(({ inSource }) => inSource);
}

const formatBecause = (sourceUid: string): string =>
  `because the channel ${sourceUid} reconciles this channel`;

/** Whether deliveries of this kind can be built from items: senders post them, and their format is not fixed. */
const isReconcilable = ({ addressed, profile }: ChannelKind): boolean =>
  addressed && profile.readItems === undefined;

function findObstacles(
  { channelKinds, presets }: ReconcileDeps,
  settings: ReconcileSettings,
  sourceUid: string,
  { config: stored, events, kind: kindName, uid }: ValidChannel,
): readonly Obstacle[] {
  const kind = channelKinds.get(kindName);
  const read = kind && readStoredConfig(kind.configSchema, stored);
  if (kind === undefined || !isReconcilable(kind) || read?.ok !== true) return [];
  const { config } = read.value;
  const sender = resolveSender(senderConfigSchema.parse(config), presets);
  if (!sender.ok) return [];
  const { paths, reading } = sender.value;
  const definitions = compileDefinitions({
    profile: kind.profile,
    config,
    definitions: fillPaths(events, paths),
    reading,
  });
  if (!definitions.ok) return [];
  const { always, groups } = definitions.value;
  const obstacles: Obstacle[] = [];
  const because = formatBecause(sourceUid);
  const reject = (path: string, message: string, inSource?: Finding): void => {
    obstacles.push({
      inWebhook: { path, message: `${message}, ${because}` },
      inSource: inSource ?? {
        path: "config.reconciles",
        message: `names the channel ${uid}, whose \`${path}\` ${message} to be reconciled`,
      },
    });
  };

  const { by, onConflict, windowSeconds } = config.dedupe;
  if (by !== "id") reject("config.dedupe.by", "must be id");
  if (onConflict === "publish") reject("config.dedupe.onConflict", "must not be publish");
  if (windowSeconds === 0) reject("config.dedupe.windowSeconds", "must not be 0");
  else {
    const { lookBackSeconds, settleSeconds } = settings;
    if (windowSeconds < lookBackSeconds)
      reject("config.dedupe.windowSeconds", `must be at least ${lookBackSeconds} (its lookBackSeconds)`, {
        path: "config.discriminator.lookBackSeconds",
        message: `must be at most ${windowSeconds}, the dedupe window of the channel ${uid}`,
      });
    const certainSeconds = toCertainSeconds(windowSeconds);
    if (certainSeconds <= settleSeconds)
      reject(
        "config.dedupe.windowSeconds",
        `must be longer, because its settleSeconds are ${settleSeconds}`,
        {
          path: "config.settleSeconds",
          message: `must be below ${Math.floor(certainSeconds)}, for which the channel ${uid} is certain to remember an id`,
        },
      );
  }
  const typed = groups.flatMap(({ byType, path }) =>
    [...byType.values()].map((rule) => ({ rule, typePath: path })),
  );
  for (const { rule, typePath } of [...always.map((rule) => ({ rule, typePath: undefined })), ...typed]) {
    const at = `events[${rule.index}]`;
    if (rule.idPath === undefined) reject(`${at}.idPath`, "must be set");
    for (const [name, path] of [
      ["typePath", typePath],
      ["idPath", rule.idPath],
      ["payloadPath", rule.payloadPath],
      ["timePath", rule.attributes?.time],
      ["subjectPath", rule.attributes?.subject],
      ["keyPath", rule.attributes?.key],
    ] as const) {
      const missing = path && findMissing(path, settings);
      if (missing === undefined) continue;
      reject(`${at}.${name}`, `must not read ${missing.name}, which \`as\` does not supply`, {
        path: missing.path,
        message: `must supply ${missing.name}, which \`${at}.${name}\` of the channel ${uid} reads`,
      });
    }
    for (const part of ["headers", "query"] as const) {
      const name = rule.when === undefined ? undefined : findUnsupplied(rule.when, part, settings);
      if (name === undefined) continue;
      reject(`${at}.when`, `must not read ${name}, which \`as\` does not supply`, {
        path: `config.as.${part}`,
        message: `must supply ${name}, which \`${at}.when\` of the channel ${uid} reads`,
      });
    }
  }
  return obstacles;
}

/** Returns a header or query parameter that a `when` reads although the built deliveries do not have it. Without it, no item would match. */
const findUnsupplied = (
  when: JsonSchema,
  part: "headers" | "query",
  { supplies }: ReconcileSettings,
): string | undefined => findNamesIn(when, part).find((name) => !supplies[part].includes(name));

/** Returns the header or query parameter that a path reads although the built deliveries do not have it. */
function findMissing(
  { path, root, text }: RulePath,
  { supplies }: ReconcileSettings,
): { readonly path: string; readonly name: string } | undefined {
  const part = root === HEADERS_ROOT ? "headers" : root === QUERY_ROOT ? "query" : undefined;
  if (part === undefined) return undefined;
  const [name] = path.kind === "singular" ? (parseJson(path.key) as readonly unknown[]) : [];
  const isSupplied = typeof name === "string" ? supplies[part].includes(name) : supplies[part].length > 0;
  if (isSupplied) return undefined;
  return { path: `config.as.${part}`, name: typeof name === "string" ? name : text };
}
