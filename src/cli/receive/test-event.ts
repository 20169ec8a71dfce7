import { randomUUID } from "node:crypto";
import type { Channel } from "../../channels/entity.ts";
import type { Outcome } from "../../event/outcome.ts";
import { quoteWord } from "../../lib/quote-word.ts";
import type { TestedChannel } from "../../resources/apps/test-events.ts";
import { formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import type { App } from "../client/entities.ts";
import { type ComposeOptions, compose, post, sign } from "../deliveries/outgoing.ts";
import { CommandError } from "../exit.ts";

export interface SentEvent {
  /** Id of the event. `undefined` if the response did not contain it. */
  readonly id: string | undefined;
  /** Command line that sends such an event again. */
  readonly command: string;
  /** Reason why the event was not signed, for people. `undefined` if it was signed as the channel requires. */
  readonly unsigned: string | undefined;
}

export interface TestOptions {
  readonly secret: string | undefined;
  /** Type of the event. `undefined` for the sample's own type. */
  readonly type: string | undefined;
}

/**
 * Sends a test event to a channel as its sender would. If the delivery cannot be signed here, the gateway publishes it without
 * verification.
 *
 * @throws CommandError if no event came of the delivery
 */
export async function sendTestEvent(
  client: Client,
  app: App,
  channel: Channel,
  { secret, type }: TestOptions,
): Promise<SentEvent> {
  const { preset } = channel.config;
  if (preset !== undefined && secret === undefined && needsSecret(channel))
    return publishTest(client, app, channel, "the secret is not known here");
  const options =
    preset === undefined ? composeOwn(channel, type) : type === undefined ? {} : { event: type };
  const composed = await compose(client, channel, options);
  const signed = await sign(client, channel, composed.request, { preset: composed.preset, secret });
  if (!signed.ok) return publishTest(client, app, channel, signed.error);
  const { status, body } = await post(client, channel, signed.value);
  const outcome = (typeof body === "object" ? body : undefined) as Partial<Outcome> | undefined;
  if (status >= 300)
    throw new CommandError(`The channel rejected the test event with status ${status}: ${describe(body)}`);
  const [failed] = outcome?.quarantine ?? [];
  if (failed !== undefined)
    throw new CommandError(
      `The test event waits in quarantine: ${failed.reason}. \`inlet quarantine get ${failed.id} --app ${app.uid}\` shows why.`,
    );
  return {
    id: outcome?.events?.[0]?.id,
    command: formatSend(app, channel, options, secret),
    unsigned: undefined,
  };
}

const needsSecret = ({ config, state }: Channel): boolean =>
  state === "needsSetup" ||
  (config.verification as { readonly scheme?: string } | undefined)?.scheme !== "none";

/** Composes a delivery for a channel without a preset. It differs each time, so that it is no duplicate. */
function composeOwn({ kind, events }: Channel, type = events[0]?.type ?? "received"): ComposeOptions {
  const id = randomUUID();
  if (kind !== "cloudevents") return { data: JSON.stringify({ id, type, hello: "world" }) };
  const event = { specversion: "1.0", id, source: "/inlet/receive", type, data: { hello: "world" } };
  return { data: JSON.stringify(event), header: ["Content-Type: application/cloudevents+json"] };
}

async function publishTest({ api }: Client, app: App, { uid }: Channel, reason: string): Promise<SentEvent> {
  const path = formatPath("apps", app.id, "channels", uid, "test");
  const { events, failures } = await api.post<TestedChannel>(path, {});
  const [failure] = failures;
  if (failure !== undefined)
    throw new CommandError(`The test event failed: ${failure.reason} ${failure.detail}`);
  return { id: events[0]?.id, command: `inlet send ${uid} --app ${app.uid} --test`, unsigned: reason };
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
