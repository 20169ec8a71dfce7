import { type Command, InvalidArgumentError } from "commander";
import {
  appOptions,
  type ClientOptions,
  createClient,
  examples,
  parseCount,
  parseTimeout,
} from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { parseTarget } from "../../listen/target.ts";
import { createOutput } from "../../output/output.ts";
import type { ReceiveOptions } from "../../receive/receive.ts";

const MAX_INTERVAL_SECONDS = 365 * 86_400;

export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  appOptions(command)
    .description(
      "Receive events of a sender: create a channel, register or print its address, send a test event, and show the events.",
    )
    .argument("<from>", "a provider such as stripe, or webhook, cloudevents, sse, poll")
    .argument("[args...]", "URL or provider for sse and poll; parameters such as owner=nodejs repo=node")
    .option("--name <name>", "name of the app, its blueprint and its channel", parseName)
    .option(
      "--type <type...>",
      "event types to publish, each on its own topic; required for cloudevents (default: all, as `received`)",
    )
    .option("--type-path <path>", "path of the event type (default: $.type, or $event for sse)")
    .option("--secret <secret>", "secret of the webhooks: text, @file, or @- (default: INLET_SECRET)")
    .option("--token <token>", "token for the API of the provider or URL: text, @file, or @-")
    .option("--connection <connectionId>", "connection with the credentials, instead of --token")
    .option("--stream <name>", "list of the provider to poll (default: its first one)")
    .option("--target <target>", "kind of object to register at (default: the provider's first one)")
    .option("--base-url <url>", "start of the provider's API, for an installation of your own")
    .option("--items <path>", "with poll <url>: path of the items (default: $)")
    .option("--id <path>", "with poll <url>: path of the id in an item (default: its whole content)")
    .option(
      "--every <seconds>",
      "with poll: time between two polls (default: 60, or the provider's)",
      parseCount(5, MAX_INTERVAL_SECONDS),
    )
    .option(
      "--to <url>",
      "forward the events to a local server: a URL, or a port of this machine",
      parseTarget,
    )
    .option("--once", "end after the test event, or after the first fetched event")
    .option(
      "--timeout <duration>",
      "with --once: fail if no event arrived by then, such as 60s (default: 5m)",
      parseTimeout,
    )
    .option("-y, --yes", "ask no questions, for scripts")
    .action(async (from: string, args: readonly string[], options: ClientOptions & ReceiveOptions) => {
      const { openGateway } = await import("../../receive/gateway.ts");
      const { receive } = await import("../../receive/receive.ts");
      const { note } = createOutput(io, options.output);
      const isConfirmed = options.yes === true;
      await using gateway = await openGateway(io, { url: options.url, isConfirmed, note });
      const client = createClient(io, gateway.credentials, options);
      await receive(client, [from, ...args], options, gateway);
      context.exitCode = EXIT.done;
    });
  examples(command, [
    ["inlet receive stripe --secret @secret.txt", "the address for Stripe, and a signed test event"],
    ["inlet receive webhook --to 3000", "any sender, forwarded to localhost:3000"],
    ["inlet receive github owner=acme repo=shop --token @token.txt", "with the webhook registered at GitHub"],
    ["inlet receive cloudevents --type com.example.order", "CloudEvents of one type"],
    [
      "inlet receive sse https://stream.wikimedia.org/v2/stream/recentchange",
      "a stream of server-sent events",
    ],
    ["inlet receive poll https://api.example.com/orders --id '$.id'", "new items of a JSON API"],
    [
      "inlet receive poll github owner=nodejs repo=node --token @token.txt",
      "a list that a provider's preset knows",
    ],
    ["inlet receive stripe --secret @secret.txt --once --yes --json", "for scripts: a JSON object per step"],
  ]).addHelpText(
    "after",
    `
Uses the gateway of \`inlet login\`. If none runs on this machine, starts one with its data in ./data, until the command ends.
Prints each step with the command that does the same. A second run finds the app and the channel of the first.`,
  );
}

function parseName(text: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError("must be 1 to 64 characters of A-Z a-z 0-9 _ -");
}
