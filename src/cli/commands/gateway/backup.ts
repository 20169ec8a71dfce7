import type { Command } from "commander";
import { examples, outputOption } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { createOutput, type OutputFormat } from "../../output/output.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

interface BackupOptions extends MachineOptions {
  readonly withoutMasterKey?: boolean;
  readonly output?: OutputFormat;
}

export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  outputOption(command)
    .argument("[file]", "file to create (default: inlet-<time>.backup.tar)")
    .option("--without-master-key", "leave out the master key, which you store elsewhere")
    .option(...CONFIG_OPTION)
    .action(async (file: string | undefined, options: BackupOptions) => {
      const { withoutMasterKey = false } = options;
      const { backUp } = await import("../../backup/backup.ts");
      await runWithConfig(context, options.config, async (config) => {
        await backUp(io, createOutput(io, options.output), { config, file, withoutMasterKey });
        return EXIT.done;
      });
    });
  examples(command, [
    ["inlet backup", "asks for a passphrase that encrypts the master key"],
    ["INLET_BACKUP_PASSPHRASE=… inlet backup /backups/inlet.tar", "without a prompt, for example in cron"],
    ["inlet backup --without-master-key --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    `
Run it on the gateway's machine, while the gateway is running or stopped. The file (mode 0600) contains events and settings in plain
text; secrets are encrypted with the master key. Back up external servers (DATABASE_URL, REDIS_URL) with their own tools.`,
  );
}
