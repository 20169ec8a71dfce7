import { type Command, InvalidArgumentError, Option } from "commander";
import type { CommandContext } from "../command-context.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { createOutput, type Output, type OutputFormat } from "../output/output.ts";
import { confirm } from "../output/prompt.ts";
import { type Api, createApi, formatPath } from "./api.ts";
import { findApp, findAppOf } from "./app.ts";
import { type Credentials, findCredentials } from "./credentials.ts";
import { readData } from "./delivery.ts";
import type { App } from "./entities.ts";
import { parseDuration } from "./times.ts";

/** Dependencies of a command that calls the API. */
export interface Client {
  readonly api: Api;
  readonly output: Output;
  readonly io: Io;
  /**
   * Finds the app selected by `--app` or INLET_APP. If none is selected, returns the app that has an entity with the given id or uid, or the
   * only app.
   *
   * @throws CommandError
   */
  readonly app: (id?: string) => Promise<App>;
  /** Finds the app selected by `--app` or INLET_APP. Returns `undefined` if none is selected. @throws CommandError */
  readonly selectedApp: () => Promise<App | undefined>;
  /** Returns the API path of an app, followed by percent-encoded segments. If they name an entity, finds its app. */
  readonly appPath: (...segments: readonly string[]) => Promise<string>;
}

/** Runs a command. The result is an exit code, or an object to print. */
type Act<A extends readonly unknown[], O extends object> = (
  client: Client,
  args: A,
  options: O,
) => Promise<ExitCode | object | undefined>;

export interface ClientOptions {
  readonly url?: string;
  readonly app?: string;
  readonly output?: OutputFormat;
  readonly field?: string;
}

/** Adds the options that choose the output format. */
export const outputOption = (command: Command): Command =>
  command
    .addOption(new Option("-o, --output <format>", "output format").choices(["table", "json"]))
    .addOption(new Option("--json", "JSON lines, like --output json").implies({ output: "json" }));

/** Adds the options that all commands that call the API have in common. */
export const apiOptions = (command: Command): Command =>
  outputOption(command)
    .option("--field <field>", "print only this field of each result, such as id or handler.secret")
    .option(
      "--url <address>",
      "gateway address (default: INLET_URL, then the address stored by `inlet login`, then this machine)",
    );

/** Adds `--app` and the options that all commands that call the API have in common. */
export const appOptions = (command: Command): Command =>
  apiOptions(command).option(
    "-a, --app <app>",
    "id or uid of the app (default: INLET_APP, then the only app)",
  );

/** Collections of an app whose entities are looked up to find their app. */
const LOOKED_UP: ReadonlySet<string> = new Set(["channels", "subscriptions", "deliveries", "quarantine"]);

/** Creates the dependencies of a command that calls the API with these credentials. */
export function createClient(
  io: Io,
  credentials: Credentials,
  options: Pick<ClientOptions, "app" | "output" | "field">,
): Client {
  const api = createApi(credentials, io.signal);
  const named = options.app ?? (io.env.INLET_APP || undefined);
  const app: Client["app"] = (id) =>
    named === undefined && id !== undefined ? findAppOf(api, id) : findApp(api, named);
  const output = createOutput(io, options.output, options.field);
  const appPath: Client["appPath"] = async (...segments) => {
    const [collection = "", id] = segments;
    const { id: appId } = await app(LOOKED_UP.has(collection) ? id : undefined);
    return formatPath("apps", appId, ...segments);
  };
  const selectedApp: Client["selectedApp"] = async () =>
    named === undefined ? undefined : findApp(api, named);
  return { api, io, output, app, selectedApp, appPath };
}

/** Creates a commander action that runs `act`. */
export const createAction =
  <A extends readonly unknown[], O extends object = object>(context: CommandContext, act: Act<A, O>) =>
  async (...all: unknown[]): Promise<void> => {
    const command = all.at(-1) as Command;
    const options = command.opts<ClientOptions & O>();
    const { io } = context;
    const client = createClient(io, await findCredentials(io.env, options.url), options);
    const result = (await act(client, command.processedArgs as unknown as A, options)) ?? EXIT.done;
    if (typeof result === "object") client.output.one(result);
    else context.exitCode = result;
  };

/**
 * Creates a function that declares a subcommand, and returns it for more options. A subcommand `list` runs by default.
 *
 * @param addOptions `apiOptions` or `appOptions`
 */
export const declareSubcommands =
  (parent: Command, context: CommandContext, addOptions: (command: Command) => Command) =>
  <A extends readonly unknown[] = [], O extends object = object>(
    usage: string,
    description: string,
    act: Act<A, O>,
  ): Command =>
    addOptions(parent.command(usage, { isDefault: /^list\b/.test(usage) }))
      .description(description)
      .action(createAction(context, act));

export interface DeleteOptions {
  readonly purge?: boolean;
  readonly yes?: boolean;
}

/**
 * Asks for confirmation, unless the options contain it.
 *
 * @param kind kind of the deleted object, such as `app` or `channel`
 * @throws CommandError if the user does not confirm
 */
export async function confirmDeletion(
  { io }: Client,
  { yes = false }: DeleteOptions,
  kind: string,
  details: string,
): Promise<void> {
  if (yes || (await confirm(io, `Delete the ${kind} ${details}?`))) return;
  throw usageError(`The ${kind} was not deleted. Use --yes to confirm.`);
}

/** Adds examples to the help of a command. Each example is a command line with an explanation. */
export const examples = (
  command: Command,
  lines: readonly (readonly [line: string, meaning: string])[],
): Command => {
  const width = Math.max(...lines.map(([line]) => line.length));
  const shown = lines.map(([line, meaning]) => `  $ ${line.padEnd(width)}  # ${meaning}`);
  return command.addHelpText("after", `\nExamples:\n${shown.join("\n")}`);
};

/** Returns a parser for an option whose value is an integer within the given bounds. */
export const parseCount =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`must be an integer between ${least} and ${most}`);
  };

const MAX_TIMEOUT_SECONDS = 86_400;

/** Parses JSON of a command-line argument. @throws CommandError */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw usageError(`${text} is not JSON.`);
  }
}

/** Adds the option for the file with an entity. */
export const fileOption = (command: Command): Command =>
  command.requiredOption("-f, --file <file>", "JSON file with the fields of the API; - is standard input");

/** Reads the fields of an entity from a JSON file. @throws CommandError */
export async function readEntity(io: Io, file: string): Promise<object> {
  const value = parseJson(String(await readData(io, `@${file}`)));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw usageError(`${file} must contain a JSON object.`);
}

/** Parses a timeout between a second and a day, such as `60s`. Returns seconds. */
export function parseTimeout(text: string): number {
  const seconds = parseDuration(text);
  if (seconds > 0 && seconds <= MAX_TIMEOUT_SECONDS) return seconds;
  throw new InvalidArgumentError("must be between 1s and 24h");
}
