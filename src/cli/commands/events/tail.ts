import type { Command } from "commander";
import { formatCount } from "../../../lib/quantities.ts";
import { appOptions, createAction, examples, parseCount, parseTimeout } from "../../client/command.ts";
import type { ApiEvent } from "../../client/entities.ts";
import { channelOf, followEvents, positionOf } from "../../client/event-stream.ts";
import { explainTimes, parsePast } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { formatEventLine } from "../../output/event-line.ts";

interface TailOptions {
  readonly type?: string;
  readonly since?: number;
  readonly count?: number;
  readonly timeout?: number;
}

export function define(command: Command, context: CommandContext): void {
  explainTimes(appOptions(command))
    .argument("[channel...]", "only events of these channels (uids)")
    .option("--type <type>", "only events of this type")
    .option("--since <when>", "start time, such as 2h, 12:05 or a timestamp (default: now)", parsePast)
    .option("--count <count>", "end after this number of events", parseCount(1, 1_000_000))
    .option(
      "--timeout <duration>",
      "end after this time, such as 60s; exits with 1 if --count was not reached",
      parseTimeout,
    )
    .action(
      createAction<[readonly string[]], TailOptions>(
        context,
        async ({ api, output, app, io }, [channels], options) => {
          const { type, since, count, timeout } = options;
          const timeouts = timeout === undefined ? [] : [AbortSignal.timeout(timeout * 1_000)];
          let shown = 0;
          const steps = followEvents(api, {
            env: io.env,
            appId: (await app(channels[0])).id,
            type,
            from: since === undefined ? undefined : positionOf(since),
            signal: AbortSignal.any([io.signal, ...timeouts]),
            onWaiting(reason) {
              if (reason !== undefined) output.note(`Waiting for the gateway: ${reason}`, "yellow");
            },
          });
          for await (const { event } of steps) {
            if (event === undefined) continue;
            const parsed = JSON.parse(event) as ApiEvent;
            if (channels.length > 0 && !channels.includes(channelOf(parsed.topic))) continue;
            if (!output.isWanted(parsed)) continue;
            if (output.isJson) output.json(event);
            else output.say(formatEventLine(parsed, output));
            shown++;
            if (shown === count) return EXIT.done;
          }
          if (count === undefined || io.signal.aborted) return EXIT.done;
          output.note(`Only ${shown} of ${formatCount(count, "event")} arrived within ${timeout} s.`);
          return EXIT.failed;
        },
      ),
    );
  examples(command, [
    ["inlet tail", "all channels, until Ctrl-C"],
    ["inlet tail inbox --since 30m", "one channel, from half an hour ago"],
    ["inlet tail inbox --count 1 --timeout 60s", "wait for the next event"],
    ["inlet tail --type push | jq .data.ref", "JSON lines for a program"],
  ]);
}
