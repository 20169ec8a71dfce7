import type { Command } from "commander";
import type { RegistrationEntity } from "../../../resources/apps/registrations.ts";
import { formatPath } from "../../client/api.ts";
import { showAppUids } from "../../client/app.ts";
import { apiOptions, declareSubcommands, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<RegistrationEntity>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "app", value: ({ appId }) => appId, isOptional: true },
  { title: "channel", value: ({ channelUid }) => channelUid },
  { title: "preset", value: ({ preset }) => preset },
  { title: "target", value: ({ target }) => target, isOptional: true },
  { title: "state", value: ({ state }) => state, colors: { active: "green", "*": "yellow" } },
  { title: "expires", value: ({ expiresAt }) => expiresAt, isOptional: true },
  { title: "error", value: ({ lastError }) => lastError?.message, wraps: true },
];

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part("list", "List the registrations of all channels", async ({ api, output }) => {
    const { items } = await api.list<RegistrationEntity>("/registrations");
    output.list(
      items,
      await showAppUids({ api, output }, items, COLUMNS),
      "No channel is registered at a provider.",
    );
  });
  part<[string]>(
    "forget <registration>",
    "Forget the registration of a deleted channel, after you removed it at the provider",
    async ({ api }, [id]) => api.delete(formatPath("registrations", id)),
  );
  part(
    "adopt",
    "Assign all registrations to this gateway's hooks URL, after a restore or a change of the URL",
    async ({ api }) => api.post("/registrations/adopt", {}),
  );
  examples(command, [
    ["inlet registrations", "state of each webhook at its provider"],
    ["inlet registrations adopt", "never on a copy of a system that still runs"],
  ]);
}
