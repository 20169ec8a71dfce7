import { resolve } from "node:path";
import type { Command } from "commander";
import { examples, outputOption } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { createOutput, type OutputFormat } from "../../output/output.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

interface RestoreOptions extends MachineOptions {
  readonly dataDir?: string;
  readonly withoutMasterKey?: boolean;
  readonly output?: OutputFormat;
}

export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  outputOption(command)
    .argument("<file>", "file written by `inlet backup`")
    .option("--data-dir <dir>", "an empty or missing folder (default: INLET_DATA_DIR)")
    .option("--without-master-key", "leave out the master key, which you add yourself")
    .option(...CONFIG_OPTION)
    .action(async (file: string, options: RestoreOptions) => {
      const { withoutMasterKey = false } = options;
      const { restore } = await import("../../backup/restore.ts");
      await runWithConfig(context, options.config, async (config) => {
        const dataDir = resolve(options.dataDir ?? config.dataDir);
        await restore(io, createOutput(io, options.output), { config, file, dataDir, withoutMasterKey });
        return EXIT.done;
      });
    });
  examples(command, [
    ["inlet restore inlet.backup.tar --data-dir ./restored", "asks for the passphrase of the backup file"],
    ["INLET_BACKUP_PASSPHRASE=… inlet restore /backups/inlet.tar", "into INLET_DATA_DIR"],
  ]).addHelpText(
    "after",
    `
The whole file is checked before the first write, and existing files are never replaced. The last lines list data that a backup cannot
restore. Run an interrupted restore again; until it completes, no gateway starts in the folder.`,
  );
}
