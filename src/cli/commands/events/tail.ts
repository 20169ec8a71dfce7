import type { Command } from "commander";
import { appOptions, createAction, examples, parsePast } from "../../client/command.ts";
import type { ApiEvent } from "../../client/entities.ts";
import { channelOf, followEvents, positionOf } from "../../client/event-stream.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { formatEventLine } from "../../output/event-line.ts";

interface TailOptions {
  readonly type?: string;
  readonly since?: number;
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("[channel...]", "only events of these channels (uids)")
    .option("--type <type>", "only events of this type")
    .option(
      "--since <when>",
      "start time: an age such as 30m, 2h or 7d, or a timestamp (default: now)",
      parsePast,
    )
    .action(
      createAction<[readonly string[]], TailOptions>(
        context,
        async ({ api, output, app, io }, [channels], options) => {
          const { type, since } = options;
          const steps = followEvents(api, {
            env: io.env,
            appId: (await app(channels[0])).id,
            type,
            from: since === undefined ? undefined : positionOf(since),
            signal: io.signal,
            onWaiting(reason) {
              if (reason !== undefined) output.note(`Waiting for the gateway: ${reason}`, "yellow");
            },
          });
          for await (const { event } of steps) {
            if (event === undefined) continue;
            const parsed = JSON.parse(event) as ApiEvent;
            if (channels.length > 0 && !channels.includes(channelOf(parsed.topic))) continue;
            if (output.isJson) output.json(event);
            else output.say(formatEventLine(parsed, output));
          }
          return EXIT.done;
        },
      ),
    );
  examples(command, [
    ["inlet tail", "all channels, until Ctrl-C"],
    ["inlet tail inbox --since 30m", "one channel, from half an hour ago"],
    ["inlet tail --type push | jq .data.ref", "JSON lines for a program"],
  ]);
}
