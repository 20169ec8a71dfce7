#!/usr/bin/env node
import { createRequire } from "node:module";
import { EXIT } from "./cli/exit.ts";
import { parseOptions } from "./options.ts";

/** Each command is loaded when it is called: most of them need little of the program. */
async function main(): Promise<number> {
  const argv = process.argv.slice(2);
  // A reader that closes the output (`npm start | head`) is no reason to stop receiving.
  process.stdout.on("error", () => {});
  const options = parseOptions(argv);
  if (options.ok && options.value.version) {
    process.stdout.write(`${createRequire(import.meta.url)("../package.json").version}\n`);
    return EXIT.done;
  }
  const { parseConfig } = await import("./config.ts");
  const parsed = parseConfig(process.env, argv);
  if (!parsed.ok) {
    const lines = parsed.error.map(({ path, message }) => `  ${path}: ${message}`);
    process.stderr.write(`Inlet does not start: these settings are wrong.\n${lines.join("\n")}\n`);
    return EXIT.wrongSettings;
  }
  const command = parsed.value;
  switch (command.kind) {
    case "help":
      process.stdout.write((await import("./cli/help.ts")).renderHelp());
      return EXIT.done;
    case "apply":
      return (await import("./cli/apply-set-up.ts")).applySetUpFile({ ...command, env: process.env });
    case "rotateMasterKey":
      return (await import("./cli/rotate-master-key.ts")).rotate(command.config);
    case "revokeKey":
      return (await import("./cli/revoke-key.ts")).revoke(command.config, command.named);
    case "sealAddresses":
      return (await import("./cli/seal-addresses.ts")).sealAllAddresses(command.config);
    case "start":
      return (await import("./cli/start.ts")).start(command.config);
    default:
      return command satisfies never;
  }
}

process.exitCode = await main();
