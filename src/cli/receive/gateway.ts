import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Credentials, findBaseUrl, readCredentials, writeCredentials } from "../client/credentials.ts";
import { invalidSettings } from "../commands/machine.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { confirm } from "../output/prompt.ts";

/** A gateway that the command uses. Disposal stops it if the command has started it. */
export interface UsedGateway extends AsyncDisposable {
  readonly credentials: Credentials;
  /** Data directory of a gateway that the command has started. `undefined` if the gateway was running before. */
  readonly dataDir: string | undefined;
}

export interface GatewayOptions {
  readonly url: string | undefined;
  /** Whether a gateway may be started without asking. */
  readonly isConfirmed: boolean;
  readonly note: (text: string) => void;
}

const REACHABLE_WITHIN_MS = 5_000;
/** Maximum wait for a gateway that is still starting. */
const READY_WITHIN_MS = 60_000;
const READY_CHECK_MS = 500;
/** Host names of this machine. */
export const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Returns the gateway of `--url`, `INLET_URL` or `inlet login`. If none of these names a running gateway, starts one with the data
 * directory of the current folder, and stores its key as `inlet login` does.
 *
 * @throws CommandError
 */
export async function openGateway(io: Io, options: GatewayOptions): Promise<UsedGateway> {
  const { url, isConfirmed, note } = options;
  const baseUrl = await findBaseUrl(io.env, url);
  const stored = await readCredentials(io.env);
  const apiKey = io.env.INLET_API_KEY?.trim() || (stored?.baseUrl === baseUrl ? stored.apiKey : undefined);
  if (await waitForResponse(io, baseUrl, note)) {
    if (apiKey) return running({ baseUrl, apiKey });
    throw new CommandError(
      `A server listens at ${baseUrl}, but there is no API key for it. Run \`inlet login\` with the key that the first start printed.`,
      { exitCode: EXIT.notAllowed },
    );
  }
  const isNamed = url !== undefined || Boolean(io.env.INLET_URL?.trim());
  if (isNamed || !LOOPBACK.test(new URL(baseUrl).hostname))
    throw new CommandError(`${baseUrl} cannot be reached.`, { exitCode: EXIT.unavailable });
  if (
    !isConfirmed &&
    !(await confirm(io, `No gateway is running at ${baseUrl}. Start one with its data in ./data?`))
  )
    throw usageError(
      `No gateway is running at ${baseUrl}. Start one with \`inlet start\`, pass --yes to start one here, or name another address with --url.`,
    );
  note("Starting a gateway …");
  return startHere(io, { baseUrl, apiKey }, note);
}

const running = (credentials: Credentials): UsedGateway => ({
  credentials,
  dataDir: undefined,
  async [Symbol.asyncDispose]() {},
});

/** Returns whether a server responds at this address. Waits while its status is 503, as that of a gateway that is starting. */
async function waitForResponse(io: Io, baseUrl: string, note: GatewayOptions["note"]): Promise<boolean> {
  const deadline = performance.now() + READY_WITHIN_MS;
  let status = await readStatus(baseUrl);
  if (status === 503) note(`The gateway at ${baseUrl} is starting …`);
  while (status === 503 && performance.now() < deadline) {
    await delay(READY_CHECK_MS, undefined, { signal: io.signal });
    status = await readStatus(baseUrl);
  }
  return status !== undefined;
}

/** Returns the status of the server at this address, or `undefined` if no server responds. */
const readStatus = (baseUrl: string): Promise<number | undefined> =>
  fetch(`${baseUrl}/auth/whoami`, {
    redirect: "manual",
    signal: AbortSignal.timeout(REACHABLE_WITHIN_MS),
  }).then(
    async (response) => {
      await response.body?.cancel();
      return response.status;
    },
    () => undefined,
  );

/** Starts a gateway in this process. It accepts the given key, or a new one, in addition to the keys in its database. */
async function startHere(
  io: Io,
  known: { readonly baseUrl: string; readonly apiKey: string | undefined },
  note: GatewayOptions["note"],
): Promise<UsedGateway> {
  const { loadConfig } = await import("../../config/load.ts");
  const { startGateway } = await import("../../gateway.ts");
  const { DataDirInUseError } = await import("../../gateway/stores.ts");
  const { formatFailure, openLog } = await import("../process.ts");
  const loaded = loadConfig(io.env);
  if (!loaded.ok) throw invalidSettings(loaded.error);
  const apiKey = known.apiKey ?? randomBytes(32).toString("base64url");
  const port = io.env.INLET_PORT ? loaded.value.port : Number(new URL(known.baseUrl).port || 80);
  const config = { ...loaded.value, apiKey, port, processes: 1 };
  const log = await openLog({ logLevel: io.env.INLET_LOG_LEVEL ? config.logLevel : "warn" }, process.stderr);
  try {
    await using starting = new AsyncDisposableStack();
    const gateway = starting.use(await startGateway(config, { log, signal: io.signal }));
    const credentials = { baseUrl: `http://127.0.0.1:${gateway.port}/v1`, apiKey };
    if (!io.env.INLET_API_KEY) {
      const file = await writeCredentials(io.env, credentials);
      note(`Its API key is stored in ${file}, so that other commands of \`inlet\` use this gateway.`);
    }
    const owned = starting.move();
    return { credentials, dataDir: config.dataDir, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  } catch (error) {
    if (io.signal.aborted) throw error;
    const isInUse = error instanceof DataDirInUseError;
    throw new CommandError(formatFailure("The gateway did not start", error), {
      exitCode: isInUse ? EXIT.dataDirInUse : EXIT.failed,
      cause: error,
    });
  }
}
