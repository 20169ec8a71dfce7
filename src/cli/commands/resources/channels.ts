import type { Command } from "commander";
import type { Channel } from "../../../channels/entity.ts";
import type { SchemaVersion } from "../../../resources/apps/schema-versions.ts";
import type { Preset } from "../../../verify/presets.ts";
import { formatPath } from "../../client/api.ts";
import {
  appOptions,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
  fileOption,
  parseCount,
  readEntity,
} from "../../client/command.ts";
import { readData } from "../../client/delivery.ts";
import { requireNoNamedSecrets } from "../../client/named-secrets.ts";
import { parseParams } from "../../client/params.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Channel>[] = [
  { title: "uid", value: ({ uid }) => uid },
  { title: "kind", value: ({ kind }) => kind },
  { title: "state", value: ({ state }) => state, colors: { active: "green", "*": "yellow" } },
  { title: "preset", value: ({ config }) => config.preset, isOptional: true },
  { title: "events", value: ({ events }) => events.map(({ type }) => type), isOptional: true, wraps: true },
  { title: "address", value: ({ url }) => url, wraps: true },
];

const VERSION_COLUMNS: readonly Column<SchemaVersion>[] = [
  { title: "type", value: ({ type }) => type, colors: { "*": "cyan" } },
  { title: "version", value: ({ version }) => version },
  { title: "current", value: ({ isCurrent }) => (isCurrent ? "yes" : "") },
  { title: "created", value: ({ createdAt }) => createdAt },
];

const MAX_GRACE_SECONDS = 30 * 86_400;
const MAX_INTERVAL_SECONDS = 365 * 86_400;

interface PollOptions {
  readonly uid?: string;
  readonly connection?: string;
  readonly every?: number;
  readonly reconciles?: string;
}

interface UpdateOptions {
  readonly file?: string;
  readonly secret?: string;
}

interface RegisterOptions {
  readonly uid?: string;
  readonly connection?: string;
  readonly target?: string;
  readonly baseUrl?: string;
}

interface RegistrationOptions {
  readonly check?: boolean;
  readonly recreate?: boolean;
  readonly dryRun?: boolean;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  part("list", "List the channels of an app", async ({ api, output, appPath }) => {
    const { items } = await api.list<Channel>(await appPath("channels"));
    output.list(items, COLUMNS, "The app has no channel.");
  });
  part<[string]>("get <channel>", "Show a channel by its uid or id", async ({ api, appPath }, [named]) =>
    api.get(await appPath("channels", named)),
  );
  fileOption(
    part<[], { readonly file: string }>(
      "create",
      "Add a channel to an app",
      async ({ api, appPath, io }, _, { file }) =>
        api.post<Channel>(await appPath("channels"), await readEntity(io, file)),
    ),
  );
  part<[string], UpdateOptions>(
    "update <channel>",
    "Replace the fields of a channel that a file contains, or its secret",
    async ({ api, appPath, io }, [named], { file, secret }) => {
      if ((file === undefined) === (secret === undefined)) throw usageError("Use either --file or --secret.");
      const path = await appPath("channels", named);
      if (file !== undefined) {
        const change = await readEntity(io, file);
        return api.update<Channel>(path, () => change);
      }
      const value = String(await readData(io, secret ?? "")).trim();
      requireNoNamedSecrets(await api.get<Channel>(path));
      return api.update<Channel>(path, () => ({ config: { secrets: [{ value }] } }));
    },
  )
    .option("-f, --file <file>", "JSON file with the fields of the API; - is standard input")
    .option("--secret <secret>", "secret of the webhooks, which replaces the old ones: text, @file, or @-");
  for (const [verb, summary] of [
    ["pause", "Pause a channel: deliveries are stored in quarantine, sources stop"],
    ["resume", "Resume a channel: stored deliveries are processed first"],
  ] as const) {
    part<[string]>(`${verb} <channel>`, summary, async ({ api, appPath }, [named]) =>
      api.post(await appPath("channels", named, verb)),
    );
  }
  part<[string], { readonly grace?: number }>(
    "rotate <channel>",
    "Give a channel a new address",
    async ({ api, appPath }, [named], { grace: graceSeconds }) =>
      api.post(await appPath("channels", named, "rotate"), { graceSeconds }),
  ).option(
    "--grace <seconds>",
    "how long the old address stays valid (default: the API's default)",
    parseCount(0, MAX_GRACE_SECONDS),
  );
  part<[string, string, readonly string[]], PollOptions>(
    "poll <preset> <stream> [params...]",
    "Add a channel that polls a list of a provider, such as its issues",
    async (
      { api, appPath },
      [preset, stream, texts],
      { uid = stream, connection: connectionId, every: intervalSeconds, reconciles },
    ) => {
      const { streams } = await api.get<Preset>(formatPath("presets", preset));
      const params = parseParams(texts, streams.find(({ name }) => name === stream)?.params);
      const schedule = intervalSeconds === undefined ? {} : { schedule: { intervalSeconds } };
      const config = { preset, stream, params, ...schedule, reconciles };
      return api.post<Channel>(await appPath("channels"), { uid, kind: "polling", connectionId, config });
    },
  )
    .option("--uid <uid>", "name of the channel (default: the name of the stream)")
    .option("--connection <connectionId>", "connection with the credentials for the provider")
    .option("--reconciles <channel>", "uid of the webhook channel whose missed events are published")
    .option(
      "--every <seconds>",
      "time between two polls (default: the preset's time)",
      parseCount(5, MAX_INTERVAL_SECONDS),
    );
  part<[string, readonly string[]], RegisterOptions>(
    "register <preset> [params...]",
    "Add a channel and register its address at the provider",
    async (
      { api, appPath },
      [preset, texts],
      { uid = preset, connection: connectionId, target, baseUrl },
    ) => {
      const { registrations } = await api.get<Preset>(formatPath("presets", preset));
      const found = registrations.find((one) => target === undefined || one.target === target);
      const registration = { connectionId, target, params: parseParams(texts, found?.params), baseUrl };
      const config = { preset, registration };
      return api.post<Channel>(await appPath("channels"), { uid, kind: "webhook", config });
    },
  )
    .option("--uid <uid>", "name of the channel (default: the name of the preset)")
    .option("--connection <connectionId>", "connection that may manage webhooks at the provider")
    .option("--target <target>", "kind of object that sends (default: the preset's first one)")
    .option("--base-url <url>", "start of the API's URLs, for an installation of your own");
  part<[string], RegistrationOptions>(
    "registration <channel>",
    "Show the registration of a channel at its provider",
    async ({ api, appPath }, [named], { check, recreate, dryRun }) => {
      const path = await appPath("channels", named, "registration");
      const action = check ? "check" : recreate ? "recreate" : dryRun ? "dryRun" : undefined;
      return action === undefined ? api.get(path) : api.post(`${path}/${action}`, {});
    },
  )
    .option("--check", "ask the provider now whether the registration still exists")
    .option("--recreate", "look for the registration at the provider, and create it if it is missing")
    .option("--dry-run", "show the requests without sending them");
  part<[string, string | undefined, string | undefined]>(
    "schemas <channel> [type] [version]",
    "List the schema versions of a channel, or print one",
    async ({ api, output, appPath }, [named, type, version]) => {
      if (type !== undefined && version !== undefined)
        return api.get(await appPath("channels", named, "schemas", type, version));
      const { items } = await api.list<SchemaVersion>(await appPath("channels", named, "schemas"), { type });
      output.list(items, VERSION_COLUMNS, "No definition has a schema.");
      return undefined;
    },
  );
  part<[string], DeleteOptions>("delete <channel>", "Delete a channel", async (client, [named], options) => {
    const { id, uid } = await client.app(named);
    const { purge } = options;
    const details = `${named} of the app ${uid}${purge ? " and its events" : ""}`;
    await confirmDeletion(client, options, "channel", details);
    return client.api.delete(formatPath("apps", id, "channels", named), { purge });
  })
    .option("--purge", "also delete its topics with all events")
    .option("-y, --yes", "do not ask for confirmation");

  examples(command, [
    ["inlet channels --app welcome", "channels with their addresses"],
    ["inlet channels create -f hooks.json --app shop", "a channel from a JSON file"],
    ["inlet channels update hooks -f events.json", 'changed fields only, such as {"events": […]}'],
    ["inlet channels update hooks --secret @secret.txt", "the secret of its webhooks"],
    ["inlet channels get hooks --field url", "the address, for a script"],
    [
      "inlet channels poll github issues owner=nodejs repo=node --connection con_…",
      "see `inlet presets get github`",
    ],
    [
      "inlet channels register github owner=nodejs repo=node --connection con_…",
      "creates the webhook at GitHub and keeps it alive",
    ],
    ["inlet channels pause inbox", "deliveries are stored until you resume"],
    ["inlet channels schemas inbox received 1", "the schema that `dataschema` of an event names"],
    ["inlet channels rotate inbox --grace 3600", "the old address stays valid for an hour"],
  ]);
}
