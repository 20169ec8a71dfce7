import { type Command, Option } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { createOutput, type OutputFormat } from "../../output/output.ts";
import { CONFIG_OPTION } from "../machine.ts";

interface DoctorOptions {
  readonly url?: string;
  readonly config?: string;
  readonly output?: OutputFormat;
  readonly gatewayOnly?: boolean;
}

/** Says what is wrong with this installation and the gateway, and what to do about it. */
export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  command
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]))
    .option("--url <address>", "the gateway's address (default: INLET_URL, else as `inlet login` keeps it)")
    .option(...CONFIG_OPTION)
    .option("--gateway-only", "look at the gateway alone, not at this machine")
    .action(async ({ url, config, output: format, gatewayOnly = false }: DoctorOptions) => {
      const output = createOutput(io, format);
      const { lookAtInstallation } = await import("../../doctor/installation.ts");
      const { lookAtGateway } = await import("../../doctor/gateway.ts");
      const found = [
        ...(gatewayOnly ? [] : await lookAtInstallation(io.env, config)),
        ...(await lookAtGateway(io, url)),
      ];
      output.list(found, [
        { title: "check", value: ({ check }) => check, whole: true },
        {
          title: "state",
          value: ({ state }) => state,
          whole: true,
          color: ({ state }) => (({ ok: "green", warning: "yellow", wrong: "red" }) as const)[state],
        },
        { title: "what", value: ({ message }) => message, whole: true },
        { title: "what to do", value: ({ cure }) => cure, whole: true },
      ]);
      context.exitCode = found.some(({ state }) => state === "wrong") ? EXIT.failed : EXIT.done;
    });
  examples(command, [
    ["inlet doctor", "this installation, and the gateway; exit code 1 where something is wrong"],
    ["inlet doctor --gateway-only --url https://inlet.example.com", "one elsewhere"],
  ]);
}
