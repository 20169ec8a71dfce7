import { setTimeout as delay } from "node:timers/promises";
import type { Channel } from "../../channels/entity.ts";
import type { RegistrationEntity } from "../../resources/apps/registrations.ts";
import { formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import { readData } from "../client/delivery.ts";
import type { App } from "../client/entities.ts";
import { requireNoNamedSecrets } from "../client/named-secrets.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";
import { readSecret } from "../output/prompt.ts";
import { findConnection } from "./connect.ts";
import { findPosition, followChannel, type Position } from "./follow.ts";
import { LOOPBACK } from "./gateway.ts";
import { composePlan, type Plan, type PlanOptions } from "./plan.ts";
import { findPlace, type Place, type SetUp, setUpChannel } from "./set-up.ts";
import { createSteps, type Steps } from "./steps.ts";
import { type SentEvent, sendTestEvent } from "./test-event.ts";

export interface ReceiveOptions extends PlanOptions {
  readonly to?: string;
  readonly once?: boolean;
  /** Maximum duration of a run with `once`, in seconds. */
  readonly timeout?: number;
  readonly yes?: boolean;
}

/** Data directory of an embedded gateway, or `undefined`. */
export interface ReceiveContext {
  readonly dataDir: string | undefined;
}

const REGISTRATION_CHECK_MS = 500;
const CHECKS_BEFORE_NOTE = 10;
const ONCE_TIMEOUT_SECONDS = 300;

/** Sets up a channel, sends a test event, and shows the events of the channel until the signal aborts or `once` is met. */
export async function receive(
  client: Client,
  [from, ...rest]: readonly [string, ...string[]],
  options: ReceiveOptions,
  { dataDir }: ReceiveContext,
): Promise<void> {
  const { api, io, output } = client;
  const steps = createSteps(output);
  const mayAsk = io.stdin.isTTY === true && options.yes !== true;
  const started = dataDir === undefined ? "" : ` (started here, data in ${dataDir})`;
  const gateway = {
    step: "gateway",
    text: api.baseUrl + started,
    facts: { url: api.baseUrl, started: dataDir !== undefined },
  };
  steps.done(gateway, dataDir === undefined ? "inlet status" : "inlet start");
  if (options.timeout !== undefined && !options.once) throw usageError("--timeout needs --once.");
  const plan = await composePlan(api, [from, ...rest], options);
  const place = await findPlace(client, plan.channel);
  const secret = await findSecret(client, plan, place, options.secret, mayAsk);
  const made = await connectAndSetUp(client, steps, plan, place, secret, { ...options, mayAsk });
  const { app, channel } = made;
  const { url } = channel;
  if (url === null && !plan.isFetched)
    throw new CommandError(
      `The channel ${channel.uid} is ready, but your API key may not read its address. It needs the permission channels.read.`,
      { exitCode: EXIT.notAllowed },
    );
  const { once = false, timeout = ONCE_TIMEOUT_SECONDS } = options;
  const expired = once ? AbortSignal.timeout(timeout * 1_000) : undefined;
  const signal = expired ? AbortSignal.any([io.signal, expired]) : io.signal;
  let isMet = false;
  try {
    if (url !== null) {
      const facts = { url };
      steps.done({ step: "address", text: url, facts }, `inlet channels get ${channel.uid} --app ${app.uid}`);
    }
    if (plan.registration) await awaitRegistration(client, steps, app, channel, signal);
    else if (url !== null) tellSender(client, plan, channel);
    const position = await findPosition(client, app, channel, plan);
    const sent = url === null ? undefined : await sendTest(client, steps, app, channel, options, secret);
    isMet = await show(client, steps, { app, channel, plan, position, sent, signal }, options);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  if (!once) output.note(describeEnd(made, plan, dataDir));
  else if (!isMet) {
    // A script must not mistake an interrupted run for an event.
    io.signal.throwIfAborted();
    throw new CommandError(
      `No event arrived within ${timeout} s (--timeout). The channel ${channel.uid} of the app ${app.uid} stays.`,
    );
  }
}

/** Sets up the channel with its connection. If that fails, deletes a connection that this run created. */
async function connectAndSetUp(
  client: Client,
  steps: Steps,
  plan: Plan,
  place: Place,
  secret: string | undefined,
  options: Pick<ReceiveOptions, "token" | "connection"> & { readonly mayAsk: boolean },
): Promise<SetUp> {
  const { mayAsk, token, connection } = options;
  const connected =
    plan.called &&
    (await findConnection(client, steps, plan.called, {
      mayAsk,
      channel: plan.channel.uid,
      current: place.found && findCurrent(place.found.channel),
      ...(token !== undefined && { token }),
      ...(connection !== undefined && { connection }),
    }));
  const connectionId = connected?.id;
  const settings = {
    ...(plan.isFetched && { connectionId }),
    registration: plan.registration && { ...plan.registration, connectionId },
    secrets: secret === undefined ? undefined : [{ value: secret }],
  };
  try {
    return await setUpChannel(client, steps, place, plan.channel, settings);
  } catch (error) {
    // The error of the set-up is the one to report.
    if (connected?.isNew) await client.api.delete(formatPath("connections", connected.id)).catch(() => {});
    throw error;
  }
}

/** Returns the id of the connection that a channel uses, for its requests or for its registration. */
function findCurrent({ connectionId, config }: Channel): string | undefined {
  const registration = config.registration as { readonly connectionId?: string } | undefined;
  return registration?.connectionId ?? connectionId ?? undefined;
}

async function findSecret(
  { io, output }: Client,
  { preset, registration }: Plan,
  { found }: Place,
  given: string | undefined,
  mayAsk: boolean,
): Promise<string | undefined> {
  const source = given ?? (preset && !registration ? io.env.INLET_SECRET || undefined : undefined);
  if (source !== undefined) {
    if (found) requireNoNamedSecrets(found.channel);
    return String(await readData(io, source)).trimEnd();
  }
  const isReady = found !== undefined && found.channel.state !== "needsSetup";
  if (!mayAsk || isReady || !preset?.secret || registration) return undefined;
  output.note(`${preset.title} signs its webhooks. ${preset.secret.label}: ${preset.secret.hint}`);
  const secret = (await readSecret(io, `${preset.secret.label} (hidden; Enter to set it later): `)).trim();
  return secret === "" ? undefined : secret;
}

/** Waits until the provider has confirmed the registration. @throws CommandError if it rejects the registration */
async function awaitRegistration(
  client: Client,
  steps: Steps,
  app: App,
  { uid }: Channel,
  signal: AbortSignal,
): Promise<void> {
  const path = formatPath("apps", app.id, "channels", uid, "registration");
  for (let checks = 0; ; checks++) {
    if (checks === CHECKS_BEFORE_NOTE)
      client.output.note("Waiting until the provider confirms the registration …");
    const found = await client.api.get<RegistrationEntity>(path);
    const { state, providerId, lastError } = found;
    if (state === "active") {
      const facts = { state, providerId };
      const text = `active, webhook ${providerId} at the provider`;
      steps.done(
        { step: "registration", text, facts },
        `inlet channels registration ${uid} --app ${app.uid}`,
      );
      return;
    }
    if (state === "suspended")
      throw new CommandError(
        "This gateway has another hooks URL than the registrations. `inlet registrations adopt` moves them to it.",
      );
    if (state === "none") throw new CommandError(`The channel ${uid} no longer asks for a registration.`);
    if (lastError !== null)
      throw new CommandError(
        `The provider has not registered the address: ${lastError.message}\nInlet keeps trying. \`inlet channels registration ${uid} --app ${app.uid}\` shows the state.`,
      );
    await delay(REGISTRATION_CHECK_MS, undefined, { signal });
  }
}

/** Prints the steps that the user takes at the sender. */
function tellSender({ output }: Client, { preset, channel }: Plan, { url, state }: Channel): void {
  const sender = preset?.title ?? "the sender";
  const lines = [`Enter this address at ${sender}. It is a credential, so do not publish it.`];
  if (state === "needsSetup")
    lines.push("The channel rejects deliveries until it has a secret. Run the command again with --secret.");
  if (LOOPBACK.test(new URL(url ?? "").hostname))
    lines.push(
      "Only this machine can reach it. For other senders, open a tunnel and set INLET_HOOKS_URL to its address.",
    );
  if (preset !== undefined)
    lines.push(...preset.notes, `${sender} explains webhooks at ${preset.documentationUrl}`);
  const [target] = preset?.registrations ?? [];
  if (preset !== undefined && target !== undefined) {
    const params = ((target.params.required ?? []) as readonly string[]).map((name) => ` ${name}=…`).join("");
    const words = `inlet receive ${preset.preset}${params} --token @token.txt --name ${channel.uid}-2`;
    lines.push(`Inlet can also enter a public address for you: ${words}`);
  }
  for (const line of lines) output.say(`  - ${output.adapt(line)}`);
}

/** Sends a test event, or explains why not. @throws CommandError if it was skipped, but `once` waits for it */
async function sendTest(
  client: Client,
  steps: Steps,
  app: App,
  channel: Channel,
  { type, once }: ReceiveOptions,
  secret: string | undefined,
): Promise<SentEvent | undefined> {
  const sent = await sendTestEvent(client, app, channel, { secret, type: type?.[0] });
  if ("skipped" in sent) {
    const { skipped } = sent;
    steps.done({ step: "test", text: `skipped, because ${skipped}`, facts: { skipped } });
    if (once)
      throw new CommandError(
        `No test event was sent, because ${skipped}. The channel is ready. Leave out --once to wait for the events of its sender.`,
      );
    return undefined;
  }
  const how =
    sent.unsigned !== undefined
      ? `published without a signature, because ${sent.unsigned}`
      : sent.isSigned
        ? "signed and sent"
        : "sent";
  steps.done({ step: "test", text: how, facts: { signed: sent.isSigned } }, sent.command);
  return sent;
}

interface Shown {
  readonly app: App;
  readonly channel: Channel;
  readonly plan: Plan;
  readonly position: Position;
  readonly sent: SentEvent | undefined;
  readonly signal: AbortSignal;
}

/** Shows the events of the channel until the signal aborts. Returns true as soon as `once` is met. */
async function show(client: Client, steps: Steps, shown: Shown, options: ReceiveOptions): Promise<boolean> {
  const { output } = client;
  const { app, channel, plan, position, sent } = shown;
  const { once = false, to } = options;
  const doneOnce = new AbortController();
  const isLast = (id: string): boolean => once && (sent?.id === undefined || sent.id === id);
  if (!once) output.note("Events of this channel, until you press Ctrl-C:");
  const signal = AbortSignal.any([shown.signal, doneOnce.signal]);
  let failure: string | undefined;
  const onFailing = (message: string): void => {
    if (!once) return;
    failure = message;
    doneOnce.abort();
  };
  const followed = { app, channel, isFetched: plan.isFetched, position, to, signal, onFailing };
  await followChannel(client, followed, (event, forwarded) => {
    const { id, type, topic, entryId, data } = event;
    const facts = { eventId: id, topic, type, entryId, ...(forwarded ? { forwarded } : { data }) };
    if (output.isJson || isLast(id)) {
      const text = `${id} of the type ${type}, on the topic ${topic}`;
      steps.done({ step: "event", text, facts }, `inlet events get ${topic} ${entryId} --app ${app.uid}`);
    }
    if (isLast(id)) doneOnce.abort();
  });
  if (failure !== undefined)
    throw new CommandError(
      `The source keeps failing, so no event arrived: ${failure}\n\`inlet sources polls ${channel.uid} --app ${app.uid}\` shows its last requests.`,
    );
  return doneOnce.signal.aborted;
}

/** Explains what stays after the command has ended. */
function describeEnd(
  { app, channel: { uid }, isOwnApp }: SetUp,
  { isFetched, registration }: Plan,
  dataDir: string | undefined,
): string {
  const lines = [`Stopped. The app ${app.uid} stays, with its channel ${uid} and its events.`];
  if (dataDir !== undefined)
    lines.push(`This gateway ends with the command. \`inlet start\` continues with the data in ${dataDir}.`);
  else if (isFetched)
    lines.push(`The gateway keeps fetching. \`inlet channels pause ${uid} --app ${app.uid}\` pauses it.`);
  else lines.push("The gateway keeps receiving. The same command shows the events again.");
  if (registration) lines.push("The webhook at the provider stays as long as the channel.");
  lines.push(
    isOwnApp
      ? `To remove everything: inlet apps delete ${app.uid} --purge, then inlet blueprints delete ${uid}`
      : `To remove the channel: inlet channels delete ${uid} --app ${app.uid}`,
  );
  return lines.join("\n");
}
