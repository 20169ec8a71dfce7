import { existsSync, realpathSync } from "node:fs";
import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CommandError, EXIT, type ExitCode } from "../../exit.ts";
import type { Io } from "../../io.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command
    .option(...CONFIG_OPTION)
    .option("--json", "one JSON object per process")
    .action(({ config, json: isJson = false }: MachineOptions & { readonly json?: boolean }) =>
      runWithConfig(context, config, ({ dataDir }) => restart(dataDir, isJson, context.io)),
    );
  examples(command, [
    ["inlet restart", "after an update of the code"],
    ["inlet restart --config inlet.env", "with a gateway's settings, which the new processes read again"],
  ]).addHelpText(
    "after",
    `
Run it on the gateway's machine as the gateway's user. Each new process must be ready before an old one stops. No request is rejected.
INLET_PORT, INLET_HOST, INLET_DATA_DIR, INLET_PROCESSES, DATABASE_URL and REDIS_URL only change when you stop and start the gateway.`,
  );
}

async function restart(dataDir: string, isJson: boolean, { stdout, signal }: Io): Promise<ExitCode> {
  const notRunning = (cause?: unknown): CommandError =>
    new CommandError(
      `no gateway with INLET_PROCESSES of 2 or more runs in ${dataDir}: check INLET_DATA_DIR, or stop and start the gateway instead`,
      { exitCode: EXIT.unavailable, cause },
    );
  if (!existsSync(dataDir)) throw notRunning();
  const { sendCommand } = await import("../../../supervisor/control.ts");
  let isDone = false;
  try {
    for await (const line of sendCommand(realpathSync(dataDir), "restart", signal)) {
      if ("error" in line) throw new CommandError(line.error);
      if (!("process" in line)) isDone = true;
      else if (isJson) stdout.write(`${JSON.stringify({ process: line.process, pid: line.pid })}\n`);
      else stdout.write(`process ${line.process} replaced (pid ${line.pid})\n`);
    }
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ECONNREFUSED"].includes(code)) throw notRunning(error);
    throw error;
  }
  if (!isDone) throw new CommandError("the gateway ended during the restart");
  return EXIT.done;
}
