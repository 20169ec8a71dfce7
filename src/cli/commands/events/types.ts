import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { getNamedApp } from "../../client/app.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { ChannelOption } from "./catalog.ts";

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("[app]", "id or uid of the app, like --app")
    .option("--channel <channel>", "only event types of this channel")
    .action(
      createAction<[string | undefined], ChannelOption>(context, async (client, [named], { channel }) => {
        const { id } = await getNamedApp(client, named);
        client.io.stdout.write(await client.api.text(formatPath("apps", id, "types.ts"), { channel }));
      }),
    );
  examples(command, [
    ["inlet types > events.d.ts", "the types for createConsumer<Events>()"],
    ["inlet types shop --channel orders", "the types of one channel"],
  ]);
}
