import type { Command } from "commander";
import type { AgentSubscriptionEntity } from "../../../resources/events/agent-subscriptions.ts";
import {
  appOptions,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
} from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<AgentSubscriptionEntity>[] = [
  { title: "id", value: ({ id }) => id, whole: true },
  { title: "events", value: ({ name }) => name },
  { title: "callback", value: ({ callbackOrigin }) => callbackOrigin },
  { title: "state", value: ({ state }) => state, colors: { active: "green", failing: "red" } },
  { title: "key", value: ({ keyId }) => keyId },
  { title: "expires", value: ({ expiresAt }) => expiresAt },
  { title: "last error", value: ({ lastError }) => lastError?.message },
];

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);
  part("list", "List the subscriptions of agents to an app", async ({ api, output, appPath }) => {
    const { items } = await api.list<AgentSubscriptionEntity>(await appPath("agent-subscriptions"));
    output.list(items, COLUMNS, "No agent has subscribed to events of the app.");
  });
  part<[string]>("get <subscription>", "Show a subscription of an agent", async ({ api, appPath }, [id]) =>
    api.get(await appPath("agent-subscriptions", id)),
  );
  part<[string], DeleteOptions>(
    "delete <subscription>",
    "End a subscription of an agent",
    async (client, [id], options) => {
      const path = await client.appPath("agent-subscriptions", id);
      await confirmDeletion(client, options, "subscription", id);
      return client.api.delete(path);
    },
  ).option("-y, --yes", "do not ask for confirmation");
  examples(command, [
    ["inlet agents --app shop", "the agents that get events of the app by webhook"],
    ["inlet agents delete agt_01m8ggw9pa9wzsee4vk878p --app shop", "send an agent no more events"],
  ]);
}
