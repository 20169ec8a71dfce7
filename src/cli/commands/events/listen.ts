import type { Command } from "commander";
import { getChannel } from "../../client/app.ts";
import { appOptions, createAction, examples, parseCount } from "../../client/command.ts";
import { positionOf } from "../../client/event-stream.ts";
import { explainTimes, parsePast } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, usageError } from "../../exit.ts";
import { parseTarget } from "../../listen/target.ts";

interface ListenOptions {
  readonly to: string;
  readonly type?: readonly string[];
  readonly since?: number;
  readonly secret?: string;
  readonly timeout: number;
  readonly raw?: boolean;
}

export function define(command: Command, context: CommandContext): void {
  explainTimes(appOptions(command))
    .description(
      "Forward events to your server in the form that handlers receive. Continues where the previous run stopped.",
    )
    .argument("[channel...]", "only events of these channels (uids)")
    .requiredOption(
      "--to <url>",
      "target: a URL such as http://localhost:3000/events, or a port of this machine",
      parseTarget,
    )
    .option("--type <type...>", "only events of these types")
    .option(
      "--since <when>",
      "start time, such as 2h, 12:05 or a timestamp (default: where the previous run stopped, or now)",
      parsePast,
    )
    .option("--secret <secret>", "signing secret, whsec_… (default: a stored secret)")
    .option("--raw", "forward new deliveries as received (method, headers, bytes), but without signatures")
    .option("--timeout <seconds>", "time to wait for a response", parseCount(1, 3_600), 30)
    .action(
      createAction<[readonly string[]], ListenOptions>(context, async (client, [channels], options) => {
        const { to, type = [], since, secret, timeout, raw = false } = options;
        if (raw && (type.length > 0 || since !== undefined || secret !== undefined))
          throw usageError("--raw cannot be combined with --type, --since or --secret.");
        const app = await client.app(channels[0]);
        for (const channel of channels) await getChannel(client.api, app, channel);
        if (raw) {
          const { listenRaw } = await import("../../listen/raw.ts");
          await listenRaw(client, { app, url: to, channels, timeoutMs: timeout * 1_000 });
          return EXIT.done;
        }
        const { listen } = await import("../../listen/listen.ts");
        const { findListenSecret } = await import("../../listen/state.ts");
        await listen(client, {
          app,
          url: to,
          channels,
          types: type,
          from: since === undefined ? undefined : positionOf(since),
          secret: secret ?? findListenSecret(client.io.env),
          timeoutMs: timeout * 1_000,
        });
        return EXIT.done;
      }),
    );
  examples(command, [
    ["inlet listen --to http://localhost:3000/events", "all channels of the app"],
    ["inlet listen inbox --to http://localhost:3000/events --since 2h", "one channel, from two hours ago"],
    ["inlet listen hooks --raw --to http://localhost:3000/hooks", "sampled deliveries as sent"],
    ["inlet listen --type push --to http://localhost:3000/x | jq .status", "JSON lines for a program"],
  ]).addHelpText(
    "after",
    `
Each event is a CloudEvent in binary mode with Standard Webhooks headers. An event counts as sent once your server responds, whatever
the status, or after the timeout. While your server cannot be reached, the event is retried and later events wait. A listener with the
same app, target and filters continues where the previous one stopped.`,
  );
}
