import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { createOutput, type OutputFormat } from "../../output/output.ts";
import { CONFIG_OPTION, runWithConfig } from "../machine.ts";

interface RestoreOptions {
  readonly config?: string;
  readonly dataDir?: string;
  readonly withoutMasterKey?: boolean;
  readonly output?: OutputFormat;
}

/** Makes a data directory of a backup. */
export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  command
    .argument("<file>", "as `inlet backup` has written it")
    .option("--data-dir <dir>", "an empty or missing folder (default: INLET_DATA_DIR)")
    .option("--without-master-key", "leave the master key out: you put it there yourself")
    .option(...CONFIG_OPTION)
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]))
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
    ["inlet restore inlet.backup.tar --data-dir ./restored", "asks for the passphrase of the backup"],
    ["INLET_BACKUP_PASSPHRASE=… inlet restore /backups/inlet.tar", "into INLET_DATA_DIR"],
  ]).addHelpText(
    "after",
    `
The whole file is checked before anything is written, and nothing that stands is ever replaced. It says at its end what no backup can
give back. One that was cut off is run again; until then no gateway starts on the folder.`,
  );
}
