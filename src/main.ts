#!/usr/bin/env node
import { createRequire } from "node:module";
import { EXIT } from "./cli/exit.ts";
import { parseOptions } from "./options.ts";

/** Loads each command on demand, because most commands need only a small part of the program. */
async function main(): Promise<number> {
  const argv = process.argv.slice(2);
  // The gateway must keep running when the reader of a pipe exits, as in `npm start | head`.
  process.stdout.on("error", () => {});
  const options = parseOptions(argv);
  if (options.ok && options.value.version) {
    process.stdout.write(`${createRequire(import.meta.url)("../package.json").version}\n`);
    return EXIT.done;
  }
  const isCommand = argv[0] !== undefined && !argv[0].startsWith("-");
  if (isCommand || (options.ok && options.value.help)) {
    return (await import("./cli/run.ts")).runCommand(argv);
  }
  return (await import("./cli/gateway-commands.ts")).runGatewayCommand(process.env, argv);
}

process.exitCode = await main();
