import type { Command } from "commander";
import type { Channel } from "../../../channels/entity.ts";
import { DELIVERY_METHODS, isQueryMethod } from "../../../event/methods.ts";
import type { Intake } from "../../../resources/apps/intakes/schema.ts";
import type { TestedChannel } from "../../../resources/apps/test-events.ts";
import type { Preset as StoredPreset } from "../../../verify/presets.ts";
import type { OutgoingRequest } from "../../../verify/sign/place.ts";
import { formatCause, formatPath } from "../../client/api.ts";
import { getChannel } from "../../client/app.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import { appOptions, type Client, createAction, examples } from "../../client/command.ts";
import { parseHeader, readData } from "../../client/delivery.ts";
import type { CommandContext } from "../../command-context.ts";
import { CommandError, EXIT, type ExitCode, usageError } from "../../exit.ts";
import { testIntake, toGiven } from "./test-intake.ts";

interface SendOptions {
  readonly preset?: string;
  readonly event?: string;
  readonly data?: string;
  readonly method?: string;
  readonly header?: readonly string[];
  readonly secret?: string;
  readonly show?: boolean;
  readonly test?: boolean;
  readonly intake?: boolean;
  readonly routeKey?: string;
}

/** A channel, or the intake of a blueprint. */
type Receiver = Pick<Channel, "uid" | "url" | "config"> & { readonly routeBy?: readonly string[] };

/** Response of the channel's hook. */
interface Answer {
  readonly status: number;
  readonly body: unknown;
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
        const request = await sign(client, channel, unsigned, { preset, options });
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

interface Composed {
  readonly request: OutgoingRequest;
  readonly preset: StoredPreset | undefined;
}

/** Builds the request that the provider would send, without its signature. */
async function compose(client: Client, channel: Receiver, options: SendOptions): Promise<Composed> {
  const { io } = client;
  const { preset: name = channel.config.preset, event, data, header = [] } = options;
  if (channel.url === null && !options.test)
    throw usageError(`${channel.uid} has no address, or your key has no permission to read it.`);
  const preset = await presetOf(client, name);
  if (preset === undefined && data === undefined) {
    throw usageError("The channel has no preset with a sample. Use --preset or --data.");
  }
  if (event !== undefined && data !== undefined)
    throw usageError("--event changes a sample and cannot be combined with --data.");
  const { pathname: path, search } = new URL(channel.url ?? "http://none/");
  const ownQuery = search.slice(1);
  const method = parseMethod(options.method);
  if (isQueryMethod(method)) {
    if (data === undefined) throw usageError(`--method ${method} needs --data with the query.`);
    const query = (await readData(io, data)).toString().trim().replace(/^\?/, "");
    const headers = Object.fromEntries(header.map(parseHeader));
    const target = query === "" ? path : `${path}?${query}`;
    return { request: { method, headers, target, body: Buffer.alloc(0) }, preset };
  }
  const query = data === undefined ? new URLSearchParams(preset?.sample.query).toString() : ownQuery;
  const request: OutgoingRequest = {
    method,
    headers: {
      "content-type": "application/json",
      ...preset?.sample.headers,
      ...Object.fromEntries(header.map(parseHeader)),
    },
    target: query === "" ? path : `${path}?${query}`,
    body: data === undefined ? await readSample(preset, event) : await readData(io, data),
  };
  const { freshenSample } = await import("../../../verify/sign/freshen-sample.ts");
  const isSample = preset !== undefined && data === undefined;
  const fresh = isSample ? freshenSample(request, preset, { type: event, random: Math.random }) : undefined;
  if (fresh?.ok === false) throw usageError(`${preset?.title}: ${fresh.error}.`);
  return { request: fresh?.value ?? request, preset };
}

function parseMethod(given = "POST"): string {
  const method = given.toUpperCase();
  if (DELIVERY_METHODS.some((known) => known === method)) return method;
  throw usageError(`--method must be one of ${DELIVERY_METHODS.join(", ")}.`);
}

async function readSample(preset: StoredPreset | undefined, type: string | undefined): Promise<Buffer> {
  if (preset === undefined) return Buffer.alloc(0);
  const { findSampleBody } = await import("../../samples/samples.ts");
  const found = type === undefined ? undefined : await findSampleBody(preset.preset, type);
  if (found?.ok === false) throw usageError(`${preset.title}: ${found.error}.`);
  return Buffer.from(found?.value ?? preset.sample.body);
}

const presetOf = async ({ api }: Client, name: unknown): Promise<StoredPreset | undefined> =>
  typeof name === "string" ? api.get<StoredPreset>(formatPath("presets", name)) : undefined;

async function sign(
  client: Client,
  { uid, url, config }: Receiver,
  request: OutgoingRequest,
  { preset, options }: { readonly preset: StoredPreset | undefined; readonly options: SendOptions },
): Promise<OutgoingRequest> {
  const verifying = config.preset === preset?.preset ? preset : await presetOf(client, config.preset);
  const { scheme: told, ...own } = config.verification as Readonly<Record<string, unknown>>;
  const verification = told === "preset" ? { ...verifying?.verification, ...own } : { ...own, scheme: told };
  const { scheme } = verification;
  if (scheme === undefined || scheme === "none") return request;
  const given = options.secret ?? client.io.env.INLET_SECRET;
  if (!given) {
    throw usageError(
      `The channel verifies deliveries (${scheme}). Pass its secret with --secret or INLET_SECRET.`,
    );
  }
  const { signRequest } = await import("../../../verify/sign/sign.ts");
  const signed = await signRequest(request, verification, {
    secret: (await readData(client.io, given)).toString().trimEnd(),
    hooksUrl: (url ?? "").replace(/\/hooks\/.*$/, ""),
    nowMs: Date.now(),
    readAs: (config.readAs as string | undefined) ?? verifying?.readAs,
  });
  if (signed.ok) return signed.value;
  if (options.intake) throw new CommandError(`This delivery cannot be signed: ${signed.error}.`);
  throw new CommandError(
    `This delivery cannot be signed: ${signed.error}.\nTo test the channel without a signature: inlet send ${uid} --test${
      preset === undefined ? "" : ` --preset ${preset.preset}`
    }`,
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

async function send({ output, io }: Client, { url }: Receiver, request: OutgoingRequest): Promise<ExitCode> {
  const { method, headers, target, body } = request;
  let answer: Answer;
  try {
    const response = await fetch(new URL(target, url ?? ""), {
      method,
      headers,
      ...(isQueryMethod(method) ? {} : { body: new Uint8Array(body) }),
      redirect: "manual",
      signal: AbortSignal.any([io.signal, AbortSignal.timeout(60_000)]),
    });
    const text = await response.text();
    answer = { status: response.status, body: parseAnswer(text) };
  } catch (error) {
    throw new CommandError(`${new URL(url ?? "").origin} cannot be reached: ${formatCause(error)}`, {
      exitCode: EXIT.unavailable,
      cause: error,
    });
  }
  output.one(answer, [
    ["status", answer.status],
    ...(typeof answer.body === "object" && answer.body !== null
      ? Object.entries(answer.body)
      : [["answer", answer.body] as const]),
  ]);
  if (answer.status < 300) return EXIT.done;
  return answer.status === 503 || answer.status === 429 ? EXIT.unavailable : EXIT.failed;
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
