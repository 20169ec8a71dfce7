import { randomUUID } from "node:crypto";
import type { Channel } from "../../channels/entity.ts";
import type { Outcome } from "../../event/outcome.ts";
import { quoteWord } from "../../lib/quote-word.ts";
import type { TestedChannel } from "../../resources/apps/test-events.ts";
import { parseBodyPath } from "../../verify/message/body-path.ts";
import { type OutgoingRequest, parsePlace, putInto, splitTarget } from "../../verify/sign/place.ts";
import { formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import type { App } from "../client/entities.ts";
import { type Composed, type ComposeOptions, compose, post, sign } from "../deliveries/outgoing.ts";
import { CommandError, EXIT } from "../exit.ts";

export interface SentEvent {
  /** Id of the event. `undefined` if the response did not contain it. */
  readonly id: string | undefined;
  /** Command line that sends such an event again. */
  readonly command: string;
  readonly isSigned: boolean;
  /** Reason why the event was published without verification, for people. `undefined` if it was sent as the sender would. */
  readonly unsigned: string | undefined;
}

/** Result of a test event that was not sent, with a reason for people. */
export interface SkippedEvent {
  readonly skipped: string;
}

export interface TestOptions {
  readonly secret: string | undefined;
  /** Type of the event. `undefined` for the sample's own type. */
  readonly type: string | undefined;
}

/**
 * Sends a test event to a channel as its sender would. If the delivery cannot be signed here, the gateway publishes it without
 * verification. Skips the test if no delivery can be composed that the channel publishes.
 *
 * @throws CommandError if no event came of the delivery
 */
export async function sendTestEvent(
  client: Client,
  app: App,
  channel: Channel,
  { secret, type }: TestOptions,
): Promise<SentEvent | SkippedEvent> {
  const made = await composeTest(client, channel, type);
  if ("skipped" in made) return made;
  const { composed, options } = made;
  if (composed.preset?.secret && secret === undefined && needsSecret(channel))
    return publishTest(client, app, channel, composed.request, "the secret is not known here");
  const signed = await sign(client, channel, composed.request, { preset: composed.preset, secret });
  if (!signed.ok) return publishTest(client, app, channel, composed.request, signed.error);
  const { status, body } = await post(client, channel, signed.value);
  const outcome = (typeof body === "object" ? body : undefined) as Partial<Outcome> | undefined;
  if (status >= 300)
    throw new CommandError(`The channel rejected the test event with status ${status}: ${describe(body)}`);
  const [failed] = outcome?.quarantine ?? [];
  if (failed !== undefined)
    throw new CommandError(
      `The test event waits in quarantine: ${failed.reason}. \`inlet quarantine get ${failed.id} --app ${app.uid}\` shows why.`,
    );
  if (outcome?.ignored) return { skipped: "`when` of the definitions excludes it" };
  return {
    id: outcome?.events?.[0]?.id,
    command: formatSend(app, channel, options, secret),
    isSigned: signed.value !== composed.request,
    unsigned: undefined,
  };
}

interface TestDelivery {
  readonly composed: Composed;
  /** Options with which `inlet send` composes such a delivery. */
  readonly options: ComposeOptions;
}

/** Composes a delivery with the type at the path where the channel's definition reads it. */
async function composeTest(
  client: Client,
  channel: Channel,
  type: string | undefined,
): Promise<TestDelivery | SkippedEvent> {
  const { preset } = channel.config;
  const definition = channel.events.find((one) => type === undefined || one.type === type);
  const ownPath = definition?.typePath ?? undefined;
  const wanted = type ?? (preset === undefined ? definition?.type : undefined);
  const options: ComposeOptions =
    preset === undefined
      ? composeOwn(channel, wanted)
      : wanted === undefined || ownPath
        ? {}
        : { event: wanted };
  let composed: Composed;
  try {
    composed = await compose(client, channel, options);
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === EXIT.wrongSettings)
      return { skipped: `there is no sample of the type ${wanted}` };
    throw error;
  }
  if (ownPath === undefined || wanted === undefined) return { composed, options };
  const request = putType(composed, ownPath, wanted);
  if (request === undefined) return { skipped: `no value can be set at the path ${ownPath}` };
  return {
    composed: { ...composed, request },
    options: {
      data: request.body.toString(),
      header: Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
    },
  };
}

/** Sets the event type at a path. Adds the objects of the path that the body lacks. */
function putType({ request, preset }: Composed, path: string, type: string): OutgoingRequest | undefined {
  const place = parsePlace(path, preset?.itemsPath);
  if (place === undefined) return undefined;
  const steps = place.in === "body" ? parseBodyPath(place.name) : undefined;
  const names = steps?.ok ? steps.value.map(({ key }) => key) : [];
  let filled = request;
  for (const [index, name] of names.slice(0, -1).entries()) {
    if (typeof name !== "string") return undefined;
    const start = `$${names
      .slice(0, index + 1)
      .map((key) => `['${key}']`)
      .join("")}`;
    const put = putInto(filled, { in: "body", name: start }, (before) => before ?? {});
    if (!put.ok) return undefined;
    filled = put.value;
  }
  const put = putInto(filled, place, () => type);
  return put.ok ? put.value : undefined;
}

const needsSecret = ({ config, state }: Channel): boolean =>
  state === "needsSetup" ||
  (config.verification as { readonly scheme?: string } | undefined)?.scheme !== "none";

/** Composes a delivery for a channel without a preset. It differs each time, so that it is no duplicate. */
function composeOwn({ kind }: Channel, type = "received"): ComposeOptions {
  const id = randomUUID();
  if (kind !== "cloudevents") return { data: JSON.stringify({ id, type, hello: "world" }) };
  const event = { specversion: "1.0", id, source: "/inlet/receive", type, data: { hello: "world" } };
  return { data: JSON.stringify(event), header: ["Content-Type: application/cloudevents+json"] };
}

async function publishTest(
  { api }: Client,
  app: App,
  { uid }: Channel,
  { method, headers, target, body }: OutgoingRequest,
  reason: string,
): Promise<SentEvent> {
  const path = formatPath("apps", app.id, "channels", uid, "test");
  const delivery = { method, headers, query: splitTarget(target)[1], body: body.toString() };
  const { events, failures } = await api.post<TestedChannel>(path, delivery);
  const [failure] = failures;
  if (failure !== undefined)
    throw new CommandError(`The test event failed: ${failure.reason} ${failure.detail}`);
  const command = `inlet send ${uid} --app ${app.uid} --test`;
  return { id: events[0]?.id, command, isSigned: false, unsigned: reason };
}

function formatSend(
  { uid: app }: App,
  { uid }: Channel,
  { data, header = [], event }: ComposeOptions,
  secret: string | undefined,
): string {
  const words = ["inlet", "send", uid, "--app", app];
  if (event !== undefined) words.push("--event", quoteWord(event));
  for (const one of header) words.push("-H", quoteWord(one));
  if (data !== undefined) words.push("-d", quoteWord(data));
  if (secret !== undefined) words.push("--secret", '"$INLET_SECRET"');
  return words.join(" ");
}

const describe = (body: unknown): string => (typeof body === "string" ? body : JSON.stringify(body));
