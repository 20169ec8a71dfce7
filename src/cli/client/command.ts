import { type Command, InvalidArgumentError, Option } from "commander";
import type { CommandContext } from "../command-context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import type { Io } from "../io.ts";
import { createOutput, type Output, type OutputFormat } from "../output/output.ts";
import { type Api, createApi } from "./api.ts";
import { findApp } from "./app.ts";
import { findCredentials } from "./credentials.ts";
import type { App } from "./entities.ts";

/** Dependencies of a command that calls the API. */
export interface Client {
  readonly api: Api;
  readonly output: Output;
  readonly io: Io;
  /**
   * Finds the app selected by `--app` or INLET_APP. If none is selected, returns the only app.
   *
   * @throws CommandError
   */
  readonly app: () => Promise<App>;
}

interface ClientOptions {
  readonly url?: string;
  readonly app?: string;
  readonly output?: OutputFormat;
}

/** Adds the options that all commands that call the API have in common. */
export const apiOptions = (command: Command): Command =>
  command
    .addOption(new Option("-o, --output <format>", "output format").choices(["table", "json"]))
    .option(
      "--url <address>",
      "gateway address (default: INLET_URL, then the address stored by `inlet login`)",
    );

/** Adds `--app` and the options that all commands that call the API have in common. */
export const appOptions = (command: Command): Command =>
  apiOptions(command).option(
    "-a, --app <app>",
    "id or uid of the app (default: INLET_APP, then the only app)",
  );

/** Creates a commander action that runs `act`. `act` may return an exit code. */
export const createAction =
  <A extends readonly unknown[], O extends object = object>(
    context: CommandContext,
    act: (client: Client, args: A, options: O) => Promise<ExitCode | undefined>,
  ) =>
  async (...all: unknown[]): Promise<void> => {
    const command = all.at(-1) as Command;
    const options = command.opts<ClientOptions & O>();
    const { io } = context;
    const api = createApi(await findCredentials(io.env, options.url), io.signal);
    const client: Client = {
      api,
      io,
      output: createOutput(io, options.output),
      app: () => findApp(api, options.app ?? (io.env.INLET_APP || undefined)),
    };
    context.exitCode = (await act(client, command.processedArgs as unknown as A, options)) ?? EXIT.done;
  };

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

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a time in the past, such as `2h` (two hours ago) or an RFC 3339 time. Returns ms since 1970. */
export function parsePast(text: string): number {
  const { count, unit } = /^(?<count>\d{1,9})(?<unit>[smhd])$/.exec(text)?.groups ?? {};
  if (count !== undefined && unit !== undefined) return Date.now() - Number(count) * (UNITS[unit] ?? 0);
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(atMs)) return atMs;
  throw new InvalidArgumentError("must be a time such as 30m, 2h, 7d or 2026-01-31T08:00:00Z");
}

export const formatTime = (atMs: number | undefined): string | undefined =>
  atMs === undefined ? undefined : new Date(atMs).toISOString();
