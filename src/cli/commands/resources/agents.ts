import type { Command } from "commander";
import type { Channel } from "../../../channels/entity.ts";
import type { AgentSubscriptionEntity } from "../../../resources/events/agent-subscriptions.ts";
import {
  appOptions,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
} from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import { escapeText } from "../../output/escape.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<AgentSubscriptionEntity>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "events", value: ({ name }) => name },
  { title: "callback", value: ({ callbackOrigin }) => callbackOrigin, wraps: true },
  { title: "state", value: ({ state }) => state, colors: { active: "green", failing: "red" } },
  { title: "key", value: ({ keyId }) => keyId, isOptional: true },
  { title: "expires", value: ({ expiresAt }) => expiresAt, isOptional: true },
  { title: "last error", value: ({ lastError }) => lastError?.message, wraps: true },
];

type Definition = Channel["events"][number];

const TYPE_COLUMNS: readonly Column<Definition>[] = [
  { title: "type", value: ({ type }) => type },
  { title: "agents", value: ({ agents = false }) => (agents ? "yes" : "no") },
];

/** Opens or closes the definitions of these types to agents. @throws CommandError for a type that no definition has */
function switchTypes(
  definitions: readonly Definition[],
  types: readonly string[],
  agents: boolean,
): readonly Definition[] {
  const missing = types.filter((type) => !definitions.some((definition) => definition.type === type));
  if (missing.length > 0) {
    const known = definitions.map(({ type }) => escapeText(type)).join(", ");
    throw usageError(`The channel has no definition of ${missing.join(", ")}. Its types: ${known}.`);
  }
  return definitions.map((definition) =>
    types.includes(definition.type) ? { ...definition, agents } : definition,
  );
}

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
  for (const [verb, summary, agents] of [
    ["open", "Let agents subscribe to event types of a channel", true],
    ["close", "Close event types of a channel to agents. Their streams and subscriptions end", false],
  ] as const) {
    part<[string, readonly string[]]>(
      `${verb} <channel> <types...>`,
      summary,
      async ({ api, output, appPath }, [channel, types]) => {
        const { events } = await api.update<Channel>(await appPath("channels", channel), (before) => ({
          events: switchTypes(before.events, types, agents),
        }));
        output.list(events, TYPE_COLUMNS, "The channel has no definition.");
      },
    );
  }
  examples(command, [
    ["inlet agents --app shop", "the agents that get events of the app by webhook"],
    ["inlet agents open github issues push --app shop", "`inlet catalog --agents` lists all open types"],
    ["inlet agents delete agt_01m8ggw9pa9wzsee4vk878p --app shop", "send an agent no more events"],
  ]);
}
