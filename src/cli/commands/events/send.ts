import type { Command } from "commander";
import type { Intake } from "../../../resources/apps/intakes/schema.ts";
import type { TestedChannel } from "../../../resources/apps/test-events.ts";
import type { Preset as StoredPreset } from "../../../verify/presets.ts";
import type { OutgoingRequest } from "../../../verify/sign/place.ts";
import { formatPath } from "../../client/api.ts";
import { getChannel } from "../../client/app.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import { appOptions, type Client, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { type ComposeOptions, compose, post, type Receiver, sign } from "../../deliveries/outgoing.ts";
import { CommandError, EXIT, type ExitCode, usageError } from "../../exit.ts";
import { testIntake, toGiven } from "./test-intake.ts";

interface SendOptions extends ComposeOptions {
  readonly secret?: string;
  readonly show?: boolean;
  readonly intake?: boolean;
  readonly routeKey?: string;
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .description(
      "Post a delivery to a channel's address as its provider would: signed, with the current time.",
    )
    .argument("<channel>", "uid or id of the channel, or of the blueprint with --intake")
    .option("--preset <name>", "send this provider's sample (default: the channel's preset)")
    .option("--event <type>", "send the provider's sample of this event type")
    .option("-d, --data <data>", "body to send instead of the sample: text, @file, or @- for standard input")
    .option("--method <method>", "HTTP method (default: POST); with GET and DELETE, --data is the query")
    .option("-H, --header <header...>", "a header, as 'Name: value'")
    .option("--secret <secret>", "the channel's secret: text, @file, or @- (default: INLET_SECRET)")
    .option("--show", "print the request without sending it")
    .option("--intake", "post to the intake of a blueprint, which routes the items to installs")
    .option("--route-key <key>", "with --intake: the route key of the delivery, to reach a certain install")
    .option("--test", "publish as a test event, which needs no secret")
    .action(
      createAction<[string], SendOptions>(context, async (client, [named], options) => {
        if (options.routeKey !== undefined && !options.intake)
          throw usageError("--route-key requires --intake.");
        const app = options.intake ? undefined : await client.app(named);
        const channel =
          app === undefined ? await getIntake(client, named) : await getChannel(client.api, app, named);
        const { request: composed, preset } = await compose(client, channel, options);
        const unsigned = await withRouteKey(channel, composed, preset, options);
        if (options.test && app === undefined) return testIntake(client, named, unsigned);
        if (options.test && app !== undefined) return test(client, app.id, channel, unsigned);
        const secret = options.secret ?? client.io.env.INLET_SECRET;
        const signed = await sign(client, channel, unsigned, { preset, secret });
        if (!signed.ok) throw unsignable(channel, signed.error, preset, options);
        const request = signed.value;
        return options.show ? show(client, channel, request) : send(client, channel, request);
      }),
    );
  examples(command, [
    ["inlet send hooks --event push --secret @secret.txt", "the sample of the channel's provider"],
    ['inlet send inbox --data \'{"hello":"world"}\'', "to a channel without verification"],
    ["inlet send hooks --preset stripe --data @event.json", "your own body, signed with INLET_SECRET"],
    ["inlet send calls --method GET --data 'status=done&id=7'", "a query instead of a body"],
    ["inlet send slack --intake --event message", "to the intake of the blueprint slack"],
    ["inlet send slack --intake --route-key T061EG9R6 --test", "a test event for the install with this key"],
    ["inlet send hooks --test", "publish a test event, which handlers skip by default"],
  ]).addHelpText(
    "after",
    `
The gateway never returns secrets, so you pass the channel's secret here. Signatures made with a provider's private key cannot be
created: use --test instead. Exits with 1 if the channel rejects the delivery.`,
  );
}

async function getIntake({ api }: Client, named: string): Promise<Receiver> {
  const { id, uid } = await findBlueprint(api, named);
  const { url, config, routeBy } = await api.get<Intake>(formatPath("blueprints", id, "intake"));
  return { uid, url, config, routeBy };
}

async function withRouteKey(
  { routeBy = [], config }: Receiver,
  request: OutgoingRequest,
  preset: StoredPreset | undefined,
  { routeKey }: SendOptions,
): Promise<OutgoingRequest> {
  if (routeKey === undefined) return request;
  const { putRouteKey } = await import("../../../verify/sign/put-route-key.ts");
  const itemsPath = (config.itemsPath as string | undefined) ?? preset?.itemsPath;
  const put = putRouteKey(request, { routeBy, itemsPath }, routeKey);
  if (put.ok) return put.value;
  throw usageError(`--route-key: ${put.error}.`);
}

function unsignable(
  { uid }: Receiver,
  reason: string,
  preset: StoredPreset | undefined,
  { intake }: SendOptions,
): CommandError {
  const message = `This delivery cannot be signed: ${reason}.`;
  if (intake) return new CommandError(message);
  const sample = preset === undefined ? "" : ` --preset ${preset.preset}`;
  return new CommandError(
    `${message}\nTo test the channel without a signature: inlet send ${uid} --test${sample}`,
  );
}

async function test(
  { api, output }: Client,
  appId: string,
  { uid }: Receiver,
  request: OutgoingRequest,
): Promise<ExitCode> {
  const path = formatPath("apps", appId, "channels", uid, "test");
  const tested = await api.post<TestedChannel>(path, toGiven(request));
  output.one(tested, [
    ["items", tested.received],
    ...(tested.ignored > 0 ? [["ignored", tested.ignored] as const] : []),
    ...tested.events.map(({ type, id }) => ["event", `${type} ${id}`] as const),
    ...tested.failures.map(({ reason, detail }) => [reason, detail] as const),
  ]);
  return tested.failures.length > 0 ? EXIT.failed : EXIT.done;
}

function show(
  { output }: Client,
  { url }: Receiver,
  { method, headers, target, body }: OutgoingRequest,
): ExitCode {
  const address = new URL(target, url ?? "").href;
  output.one({ method, url: address, headers, body: body.toString() }, [
    ["request", `${method} ${address}`],
    ...Object.entries(headers),
    ["body", body.toString()],
  ]);
  return EXIT.done;
}

async function send(client: Client, channel: Receiver, request: OutgoingRequest): Promise<ExitCode> {
  const answer = await post(client, channel, request);
  client.output.one(answer, [
    ["status", answer.status],
    ...(typeof answer.body === "object" && answer.body !== null
      ? Object.entries(answer.body)
      : [["answer", answer.body] as const]),
  ]);
  if (answer.status < 300) return EXIT.done;
  return answer.status === 503 || answer.status === 429 ? EXIT.unavailable : EXIT.failed;
}
