import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { findNearest } from "../lib/nearest.ts";
import { formatCause } from "./client/api.ts";
import type { CommandContext } from "./command-context.ts";
import { COMMANDS, type CommandEntry, DEFAULT_COMMAND } from "./commands/command-list.ts";
import { CommandError, EXIT, type ExitCode } from "./exit.ts";
import type { Io } from "./io.ts";
import { escapeLines } from "./output/escape.ts";
import { adaptCommands, findProgramName } from "./program-name.ts";

/**
 * Runs a command and returns its exit code. Prints errors to standard error.
 *
 * @param argv arguments without node and script
 */
export async function runProgram(argv: readonly string[], io: Io): Promise<ExitCode> {
  const context: CommandContext = { io, exitCode: EXIT.done };
  const name = findCommandName(argv);
  try {
    if (name === "complete") return await complete(argv, context);
    if (name !== undefined && !COMMANDS.some((entry) => entry.name === name)) return unknown(name, io);
    const isHelp = argv[0] === "help" && name !== undefined;
    await createProgram(context).parseAsync(isHelp ? [name, "--help"] : [...argv], { from: "user" });
    return context.exitCode;
  } catch (error) {
    return conclude(error, io);
  }
}

/** Returns the command that the arguments name, including the command after `help`. Returns `undefined` if there is none. */
export function findCommandName(argv: readonly string[]): string | undefined {
  const name = argv[0] === "help" ? argv[1] : argv[0];
  return name?.startsWith("-") ? undefined : name;
}

/** Creates the commander program. All commands are listed, but only the command that is about to run defines its arguments. */
function createProgram(context: CommandContext, entries: readonly CommandEntry[] = COMMANDS): Command {
  const { io } = context;
  const program = new Command(findProgramName(io.env))
    .description(
      "Receives events from webhooks, streams and polls, and publishes them, deduplicated, to Redis streams.",
    )
    .usage("[command] [options]")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(adaptCommands(text, io.env)),
      writeErr: (text) => void io.stderr.write(adaptCommands(escapeLines(text), io.env)),
      getOutHelpWidth: () => io.stdout.columns ?? 100,
    })
    .showHelpAfterError("Run the command with --help to list its options.")
    .addHelpText("after", TOP_HELP)
    .version(packageJson.version, "-v, --version", "print the version");
  for (const { name, summary, group } of entries) {
    program
      .command(name, { isDefault: name === DEFAULT_COMMAND })
      .summary(summary)
      .description(`${summary}.`)
      .helpGroup(group);
  }
  return program.hook("preSubcommand", (_, command) => defineArguments(command, context));
}

async function defineArguments(command: Command, context: CommandContext): Promise<void> {
  const entry = COMMANDS.find(({ name }) => name === command.name());
  await (await entry?.load())?.define(command, context);
}

/**
 * Prints completions for the shell script, which runs this at each press of Tab. The output `:0` makes the shell complete file
 * names.
 */
async function complete(argv: readonly string[], context: CommandContext): Promise<ExitCode> {
  const program = createProgram(
    context,
    COMMANDS.filter(({ name }) => name !== "completion"),
  );
  for (const command of program.commands) await defineArguments(command, context);
  const { isFilePlace } = await import("./file-place.ts");
  const [, ...words] = argv.slice(argv.indexOf("--"));
  if (isFilePlace(program, words)) {
    context.io.stdout.write(":0\n");
    return EXIT.done;
  }
  const { default: addCompletion } = await import("@bomb.sh/tab/commander");
  const { default: tab } = await import("@bomb.sh/tab");
  const { SHELLS } = await import("./commands/session/completion.ts");
  addCompletion(program, { completionCommandName: "completion" });
  // Replace the package's own list of shells, because it contains a shell that this CLI does not support.
  tab.commands.get("completion")?.argument("shell", (offer) => {
    for (const shell of SHELLS) offer(shell, "");
  });
  await program.parseAsync([...argv], { from: "user" });
  return EXIT.done;
}

const TOP_HELP = `
Without a command, the gateway starts. \`inlet start --help\` lists its settings. \`inlet <command> --help\` shows examples.
At a terminal, commands print tables. Otherwise they print JSON lines. NO_COLOR disables colors.`;

function unknown(name: string, { stderr, env }: Pick<Io, "stderr" | "env">): ExitCode {
  const nearest = findNearest(
    name,
    COMMANDS.map((command) => command.name),
  );
  const hint = nearest === undefined ? " `inlet --help` lists them." : ` Did you mean ${nearest}?`;
  stderr.write(`${adaptCommands(escapeLines(`There is no command ${name}.${hint}`), env)}\n`);
  return EXIT.wrongSettings;
}

function conclude(error: unknown, { stderr, env, signal }: Io): ExitCode {
  // Commander has already printed the message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.wrongSettings;
  if (signal.aborted) return EXIT.interrupted;
  const message = error instanceof CommandError ? error.message : formatCause(error);
  stderr.write(`${adaptCommands(escapeLines(message), env)}\n`);
  return error instanceof CommandError ? error.exitCode : EXIT.failed;
}
