import type { Channel } from "../../channels/entity.ts";
import { DELIVERY_METHODS, isQueryMethod } from "../../event/methods.ts";
import { ok, type Result } from "../../lib/result.ts";
import type { Preset as StoredPreset } from "../../verify/presets.ts";
import type { OutgoingRequest } from "../../verify/sign/place.ts";
import { formatCause, formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import { parseHeader, readData } from "../client/delivery.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";

/** A channel, or the intake of a blueprint. */
export type Receiver = Pick<Channel, "uid" | "url" | "config"> & { readonly routeBy?: readonly string[] };

export interface ComposeOptions {
  readonly preset?: string;
  readonly event?: string;
  readonly data?: string;
  readonly method?: string;
  readonly header?: readonly string[];
  /** Whether the delivery is sent as a test event, so that the receiver needs no address. */
  readonly test?: boolean;
}

export interface Composed {
  readonly request: OutgoingRequest;
  readonly preset: StoredPreset | undefined;
}

/** Builds the request that the provider would send, without its signature. */
export async function compose(client: Client, channel: Receiver, options: ComposeOptions): Promise<Composed> {
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
  const { freshenSample } = await import("../../verify/sign/freshen-sample.ts");
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
  const { findSampleBody } = await import("../samples/samples.ts");
  const found = type === undefined ? undefined : await findSampleBody(preset.preset, type);
  if (found?.ok === false) throw usageError(`${preset.title}: ${found.error}.`);
  return Buffer.from(found?.value ?? preset.sample.body);
}

const presetOf = async ({ api }: Client, name: unknown): Promise<StoredPreset | undefined> =>
  typeof name === "string" ? api.get<StoredPreset>(formatPath("presets", name)) : undefined;

/**
 * Signs a request with the secret of its receiver. The error explains why the request cannot be signed, for example because only the
 * provider has the private key.
 */
export async function sign(
  client: Client,
  { url, config }: Receiver,
  request: OutgoingRequest,
  { preset, secret }: { readonly preset: StoredPreset | undefined; readonly secret: string | undefined },
): Promise<Result<OutgoingRequest, string>> {
  const verifying = config.preset === preset?.preset ? preset : await presetOf(client, config.preset);
  const { scheme: told, ...own } = config.verification as Readonly<Record<string, unknown>>;
  const verification = told === "preset" ? { ...verifying?.verification, ...own } : { ...own, scheme: told };
  const { scheme } = verification;
  if (scheme === undefined || scheme === "none") return ok(request);
  if (!secret) {
    throw usageError(
      `The channel verifies deliveries (${scheme}). Pass its secret with --secret or INLET_SECRET.`,
    );
  }
  const { signRequest } = await import("../../verify/sign/sign.ts");
  return signRequest(request, verification, {
    secret: (await readData(client.io, secret)).toString().trimEnd(),
    hooksUrl: (url ?? "").replace(/\/hooks\/.*$/, ""),
    nowMs: Date.now(),
    readAs: (config.readAs as string | undefined) ?? verifying?.readAs,
  });
}

/** Response of a channel's hook. */
export interface HookResponse {
  readonly status: number;
  /** The parsed JSON, or the text if the body is not JSON. */
  readonly body: unknown;
}

/** Sends a request to the address of its receiver. @throws CommandError if there is no response */
export async function post(
  { io }: Client,
  { url }: Receiver,
  { method, headers, target, body }: OutgoingRequest,
): Promise<HookResponse> {
  try {
    const response = await fetch(new URL(target, url ?? ""), {
      method,
      headers,
      ...(isQueryMethod(method) ? {} : { body: new Uint8Array(body) }),
      redirect: "manual",
      signal: AbortSignal.any([io.signal, AbortSignal.timeout(60_000)]),
    });
    return { status: response.status, body: parseBody(await response.text()) };
  } catch (error) {
    throw new CommandError(`${new URL(url ?? "").origin} cannot be reached: ${formatCause(error)}`, {
      exitCode: EXIT.unavailable,
      cause: error,
    });
  }
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
