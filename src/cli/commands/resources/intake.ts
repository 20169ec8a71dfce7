import { type Command, Option } from "commander";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import type { Install, Intake } from "../../../resources/apps/intakes/schema.ts";
import type { HeldRecord } from "../../../resources/events/quarantine/intake-quarantine.ts";
import type { HeldRedrive } from "../../../resources/events/quarantine/intake-redrive.ts";
import type { Preset } from "../../../verify/presets.ts";
import { type Api, ApiError, formatPath } from "../../client/api.ts";
import { findApp } from "../../client/app.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import {
  apiOptions,
  type Client,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
  parseCount,
} from "../../client/command.ts";
import { readData } from "../../client/delivery.ts";
import { firstSeenOptions, formatTime } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode, usageError } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const MAX_GRACE_SECONDS = 30 * 86_400;

const COLUMNS: readonly Column<Install>[] = [
  { title: "app", value: ({ appId }) => appId },
  { title: "organization", value: ({ organizationId }) => organizationId, isOptional: true },
  { title: "keys", value: ({ routeKeys }) => routeKeys.map(({ key }) => key), wraps: true },
  { title: "events last day", value: ({ eventsLastDay }) => eventsLastDay },
  { title: "quarantined", value: ({ quarantined }) => quarantined },
];

const HELD_COLUMNS: readonly Column<HeldRecord>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "reason", value: ({ reason }) => reason },
  { title: "detail", value: ({ detail }) => detail, wraps: true },
  { title: "count", value: ({ count }) => count, isOptional: true },
  { title: "last", value: ({ lastAt }) => lastAt, isOptional: true },
];

const REDRIVE_COLUMNS: readonly Column<HeldRedrive>[] = [
  { title: "item", value: ({ id }) => id },
  { title: "outcome", value: ({ status }) => status, colors: { released: "green", "*": "red" } },
  { title: "routed", value: ({ routed }) => routed, isOptional: true },
  {
    title: "held",
    value: ({ quarantine }) => quarantine.map(({ id, reason }) => `${reason} ${id}`),
    wraps: true,
  },
  { title: "message", value: ({ message }) => message, wraps: true },
];

interface SetOptions {
  readonly channel?: string;
  readonly routeBy?: readonly string[];
  readonly secret?: string;
  readonly trustUnsigned?: boolean;
}

interface RedriveOptions {
  readonly reason?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
}

interface KeysOptions {
  readonly clear?: boolean;
}

const pathOf = async ({ api }: Client, named: string, ...rest: readonly string[]): Promise<string> =>
  formatPath("blueprints", (await findBlueprint(api, named)).id, ...rest);

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part<[string]>("get <blueprint>", "Show the intake of a blueprint", async (client, [named]) =>
    client.api.get<Intake>(await pathOf(client, named, "intake")),
  );
  part<[string], SetOptions>(
    "set <blueprint>",
    "Create or change the intake of a blueprint",
    async (client, [named], options) =>
      client.api.put<Intake>(
        await pathOf(client, named, "intake"),
        await composeIntake(client, named, options),
      ),
  )
    .option("--channel <uid>", "the blueprint's channel that receives the items in each install")
    .option(
      "--route-by <path...>",
      "paths of the route key (default for a new intake: those of the channel's preset)",
    )
    .option("--secret <secret>", "the provider's secret: text, @file, or @- for standard input")
    .option("--trust-unsigned", "accept route keys that the provider does not sign");
  part<[string], { readonly grace?: number }>(
    "rotate <blueprint>",
    "Give an intake a new address",
    async (client, [named], { grace: graceSeconds }) =>
      client.api.post<Intake>(await pathOf(client, named, "intake", "rotate"), { graceSeconds }),
  ).option(
    "--grace <seconds>",
    "how long the old address stays valid (default: the API's default)",
    parseCount(0, MAX_GRACE_SECONDS),
  );
  for (const [verb, summary] of [
    ["pause", "Pause an intake: deliveries are stored in its quarantine"],
    ["resume", "Resume an intake: stored deliveries are routed first"],
  ] as const) {
    part<[string]>(`${verb} <blueprint>`, summary, async (client, [named]) =>
      client.api.post<Intake>(await pathOf(client, named, "intake", verb)),
    );
  }
  part<[string, string | undefined]>(
    "items <blueprint> [item]",
    "List the items that an intake holds, or show one",
    async (client, [named, item]) => {
      if (item !== undefined) return client.api.get(await pathOf(client, named, "quarantine", item));
      const { items } = await client.api.list<HeldRecord>(await pathOf(client, named, "quarantine"));
      client.output.list(items, HELD_COLUMNS, "The intake holds no item.");
      return undefined;
    },
  );
  firstSeenOptions(
    part<[string, readonly string[]], RedriveOptions>(
      "redrive <blueprint> [items...]",
      "Route held items again, by the current settings of the intake",
      redrive,
    ),
  )
    .addOption(
      new Option("--reason <reason>", "all items with this reason, in order of arrival").choices(
        QUARANTINE_REASONS,
      ),
    )
    .option("--limit <count>", "maximum number of items with the reason", parseCount(1, 200), 200);
  part<[string], DeleteOptions>(
    "delete <blueprint>",
    "Delete an intake with all route keys and held items",
    async (client, [named], options) => {
      const path = await pathOf(client, named, "intake");
      await confirmDeletion(client, options, "intake", `of ${named} with its route keys and held items`);
      return client.api.delete(path);
    },
  ).option("-y, --yes", "do not ask for confirmation");
  part<[string, string | undefined, readonly string[]], KeysOptions>(
    "keys <blueprint> [app] [keys...]",
    "List the installs with their route keys, or set the keys of one install",
    async (client, [named, app, keys], { clear = false }) => {
      const { api, output } = client;
      if (app === undefined) {
        const { items } = await api.list<Install>(await pathOf(client, named, "installs"));
        output.list(items, COLUMNS, "The blueprint has no install.");
        return undefined;
      }
      if ((keys.length === 0) !== clear)
        throw usageError("Name the route keys of the install, or use --clear to remove them.");
      // The owner of a blueprint can only name the apps of other organizations by their id.
      const appId = app.startsWith("app_") ? app : (await findApp(api, app)).id;
      return api.put<Install>(await pathOf(client, named, "installs", appId, "route-keys"), { keys });
    },
  ).option("--clear", "remove the keys of the install");

  examples(command, [
    ["inlet intake set slack --secret @signing-secret.txt", "paths and verification of the channel's preset"],
    ["inlet intake get slack", "the address to enter at the provider"],
    ["inlet intake keys slack", "installs with their route keys and counts"],
    ["inlet intake keys slack acme T061EG9R6", "events of this team go to this install"],
    ["inlet intake items slack", "items without an install, or without a route key"],
    [
      "inlet intake redrive slack --reason no_route",
      "items without a route key, after a change of --route-by",
    ],
    ["inlet intake rotate slack --grace 3600", "the old address stays valid for an hour"],
  ]);
}

async function redrive(
  client: Client,
  [named, ids]: [string, readonly string[]],
  { reason, since, until, limit }: RedriveOptions,
): Promise<ExitCode> {
  const { api, output } = client;
  if (ids.length > 0 === (reason !== undefined)) throw usageError("Use either item ids or --reason.");
  const path = await pathOf(client, named, "quarantine");
  const results: HeldRedrive[] = [];
  if (reason !== undefined) {
    const body = { reason, from: formatTime(since), to: formatTime(until), limit };
    results.push(...(await api.post<readonly HeldRedrive[]>(`${path}/redrive`, body)));
  }
  for (const id of ids) results.push(await api.post<HeldRedrive>(`${path}${formatPath(id, "redrive")}`));
  output.list(results, REDRIVE_COLUMNS, "No items found.");
  return results.every(({ status }) => status === "released") ? EXIT.done : EXIT.failed;
}

async function findIntake(api: Api, blueprintId: string): Promise<Intake | undefined> {
  try {
    return await api.get<Intake>(formatPath("blueprints", blueprintId, "intake"));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Returns the changes to an intake. A new intake gets the settings that the preset of the blueprint's channel declares. */
async function composeIntake(client: Client, named: string, options: SetOptions): Promise<object> {
  const { api, io } = client;
  const { routeBy, trustUnsigned } = options;
  const blueprint = await findBlueprint(api, named);
  const before = await findIntake(api, blueprint.id);
  const addressed = blueprint.channels.filter(({ kind }) => kind === "webhook");
  const uid = options.channel ?? before?.channel ?? (addressed.length === 1 ? addressed[0]?.uid : undefined);
  if (uid === undefined)
    throw usageError(
      `Choose a channel with --channel: ${addressed.map((one) => one.uid).join(", ") || "none"}`,
    );
  const secret =
    options.secret === undefined ? undefined : (await readData(io, options.secret)).toString().trimEnd();
  const secrets = secret === undefined ? {} : { secrets: [{ value: secret }] };
  if (before !== undefined) return { channel: uid, routeBy, trustUnsigned, config: secrets };
  const name = blueprint.channels.find((one) => one.uid === uid)?.config?.preset;
  const preset = typeof name === "string" ? await api.get<Preset>(formatPath("presets", name)) : undefined;
  if (routeBy === undefined && preset?.intake === undefined)
    throw usageError("The preset of the channel declares no route keys. Use --route-by.");
  const declared = routeBy === undefined ? preset?.intake : undefined;
  const isUnsigned = trustUnsigned ?? declared?.trustUnsigned;
  return {
    channel: uid,
    routeBy: routeBy ?? declared?.routeBy,
    trustUnsigned: isUnsigned,
    config: {
      ...(preset && { preset: preset.preset }),
      ...(declared?.itemsPath !== undefined && { itemsPath: declared.itemsPath }),
      ...(isUnsigned && { verification: { scheme: "preset", bindDedupe: "signedBytes" } }),
      ...secrets,
    },
  };
}
