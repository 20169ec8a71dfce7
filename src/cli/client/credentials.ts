import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, EXIT, usageError } from "../exit.ts";
import type { Io } from "../io.ts";

export interface Credentials {
  /** Base URL of the API, such as `https://host/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

const DEFAULT_PORT = "8080";
const FILE = "credentials.json";

/** Returns the folder in which the CLI stores files of the current user. */
export function configDir(env: Io["env"]): string {
  const base = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config");
  return join(base, "inlet");
}

/**
 * Returns the credentials from `INLET_URL` and `INLET_API_KEY`, or else from `inlet login`. A stored key is only sent to the
 * address for which it was stored.
 *
 * @throws CommandError
 */
export async function findCredentials(env: Io["env"], urlOption?: string): Promise<Credentials> {
  const stored = await readCredentials(env);
  const baseUrl = baseUrlOf(env, urlOption, stored);
  const apiKey = env.INLET_API_KEY?.trim() || (stored?.baseUrl === baseUrl ? stored.apiKey : undefined);
  if (apiKey) return { baseUrl, apiKey };
  throw new CommandError(
    `There is no API key for ${baseUrl}. Run \`inlet login\`, or set INLET_URL and INLET_API_KEY.`,
    { exitCode: EXIT.notAllowed },
  );
}

/** Returns the address of a gateway that runs on this machine with the same settings. */
export const formatLocalUrl = (env: Io["env"]): string =>
  `http://127.0.0.1:${env.INLET_PORT?.trim() || DEFAULT_PORT}`;

/**
 * Returns the base URL that a command would call.
 *
 * @throws CommandError
 */
export const findBaseUrl = async (env: Io["env"], urlOption?: string): Promise<string> =>
  baseUrlOf(env, urlOption, await readCredentials(env));

function baseUrlOf(env: Io["env"], urlOption: string | undefined, stored: Credentials | undefined): string {
  const url = urlOption ?? (env.INLET_URL?.trim() || undefined);
  return url === undefined ? (stored?.baseUrl ?? parseUrl(formatLocalUrl(env))) : parseUrl(url);
}

/**
 * Reads the credentials that `inlet login` stored.
 *
 * @throws CommandError if the file is unreadable or invalid
 */
export async function readCredentials(env: Io["env"]): Promise<Credentials | undefined> {
  const file = join(configDir(env), FILE);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new CommandError(`${file} cannot be read (${error.code})`);
  });
  if (text === undefined) return undefined;
  const parsed = parseStored(text);
  if (parsed === undefined)
    throw new CommandError(`${file} is not a valid credentials file. Run \`inlet login\` again.`);
  return parsed;
}

export async function writeCredentials(env: Io["env"], credentials: Credentials): Promise<string> {
  const file = join(configDir(env), FILE);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const partial = `${file}.${process.pid}`;
  await writeFile(partial, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  await rename(partial, file);
  return file;
}

/** Deletes the stored credentials. Returns false if there were none. */
export async function removeCredentials(env: Io["env"]): Promise<boolean> {
  const file = join(configDir(env), FILE);
  return rm(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}

/**
 * Converts the address of a gateway, as typed by a user, to the base URL of its API.
 *
 * @throws CommandError
 */
export function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "") {
    throw usageError(`${text} is not a gateway address; it must look like https://inlet.example.com`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
}

function parseStored(text: string): Credentials | undefined {
  try {
    const { baseUrl, apiKey } = JSON.parse(text) as Partial<Record<string, unknown>>;
    return typeof baseUrl === "string" && typeof apiKey === "string" ? { baseUrl, apiKey } : undefined;
  } catch {
    return undefined;
  }
}
