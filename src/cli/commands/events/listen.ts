import type { Command } from "commander";
import { getChannel } from "../../client/app.ts";
import { appOptions, createAction, examples, parseCount, parsePast } from "../../client/command.ts";
import { positionOf } from "../../client/event-stream.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, usageError } from "../../exit.ts";

interface ListenOptions {
  readonly to: string;
  readonly type?: readonly string[];
  readonly since?: number;
  readonly secret?: string;
  readonly timeout: number;
  readonly raw?: boolean;
}

/** Sends events to a server on this machine, as a handler gets them. */
export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .description("Send events to a server of yours, as a handler gets them; go on from where it was.")
    .argument("[channel...]", "events of these channels alone, by their uids")
    .requiredOption("--to <url>", "where they are posted, such as http://localhost:3000/events")
    .option("--type <type...>", "events of these types alone")
    .option(
      "--since <when>",
      "from then on: 30m, 2h, 7d, or a time (default: from where it was, else now)",
      parsePast,
    )
    .option("--secret <secret>", "what they are signed with, whsec_… (default: one that is kept for you)")
    .option(
      "--raw",
      "the deliveries themselves, from now on: method, headers and bytes of their senders, unsigned",
    )
    .option("--timeout <seconds>", "how long an answer may take", parseCount(1, 3_600), 30)
    .action(
      createAction<[readonly string[]], ListenOptions>(context, async (client, [channels], options) => {
        const { to, type = [], since, secret, timeout, raw = false } = options;
        if (raw && (type.length > 0 || since !== undefined || secret !== undefined))
          throw usageError("--raw goes with channels alone: no --type, --since or --secret.");
        if (!URL.canParse(to) || !/^https?:$/.test(new URL(to).protocol))
          throw usageError(`${to} is not an address.`);
        const app = await client.app();
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
    ["inlet listen inbox --to http://localhost:3000/events --since 2h", "one, with the last two hours"],
    ["inlet listen hooks --raw --to http://localhost:3000/hooks", "what the sender sent, sampled"],
    ["inlet listen --type push --to http://localhost:3000/x | jq .status", "lines of JSON for a program"],
  ]).addHelpText(
    "after",
    `
Each event is a CloudEvent in binary mode with the headers of Standard Webhooks. It counts as sent once your server has answered,
whatever the status; while nobody answers it is tried again, in order. Where a listener of the same app, target and filters was, it
goes on: after sleep, restarts, and answers of 503.`,
  );
}
