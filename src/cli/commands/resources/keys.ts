import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { apiOptions, createAction, declareSubcommands, examples } from "../../client/command.ts";
import type { ApiKey } from "../../client/entities.ts";
import { explainTimes, parseFuture } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";
import { CONFIG_OPTION, type MachineOptions, runOnStores } from "../machine.ts";

const COLUMNS: readonly Column<ApiKey>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "name", value: ({ name }) => name },
  { title: "begins", value: ({ prefix }) => prefix },
  { title: "permissions", value: ({ permissions }) => permissions, wraps: true },
  { title: "expires", value: ({ expiresAt }) => expiresAt, isOptional: true },
  { title: "created", value: ({ createdAt }) => createdAt, isOptional: true },
];

export function define(command: Command, context: CommandContext): void {
  const LOCAL = "run on the gateway's machine with its settings; needs no API key";
  const part = declareSubcommands(command, context, apiOptions);
  part("list", "List the API keys of the organization", async ({ api, output }) => {
    output.list((await api.list<ApiKey>("/iam/api-keys")).items, COLUMNS);
  });
  const create = apiOptions(command.command("create <name>"))
    .description("Create an API key, which is shown only once")
    .option("--permission <name...>", "permissions, such as apps.read; * grants all")
    .option("--expires <when>", "expiry time, such as 90d or a timestamp", parseFuture)
    .option("--local", LOCAL)
    .option(...CONFIG_OPTION);
  const createByApi = createAction<[string], CreateOptions>(
    context,
    ({ api }, [name], { permission: permissions, expires: expiresAt }) =>
      api.post<ApiKey>("/iam/api-keys", { name, permissions, expiresAt }),
  );
  explainTimes(create, "future");
  create.action((name: string, options: CreateOptions, self: Command) =>
    options.local ? createOnMachine(context, name, options) : createByApi(name, options, self),
  );
  const revoke = apiOptions(command.command("revoke <key>"))
    .description("Revoke an API key by its id; --local also accepts its prefix or the key")
    .option("--local", LOCAL)
    .option(...CONFIG_OPTION);
  const revokeByApi = createAction<[string]>(context, ({ api }, [id]) =>
    api.delete(formatPath("iam", "api-keys", id)),
  );
  revoke.action((key: string, options: LocalOptions, self: Command) =>
    options.local
      ? runOnStores(context, options.config, "The key was not revoked", async (config, given) =>
          (await import("../../revoke-key.ts")).revokeKey(config, key, given),
        )
      : revokeByApi(key, options, self),
  );
  examples(command, [
    ["inlet keys", "list keys; only their hashes are stored"],
    ["inlet keys create ci --permission apps.read channels.write", "a key for a program"],
    ["inlet keys revoke ik_1a2b3c4d --local", "if none of your keys has permission to revoke keys"],
  ]);
}

interface LocalOptions extends MachineOptions {
  readonly local?: boolean;
}

interface CreateOptions extends LocalOptions {
  readonly permission?: readonly string[];
  readonly expires?: string;
}

async function createOnMachine(
  context: CommandContext,
  name: string,
  { config, permission = ["*"], expires }: CreateOptions,
): Promise<void> {
  const expiresAt = expires === undefined ? null : new Date(expires);
  await runOnStores(context, config, "No API key was created", async (settings, given) => {
    const { createKey } = await import("../../create-key.ts");
    return createKey(settings, { name, permissions: permission, expiresAt }, given);
  });
}
