import { parseConfig } from "../config.ts";
import { EXIT } from "./exit.ts";

/** Parses the gateway's settings and flags, runs the selected command, and returns the exit code. */
export async function runGatewayCommand(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
  { tellsDifference = false }: { readonly tellsDifference?: boolean } = {},
): Promise<number> {
  const parsed = parseConfig(env, argv);
  if (!parsed.ok) {
    const lines = parsed.error.map(({ path, message }) => `  ${path}: ${message}`);
    process.stderr.write(`Inlet did not start: these settings are invalid.\n${lines.join("\n")}\n`);
    return tellsDifference ? EXIT.failed : EXIT.wrongSettings;
  }
  const command = parsed.value;
  switch (command.kind) {
    case "help":
      process.stdout.write((await import("./help.ts")).renderHelp());
      return EXIT.done;
    case "apply":
      return (await import("./apply-set-up.ts")).applySetUpFile({ ...command, env, tellsDifference });
    case "rotateMasterKey":
      return (await import("./rotate-master-key.ts")).rotate(command.config);
    case "revokeKey":
      return (await import("./revoke-key.ts")).revoke(command.config, command.named);
    case "sealAddresses":
      return (await import("./seal-addresses.ts")).sealAllAddresses(command.config);
    case "start":
      return (await import("./start.ts")).start(command.config);
    default:
      return command satisfies never;
  }
}
