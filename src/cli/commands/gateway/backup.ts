import { type Command, Option } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { createOutput, type OutputFormat } from "../../output/output.ts";
import { CONFIG_OPTION, runWithConfig } from "../machine.ts";

interface BackupOptions {
  readonly config?: string;
  readonly withoutMasterKey?: boolean;
  readonly output?: OutputFormat;
}

/** Writes what a gateway keeps in its own PostgreSQL and Redis into one file. */
export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  command
    .argument("[file]", "a file that is not there yet (default: inlet-<time>.backup.tar)")
    .option("--without-master-key", "leave the master key out: you keep it elsewhere")
    .option(...CONFIG_OPTION)
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]))
    .action(async (file: string | undefined, options: BackupOptions) => {
      const { withoutMasterKey = false } = options;
      const { backUp } = await import("../../backup/backup.ts");
      await runWithConfig(context, options.config, async (config) => {
        await backUp(io, createOutput(io, options.output), { config, file, withoutMasterKey });
        return EXIT.done;
      });
    });
  examples(command, [
    ["inlet backup", "asks for the passphrase that the master key is sealed under"],
    ["INLET_BACKUP_PASSPHRASE=… inlet backup /backups/inlet.tar", "for a timer"],
    ["inlet backup --without-master-key --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    `
It runs on the gateway's machine, beside the gateway or without it. The file (0600) holds events and settings in the clear; secrets
in it are sealed under the master key. Servers of others (DATABASE_URL, REDIS_URL) are backed up by their own tools.`,
  );
}
